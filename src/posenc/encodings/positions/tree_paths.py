"""Nodes of trees by the branches that lead to them: the way from a node up to its root, one coordinate for each step.

    node n at (b(n), b(parent of n), b(parent of that), …, 0, 0),    b(n) = 1, 2, … among the children of its parent

0 stands where the root has been reached. Shiv and Quirk 2019, "Novel Positional Encodings to Enable Tree-Based
Transformers", and Kogkalidis et al. 2023, "Algebraic Positional Encodings", number nodes so: posenc.create("tree_pe", …)
adds vectors of such paths, posenc.create("ape", …) turns queries and keys by them.
Legend: b batch, t tokens, one for each node, k max_depth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words
from posenc.support.tensor_checks import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Int


@checked
def tree_paths(
    parents: Int[Tensor, "b t"], *, max_depth: int = 12, branches: Int[Tensor, "b t"] | None = None
) -> Positions:
    """Coordinates [b, t, max_depth] of the nodes, whole numbers, the last branch first.

    parents    the token that is each node's parent, counted in its row from 0; -1 for roots: a row may have several
    max_depth  k: no node may be further from its root; 12 holds a complete binary tree of 8191 nodes
    branches   which child of its parent each node is, from 1; None: children are counted in the order of their tokens

    Time O(b·t·(t + k)). Raises ValueError for parents outside the row, branches below 1, deeper trees and circles.
    """
    checks.whole(max_depth=max_depth)
    with_values(parents=parents)
    t = parents.shape[1]
    if int(parents.min()) < -1 or int(parents.max()) >= t:
        raise ValueError(
            f"parents: expected -1 for a root or a token 0 … {t - 1}, got {_first_outside(parents, -1, t - 1)}"
        )
    up = torch.arange(t, device=parents.device).where(parents < 0, parents.long())
    if branches is None:
        earlier = (parents[:, :, None] == parents[:, None, :]).tril(-1).sum(dim=-1)
        branches = earlier + 1
    elif bool(((branches < 1) & (parents >= 0)).any()):
        raise ValueError(f"branches: expected numbers from 1, got {int(branches[parents >= 0].min())}")
    own = branches.long().masked_fill(parents < 0, 0)
    node, path = torch.arange(t, device=parents.device).expand_as(up), []
    for _ in range(max_depth):
        path.append(own.gather(1, node))
        node = up.gather(1, node)
    if bool(own.gather(1, node).any()):
        raise ValueError(
            f"parents: a node is more than max_depth={max_depth} steps below its root, or is its own ancestor: "
            "give a larger max_depth, here and to the encoding"
        )
    return Positions.at(torch.stack(path, dim=-1))


def _first_outside(values: Tensor, low: int, high: int) -> int:
    return int(values[(values < low) | (values > high)][0])


ENTRY = Entry(
    name="tree_paths",
    class_name="Positions",
    builder="tree_paths",
    title=Words("Tree paths", "树中的路径"),
    kind="positions",
    published="2019-12",
    axes=12,
    formula="(branch of n, branch of its parent, …, 0)",
    also_called=("tree_positions", "ast_positions", "path_words", "tree", "ast", "code_positions", "树位置"),
    used_by=(
        Words("Tree Transformers by Shiv and Quirk", "Shiv 与 Quirk 的树 Transformer"),
        Words("APE for trees", "树的 APE"),
    ),
    source="Shiv and Quirk 2019, NeurIPS, and Kogkalidis et al. 2023, arXiv 2312.16045, section 3.3",
    idea=Words(
        "A node of a syntax tree, a formula or a file of JSON is found by the branches that lead to it from the root. Each "
        "branch is a coordinate, the last one first. Encodings that read such paths know parents, siblings and "
        "subtrees, whatever the order in which nodes are written down.",
        "语法树、公式或 JSON 文件的节点由从根到它的各个分支确定。每个分支是一个坐标，最后一个排在最前。"
        "读取这种路径的编码知道父节点、兄弟节点和子树，与节点写出的顺序无关。",
    ),
    arguments={"parents": '(torch.arange(length)[None] - 1).div(2, rounding_mode="floor")'},
    latex=r"p_n = \big(b_n,\; b_{\mathrm{parent}(n)},\; b_{\mathrm{parent}(\mathrm{parent}(n))},\; \dots,\; 0\big)",
    domains=("graph",),
    breaks=Words(
        "Paths are as long as the tree is deep, so that lists and deep trees need many coordinates. A node that is "
        "inserted before its siblings renumbers them.",
        "路径与树一样深，因此列表和很深的树需要许多坐标。在兄弟节点之前插入一个节点会改变它们的编号。",
    ),
    differs=Words(
        "Trees that are too deep are refused. The code of Shiv and Quirk keeps the branches nearest to the node.",
        "过深的树会被拒绝；Shiv 与 Quirk 的代码只保留离节点最近的分支。",
    ),
    options={
        "parents": "每个节点的父节点，在其行中从 0 计数；根为 -1，一行可有多个根",
        "max_depth": "k：任何节点到根的步数上限",
        "branches": "每个节点是其父节点的第几个孩子，从 1 起；None：按词元顺序计数",
    },
)
