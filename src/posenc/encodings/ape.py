"""APE on trees: one learned rotation for each branch; queries and keys are turned by the product along their path.

    score = (R(q's path)·q)·(R(k's path)·k)/√d,    R(b_1 b_2 … b_m) = W_b1·W_b2 … W_bm,    W_b = exp(A_b - A_bᵀ)

b_1 is the branch at the root. What the two paths share cancels, so that the score depends on the way from one node to the
other alone: up to the common ancestor, and down. Kogkalidis et al. 2023, "Algebraic Positional Encodings" (NeurIPS 2024),
section 3.3, and the authors' code, where all heads share the matrices of trees. Sequences and grids, sections 3.1 and 3.4,
are ComRoPE with blocks as wide as an axis: posenc.create("com_rope", axes=…, block=…, form="AP").
Legend: b batch, h heads, t tokens, k max_depth, n branches, d d_head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.catalogue.entry import Entry
from posenc.encoding import (
    PositionalEncoding,
    Side,
    check_between,
    exact_dtype,
    full_precision,
    into,
    rotates,
    working_dtype,
)
from posenc.encodings.bases.block_rotation import skew_exponential
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words
from posenc.support.tensor_checks import beside

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class APE(PositionalEncoding):
    """Queries and keys multiplied with the learned rotations of the branches that lead to their node.

    d_head      channels of a head, even
    max_depth   k: steps from the root that a path has room for, as in posenc.positions_by("tree_paths", …)
    n_branches  children that a node may have
    base        of the fresh rotations, which turn pair j of channels by base^(-4⌊j/2⌋/d_head), the same for every branch

    Coordinates are paths, k whole numbers 0 … n_branches, the last branch first and 0 beyond the root.
    Parameters: generators [n_branches, d_head, d_head], A, shared by all heads. Exponentials are computed in fp64. Time
    O(t·heads·k·n_branches·d_head²), memory O(t·heads·d_head). Raises ValueError for branches that there are not.
    """

    traits = frozenset({"local", "norm_preserving"})
    exact_parameters = ("generators",)

    @checked
    def __init__(self, d_head: int, *, max_depth: int = 12, n_branches: int = 2, base: float = 10000.0) -> None:
        checks.even(d_head=d_head)
        checks.whole(max_depth=max_depth, n_branches=n_branches)
        checks.positive(base=base)
        super().__init__(d_head=d_head, max_depth=max_depth, n_branches=n_branches, base=base)
        self.d_head, self.max_depth, self.n_branches = d_head, max_depth, n_branches
        self.coordinate_axes = max_depth  # type: ignore[misc]
        fresh = torch.zeros(d_head, d_head, dtype=exact_dtype())
        for j in range(d_head // 2):
            angle = base ** (-4 * (j // 2) / d_head)
            fresh[2 * j, 2 * j + 1], fresh[2 * j + 1, 2 * j] = -angle / 2, angle / 2
        self.generators = nn.Parameter(fresh.repeat(n_branches, 1, 1))

    def matrices(self) -> Float[Tensor, "n d d"]:
        """W of every branch, in fp64."""
        wide = self.generators.double()
        return skew_exponential(wide - wide.transpose(-1, -2))

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        """The branch nearest to the node turns first."""
        if not rotates(self, x, at, side):
            return into(x, out)
        self.check_coords(at, integers=True)
        beside(self.generators, at=at.coords)
        path = at.coords if at.coords.ndim == 3 else at.coords[..., None]
        check_between(path, 0, self.n_branches, "APE: branch")
        with full_precision(x):
            turned, matrices = x.to(working_dtype(x.dtype)), self.matrices().to(working_dtype(x.dtype))
            for step in path[:, None, :, :, None].unbind(3):  # [b, 1, t, 1]
                before = turned
                for branch, matrix in enumerate(matrices, start=1):
                    turned = torch.where(step == branch, before @ matrix.T, turned)
        return into(turned.to(x.dtype), out)


ENTRY = Entry(
    name="ape",
    class_name="APE",
    title=Words("APE of trees", "树的代数位置编码"),
    kind="rotated",
    published="2023-12",
    needs=("parameters",),
    axes=12,
    positions=('posenc.positions_by("tree_paths", parents=(torch.arange(length)[None] - 1).div(2, rounding_mode="floor"))'),
    coordinates=Words(
        "The branches from a node up to its root, the last one first, and 0 beyond the root (paper, section 3.3).",
        "从节点到根的各个分支，最后一个排在最前，根之外为 0（论文第 3.3 节）。",
    ),
    both_ways=True,
    formula="(W_b1 … W_bm q)·(W_c1 … W_cn k), W_b = exp(A_b - A_bᵀ)",
    also_called=(
        "algebraic",
        "algebraic_positional_encoding",
        "algebraic_positional_encodings",
        "tree_rope",
        "unitary_pe",
        "Branching",
    ),
    used_by=(Words("research: tree tasks by its authors", "研究：作者的树任务"),),
    source="Kogkalidis et al. 2023, arXiv 2312.16045, section 3.3, and the authors' code",
    idea=Words(
        "RoPE turns by one rotation for each step of a sequence. In a tree each branch has a learned rotation of its own, "
        "and a node turns queries and keys by the product along its path. What two paths share cancels: the score depends "
        "on the way from one node to the other, and on nothing else of their positions.",
        "RoPE 在序列中每走一步就旋转一次。在树中每个分支有自己学到的旋转，节点按其路径上的乘积旋转查询和键。"
        "两条路径的相同部分相互抵消：分数只取决于从一个节点到另一个节点的走法。",
    ),
    latex=r"(R_i q_i) \cdot (R_j k_j), \quad R_{b_1 \dots b_m} = W_{b_1} \cdots W_{b_m}, \quad W_b = e^{A_b - A_b^\top}",
    domains=("graph",),
    breaks=Words(
        "A matrix product for each step and branch: deep and wide trees are slow, see the costs. Rotations of different "
        "branches do not commute, so that no table of angles can replace them.",
        "每一步、每个分支都要一次矩阵乘法：又深又宽的树很慢，代价见下表。不同分支的旋转不可交换，因此不能用角度表代替。",
    ),
    differs=Words(
        "Vectors are multiplied branch by branch, where the authors' code multiplies the matrices of all nodes first. "
        "Their factor of 0.98 for every step between two nodes, which multiplies the score, is left out.",
        "这里逐个分支地乘向量；作者的代码先把所有节点的矩阵乘好。省略了他们对分数的衰减：两节点间每走一步乘以 0.98。",
    ),
    code="konstantinosKokos/ape",
    options={
        "d_head": "每头的通道数，偶数",
        "max_depth": 'k：路径能容纳的到根步数，与 posenc.positions_by("tree_paths", …) 相同',
        "n_branches": "一个节点最多的孩子数",
        "base": "初始旋转的底数：第 j 个通道对转动 base^(-4⌊j/2⌋/d_head)，各分支相同",
    },
)
