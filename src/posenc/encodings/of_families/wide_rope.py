"""RoPE over the whole width of queries and keys, before they are divided into heads: every head has other frequencies.

    pair k of axis a    turns by c_a·(π/2)·base^(k/(n-1)),   k = 0 … n-1,   n = ⌊width/2·axes⌋

The axes take turns: pair k of every axis, then pair k + 1. Pairs that are left over come first and keep still. c is a share
of the whole from -1 to 1. LTX-Video (HaCohen et al. 2024, section 2) in diffusers' transformer_ltx.py; LTX-2, which pairs
halves of each head, in transformer_ltx2.py.
Legend: b batch, h heads, t tokens, d d_head, n pairs of an axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding, Side
from posenc.frequencies import Frequencies, layouts
from posenc.frequencies.layouts import Layout
from posenc.frequencies.wide import spectrum as spectrum
from posenc.kernels.rotation import rotate
from posenc.kernels.sin_cos import sin_cos
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_tokens, check_width, into, tables_at, turns

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class WideRoPE(PositionalEncoding):
    """Turns queries and keys by frequencies that go on from head to head. No parameters.

    d_head       channels of a head, even
    n_heads      heads of queries, and as many of keys
    frequencies  n_heads·d_head/2 of them, with their axes: `spectrum` makes LTX-Video's
    layout       which channels of a head make a pair

    Raises ValueError for an odd width, and frequencies that do not fill it.
    """

    @checked
    def __init__(self, d_head: int, n_heads: int, frequencies: Frequencies, *, layout: Layout = "interleaved") -> None:
        checks.even(d_head=d_head)
        super().__init__(d_head=d_head, n_heads=n_heads, frequencies=frequencies, layout=layout)
        if 2 * len(frequencies) != d_head * n_heads:
            raise ValueError(
                f"frequencies: expected {d_head * n_heads // 2}, a pair for each two channels, got {len(frequencies)}"
            )
        self.d_head, self.n_heads, self.frequencies = d_head, n_heads, frequencies
        self.layout = layouts.check(layout)
        self.axes = frequencies.n_axes

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair of every head, [b, t, h·d/2] each."""
        check_coords(self, at)
        sin, cos = sin_cos(at, self.frequencies, dtype)
        return cos, sin

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not turns(side):
            return into(x, out)
        check_width(self, "d_head", x.shape[-1], self.d_head)
        check_width(self, "n_heads", x.shape[1], self.n_heads)
        check_tokens(self, x, at, axis=2)
        tables = tables_at(self, at, x.dtype)
        cos, sin = (table.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for table in tables)
        return rotate(x, cos, sin, self.layout, out=out)

    def heads(self, start: int, stop: int) -> WideRoPE:
        pairs = slice(start * self.d_head // 2, stop * self.d_head // 2)
        f = self.frequencies
        part = Frequencies(f.values[pairs], axes=f.axes[pairs], values_from=f"{f.values_from}, heads {start} … {stop - 1}")
        return WideRoPE(self.d_head, stop - start, part, layout=self.layout)
