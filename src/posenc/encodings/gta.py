"""GTA: attention between tokens of several images, by the pose of their cameras and by row and column.

    half of the channels      blocks of four:  q·(T_i T_j⁻¹)k  and values (T_i T_j⁻¹)v,  T = [R  c·t; 0 1],  c learned
    the other half            pairs turned by 2π·ω_n·row and 2π·ω_n·column in turn, ω_n = 2^(n - N), n = 1 … N; values too

Miyato et al. 2023, "GTA: A Geometry-Aware Attention Mechanism for Multi-View Transformers", section 3, with the shares and
frequencies of the authors' code (SE(3) and SO(2), N = d/8); their variants with SO(3) and translations of the plane are not
here. Rows and columns are fractions of the image: posenc.positions_by("cameras", …, fractions=True), without intrinsics.
Legend: b batch, h heads, t tokens, d d_head, n frequencies.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

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
    exact_dtype,
    full_precision,
    into,
    tables_at,
    working_dtype,
)

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class GTA(PositionalEncoding):
    """Queries, keys, values and outputs multiplied with camera poses, and turned by row and column.

    d_head  channels of a head, a multiple of 8; values have as many

    Parameter: scale [1], c, by which translations are multiplied; it starts at 0.01, as in the authors' code.
    Reads the 14 coordinates of posenc.positions_by("cameras", …). Cached keys and values are transformed.
    Time O(t·d) for each side.
    """

    traits = frozenset({"local"})
    axes = AXES
    exact_parameters = ("scale",)

    @checked
    def __init__(self, d_head: int) -> None:
        checks.multiple(8, d_head=d_head)
        super().__init__(d_head=d_head)
        self.d_head, count = d_head, d_head // 8
        self.frequencies = tuple(2 * math.pi * 2.0 ** (n - count) for n in range(1, count + 1))
        self.scale = nn.Parameter(torch.full((1,), 0.01, dtype=exact_dtype()))

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """T and T⁻¹ [b, t, 12] each, with c = 1; cos and sin of the pairs' angles, [b, t, 2·n] each."""
        check_coords(self, at)
        forth, back = both_ways(at.coords)
        places = at.coords[..., :2].double()[..., None, :]  # row, column
        angle = (constant(self.frequencies, torch.float64, at.coords.device)[:, None] * places).flatten(-2)
        return tuple(table.to(dtype) for table in (forth, back, angle.cos(), angle.sin()))

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        """All four sides change: keys and values by the inverse of what outputs are changed by."""
        checks.one_of(SIDES, side=side)
        check_width(self, "d_head", x.shape[-1], self.d_head, "v" if side == "value" else "x")
        check_tokens(self, x, at, axis=2)
        forth, back, cos, sin = tables_at(self, at, x.dtype)
        half = self.d_head // 2
        with full_precision(x):
            wide = x.to(working_dtype(x.dtype)).contiguous()
            moved = self.scale.to(wide.dtype).expand(12)
            share = torch.where(torch.arange(12, device=x.device) % 4 == 3, moved, torch.ones_like(moved))
            placed = transformed(wide[..., :half], forth * share, back * share, side)
            sin = -sin if side == "output" else sin
            turned = rotate(wide[..., half:].contiguous(), cos[:, None], sin[:, None], "interleaved")
            return into(torch.cat([placed, turned], dim=-1).to(x.dtype), out)
