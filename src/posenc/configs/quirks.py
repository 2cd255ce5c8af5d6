"""Maps that some families use in place of a rotation, reproduced because their weights were trained with them.

    y = x·cos + quarter(x)·sin,   quarter: (x, y) -> (-y, x) on every pair

with an angle for each *channel*. If both channels of every pair have the same angle, this is a rotation in an unusual
layout (`in_each_part`). Otherwise (`xd`, `tiled`) it is not a rotation: norms change, and scores depend on more than
distance. posenc.RoPE cannot express these; nothing new should use them.

Legend: b batch, h heads, t tokens, d d_head, c rotated channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding, Side, usual_scale
from posenc.frequencies import Frequencies, layouts
from posenc.frequencies.layouts import Layout
from posenc.kernels.sin_cos import sin_cos
from posenc.positions import Positions
from posenc.support.tensors import check_coords, into, rotates, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class ChannelRotation(PositionalEncoding):
    """Channel c is multiplied by cos of its own angle, and its partner, rotated by a quarter turn, by sin of c's angle.

    d_head        channels of a head; those beyond the frequencies pass through
    frequencies   one for each rotated channel, not for each pair; with axes if there are several
    layout        which channels are partners
    parts         the rotated channels are first split into this many equal parts, each with its own pairs

    Shift-invariant and norm-preserving only if partners have the same frequency and axis.
    Raises ValueError if the channels cannot be split.
    """

    def __init__(self, d_head: int, frequencies: Frequencies, *, layout: Layout = "half", parts: int = 1) -> None:
        super().__init__(d_head=d_head, frequencies=frequencies, layout=layout, parts=parts)
        turning = len(frequencies)
        if turning > d_head:
            raise ValueError(f"frequencies: one for each of {turning} channels, d_head={d_head}")
        if parts < 1 or turning % (2 * parts):
            raise ValueError(f"parts: {turning} channels cannot be split into {parts} parts of pairs")
        self.d_head, self.frequencies, self.layout, self.parts = d_head, frequencies, layouts.check(layout), parts
        self.axes = frequencies.n_axes
        axes = frequencies.axes or (0,) * turning
        angle = torch.tensor([*zip(frequencies.values, axes, strict=True)], dtype=torch.float64, device="cpu")
        first, second = layouts.split(angle.T.unflatten(-1, (parts, -1)), self.layout)
        self.traits = frozenset({"local"})
        if torch.equal(first, second):
            self.traits |= {"shift_invariant"}
            self.traits |= {"norm_preserving"} if frequencies.cos_sin_scale == 1 else set()

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every channel, [b, t, c] each, times the frequencies' cos_sin_scale."""
        check_coords(self, at)
        sin, cos = sin_cos(at, self.frequencies, dtype)
        scale = self.frequencies.cos_sin_scale
        return cos * scale, sin * scale

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not rotates(self, x, at, side):
            return into(x, out)
        cos, sin = (table[:, None] for table in tables_at(self, at, x.dtype))
        turning = x[..., : cos.shape[-1]].to(cos.dtype)
        first, second = layouts.split(turning.unflatten(-1, (self.parts, -1)), self.layout)
        quarter = layouts.join(-second, first, self.layout).flatten(-2)
        turned = (turning * cos + quarter * sin).to(x.dtype)
        return into(torch.cat([turned, x[..., cos.shape[-1] :]], dim=-1), out)

    def softmax_scale(self, d_head: int) -> float:
        return usual_scale(d_head) * self.frequencies.softmax_scale


def xd(d_head: int, f: Frequencies, sizes: Sequence[int], *, layout: Layout = "half") -> ChannelRotation:
    """HunYuan-VL's XD-RoPE: axis a gets 2·sizes[a] channels of the *doubled* list of frequencies, in contiguous sections.

        channel   0 … n-1 n … 2n-1     the frequency of c is that of pair c mod n, n pairs
        axis      0 0 1 1 | 2 2 3 3    for sizes (1, 1, 1, 1): the partners c and c + n read different axes

    Text, whose axes are equal, is rotated as usual; images are not. `f` holds one frequency per pair.
    Raises ValueError unless sizes sum to the number of pairs.
    """
    if any(type(size) is not int or size < 1 for size in sizes) or sum(sizes) != len(f):
        raise ValueError(f"sizes: expected whole numbers from 1 that sum to {len(f)} pairs, got {tuple(sizes)}")
    axes = tuple(axis for axis, size in enumerate(sizes) for _ in range(2 * size))
    values_from = f"{f.values_from}, xd(sizes={tuple(sizes)}), one for each channel"
    return ChannelRotation(d_head, replace(f, values=f.values * 2, axes=axes, values_from=values_from), layout=layout)


def tiled(d_head: int, f: Frequencies, *, layout: Layout = "interleaved") -> ChannelRotation:
    """V-JEPA 2's map: interleaved pairs with angles in half order; channel c of an axis has the frequency of pair c mod n.

    The channels 2i and 2i + 1 so rotate by different angles: singular values are 0.05 to 1.4, where a rotation has ones.
    `f` holds the pairs of one axis after the other, n each; the channels beyond 2 len(f) pass through.
    """
    return ChannelRotation(d_head, _twice_each_axis(f, "tiled"), layout=layout)


def in_each_part(d_head: int, f: Frequencies, *, layout: Layout = "half") -> ChannelRotation:
    """Gemma 4's vision encoder: the head is split into one part for each axis, and each part has its own half pairs.

    h0 h1 h0 h1 | w0 w1 w0 w1: a rotation, in a layout that is "half" within each part. `f` holds the pairs of one axis
    after the other.
    """
    return ChannelRotation(d_head, _twice_each_axis(f, "in_each_part"), layout=layout, parts=f.n_axes)


def neighbours(d_head: int, f: Frequencies, *, layout: Layout = "half") -> ChannelRotation:
    """ERNIE-Image's map: channels 2i and 2i + 1 have the angle of pair i, and the halves of the head are partners.

    The partners c and c + d_head/2 so rotate by different angles.
    """
    axes = f.axes or (0,) * len(f)
    twice = [(value, axis) for value, axis in zip(f.values, axes, strict=True) for _ in range(2)]
    values, axes = zip(*twice, strict=True)
    values_from = f"{f.values_from}, neighbours(), one for each channel"
    return ChannelRotation(d_head, replace(f, values=values, axes=axes, values_from=values_from), layout=layout)


def _twice_each_axis(f: Frequencies, name: str) -> Frequencies:
    """The frequencies of each channel: those of one axis twice in a row, then those of the next."""
    every = list(zip(f.values, f.axes or (0,) * len(f), strict=True))
    pairs = [[pair for pair in every if pair[1] == axis] for axis in range(f.n_axes)]
    values, axes = zip(*(pair for pairs_of_axis in pairs for pair in pairs_of_axis * 2), strict=True)
    return replace(f, values=values, axes=axes, values_from=f"{f.values_from}, {name}(), one for each channel")
