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

from posenc.encoding import PositionalEncoding, Side
from posenc.encodings.bases.block_rotation import skew_exponential
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import (
    check_between,
    check_coords,
    exact_dtype,
    full_precision,
    into,
    on_device_of,
    rotates,
    working_dtype,
)

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
        checks.from_one(base=base)
        super().__init__(d_head=d_head, max_depth=max_depth, n_branches=n_branches, base=base)
        self.d_head, self.max_depth, self.n_branches = d_head, max_depth, n_branches
        self.axes = max_depth
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
        check_coords(self, at, integers=True)
        on_device_of(self.generators, at=at.coords)
        path = at.coords if at.coords.ndim == 3 else at.coords[..., None]
        check_between(path, 0, self.n_branches, "APE: branch")
        with full_precision(x):
            turned, matrices = x.to(working_dtype(x.dtype)), self.matrices().to(working_dtype(x.dtype))
            for step in path[:, None, :, :, None].unbind(3):  # [b, 1, t, 1]
                before = turned
                for branch, matrix in enumerate(matrices, start=1):
                    turned = torch.where(step == branch, before @ matrix.T, turned)
        return into(turned.to(x.dtype), out)
