"""Rotations whose angles differ from key head to key head, over whole heads: MHRoPE, Ms-PoE, GRAPE-M, FoPE.

Legend: b batch, h query heads, g key heads, t tokens, n pairs, d d_head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from posenc.encoding import PositionalEncoding, Side
from posenc.frequencies.layouts import Layout, Planes
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc.structure import Rotation, Structure
from posenc.support.tensors import for_heads, into, rotates, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class RotationByKeyHead(PositionalEncoding):
    """Turns every pair of a head by its own table. A class says cos and sin, [b, t, g, n] each, in `tables`.

    per_head  what a key head has of its own, in the plural, for messages
    """

    d_head: int
    layout: Layout
    per_head: str

    def structure(self) -> Structure | None:
        planes = (Planes(self.layout, 0, self.d_head),)
        return Rotation(planes, planes)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not rotates(self, x, at, side):
            return into(x, out)
        cos, sin = (for_heads(self, table, x, self.per_head) for table in tables_at(self, at, x.dtype))
        return rotate(x, cos, sin, self.layout, out=out)
