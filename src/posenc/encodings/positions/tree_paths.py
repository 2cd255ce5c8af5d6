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

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import with_values

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
    branch = branches.long().masked_fill(parents < 0, 0)
    node, path = torch.arange(t, device=parents.device).expand_as(up), []
    for _ in range(max_depth):
        path.append(branch.gather(1, node))
        node = up.gather(1, node)
    if bool(branch.gather(1, node).any()):
        raise ValueError(
            f"parents: a node is more than max_depth={max_depth} steps below its root, or is its own ancestor: "
            "give a larger max_depth, here and to the encoding"
        )
    return Positions.at(torch.stack(path, dim=-1))


def _first_outside(values: Tensor, low: int, high: int) -> int:
    return int(values[(values < low) | (values > high)][0])
