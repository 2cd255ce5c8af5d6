"""Rotary positions whose pairs all read all coordinates, through one learned matrix that the heads share.

    pair i turns by Σ_a p_a·W[i, a]

Lindenberger et al. 2023, "LightGlue", section 3.2, equation 4, after Li et al. 2021: key points
of an image. Where each head has a matrix of its own, see learned_rope.MixedRoPE.
Legend: b batch, h heads, t tokens, d d_head, n pairs, a coordinates.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import PositionalEncoding, Side
from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout, Planes
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support import checks
from posenc.support.tensors import check_coords, full_precision, into, rotates, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class ProjectedRoPE(PositionalEncoding):
    """Rotates queries and keys by a learned linear function of real coordinates.

    d_head  channels of a head, all of which turn; even
    axes    coordinates per token, 2 for (x, y)
    layout  which channels make a pair

    Parameter: projection, W, [n, a]; fresh values are normal with a spread of 1/√a.
    Raises ValueError for an odd d_head and an unknown layout.
    """

    learned_tables = True
    exact_parameters = ("projection",)

    def __init__(self, d_head: int, *, axes: int = 2, layout: Layout = "interleaved") -> None:
        checks.even(d_head=d_head)
        checks.whole(axes=axes)
        super().__init__(d_head=d_head, axes=axes, layout=layout)
        self.d_head, self.layout, self.axes = d_head, layouts.check(layout), axes
        self.projection = nn.Parameter(torch.randn(d_head // 2, axes) / math.sqrt(axes))

    def structure(self) -> Rotation:
        planes = (Planes(self.layout, 0, self.d_head),)
        return Rotation(planes, planes)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair, [b, t, n] each."""
        check_coords(self, at)
        coords = at.coords if at.coords.ndim == 3 else at.coords[..., None]
        with full_precision(self.projection):
            angle = coords.double() @ self.projection.double().T
            return angle.cos().to(dtype), angle.sin().to(dtype)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not rotates(self, x, at, side):
            return into(x, out)
        cos, sin = tables_at(self, at, x.dtype)
        return rotate(x, cos, sin, self.layout, out=out)
