"""PRoPE: tokens of several images, related by the projections of their cameras.

    half of the channels      blocks of four:  q·(P_i P_j⁻¹)k  and values (P_i P_j⁻¹)v
    a quarter each            RoPE of the column, RoPE of the row:  ω_n = base^(-n / (d/8)),   values turned too

Li et al. 2025, "Cameras as Relative Positional Encoding", section 3, and the authors' code. P = K·T takes the world to the
image; without K it is the code's form of GTA. Another choice of the world's origin or axes changes nothing. p-RoPE, in
which slow pairs keep still, is proportional.py.
Legend: b batch, h heads, t tokens, d d_head, n frequencies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding, Side
from posenc.encodings.bases.camera_matrices import AXES, both_ways, transformed
from posenc.kernels.eager import constant
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import (
    SIDES,
    check_coords,
    check_tokens,
    check_width,
    full_precision,
    into,
    tables_at,
    working_dtype,
)

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class PRoPE(PositionalEncoding):
    """Queries, keys, values and outputs multiplied with camera matrices, and turned by row and column.

    d_head  channels of a head, a multiple of 8; values have as many
    base    of the frequencies for row and column

    Reads the 14 coordinates of posenc.positions_by("cameras", …). No parameters. Cached keys and values are transformed.
    Time O(t·d) for each side.
    """

    traits = frozenset({"local"})
    axes = AXES

    @checked
    def __init__(self, d_head: int, *, base: float = 100.0) -> None:
        checks.multiple(8, d_head=d_head)
        super().__init__(d_head=d_head, base=base)
        self.d_head = d_head
        self.frequencies = tuple(base ** (-n / (d_head // 8)) for n in range(d_head // 8))

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """P and P⁻¹ [b, t, 12] each; cos and sin of the column's angles, then of the row's, [b, t, 2·n] each."""
        check_coords(self, at)
        forth, back = both_ways(at.coords)
        places = at.coords[..., [1, 0]].double()[..., None]  # column, row
        angle = (places * constant(self.frequencies, torch.float64, at.coords.device)).flatten(-2)
        return tuple(table.to(dtype) for table in (forth, back, angle.cos(), angle.sin()))

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        """All four sides change: keys and values by the inverse of what outputs are changed by."""
        checks.one_of(SIDES, side=side)
        check_width(self, "d_head", x.shape[-1], self.d_head, "v" if side == "value" else "x")
        check_tokens(self, x, at, axis=2)
        forth, back, cos, sin = tables_at(self, at, x.dtype)
        quarter, sign = self.d_head // 4, 1.0 if side == "output" else -1.0
        with full_precision(x):
            wide = x.to(working_dtype(x.dtype)).contiguous()
            cos, sin = (table[:, None].unflatten(-1, (2, -1)) for table in (cos, sign * sin))
            parts = [transformed(wide[..., : 2 * quarter], forth, back, side)]
            for axis, part in enumerate(wide[..., 2 * quarter :].split(quarter, dim=-1)):
                parts.append(rotate(part.contiguous(), cos[..., axis, :], sin[..., axis, :], "half"))
            return into(torch.cat(parts, dim=-1).to(x.dtype), out)
