"""Sinusoidal absolute positions, added to the embeddings.

    PE(p, 2i) = sin(p·ω_i),  PE(p, 2i+1) = cos(p·ω_i),  ω_i = base^(-2i/d)

Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
Legend: b batch, t tokens, d d_model, n = ⌈d/2⌉ frequencies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor

from posenc import frequencies
from posenc.encoding import PositionalEncoding, Site, absolute_at_layer, check_tokens, check_width
from posenc.phasors import phasors
from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Float

# interleaved  s0 c0 s1 c1 s2 c2      sin_cos  s0 s1 s2 | c0 c1 c2      cos_sin  c0 c1 c2 | s0 s1 s2
ChannelLayout = Literal["interleaved", "sin_cos", "cos_sin"]
Denominator = Literal["d/2", "d/2-1"]


class Sinusoidal(PositionalEncoding):
    """x + PE(position). No parameters; defined for any real position.

    d_model      channels; an odd width has ⌈d/2⌉ frequencies and drops the last cosine
    base         the slowest pair turns once in about 2π·base positions
    layout       "interleaved" (the paper), "sin_cos" (tensor2tensor, Whisper) or "cos_sin" (MusicGen)
    denominator  of the exponent: "d/2" (the paper) or "d/2-1" (tensor2tensor: the last frequency is 1/base exactly)
    offset       added to every position, for tables that start later (M2M100)
    axes         coordinates per token; each gets d_model/axes channels, first axis first

    Raises ValueError for an unknown layout or denominator, and a width that the axes cannot share.
    """

    sites = Site.EMBED
    traits = frozenset({"local", "norm_preserving"})

    def __init__(
        self, d_model: int, *, base: float = 10000.0, layout: ChannelLayout = "interleaved",
        denominator: Denominator = "d/2", offset: float = 0, axes: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(d_model=d_model, base=base, layout=layout, denominator=denominator, offset=offset, axes=axes)
        if layout not in get_args(ChannelLayout):
            raise ValueError(f"layout: expected one of {', '.join(get_args(ChannelLayout))}, got {layout!r}")
        if denominator not in get_args(Denominator):
            raise ValueError(f"denominator: expected one of {', '.join(get_args(Denominator))}, got {denominator!r}")
        if d_model % axes:
            raise ValueError(f"axes: {d_model} channels cannot be shared evenly by {axes} axes")
        spacing = frequencies.rotary if denominator == "d/2" else frequencies.to_the_end
        self.d_model, self.layout, self.offset = d_model, layout, offset
        self.frequencies, self.coordinate_axes = spacing(d_model // axes, base), axes  # type: ignore[misc]

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        self.check_coords(at)
        moved = at.shift(self.offset) if self.offset else at
        per_axis = phasors(moved, [self.frequencies] * self.coordinate_axes, dtype)  # [b, t, axes·n, 2]
        per_axis = per_axis.unflatten(2, (self.coordinate_axes, -1))  # [b, t, axes, n, 2]
        width = self.d_model // self.coordinate_axes
        return (arrange(per_axis, width, self.layout).flatten(2),)

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_width(self, "d_model", x.shape[-1], self.d_model)
        check_tokens(self, x, at, axis=1)
        (table,) = self.tables_at(at, x.dtype)
        return (x.to(table.dtype) + table).to(x.dtype)

    def at_layer(self, n: int) -> PositionalEncoding:
        return absolute_at_layer(self, n)


def arrange(sin_cos: Float[Tensor, "*s n 2"], width: int, layout: ChannelLayout) -> Float[Tensor, "*s d"]:
    """(sin, cos) of n frequencies as `width` channels; an odd width loses the last cosine."""
    if layout == "interleaved":
        return sin_cos.flatten(-2)[..., :width]
    sin, cos = sin_cos.unbind(-1)
    cos = cos[..., : width // 2]
    return torch.cat([sin, cos] if layout == "sin_cos" else [cos, sin], dim=-1)


def sinusoidal_table(
    length: int, d_model: int, base: float = 10000.0, start: int = 0, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "length d_model"]:
    """PE(start) … PE(start+length-1), one row per position: sin in even channels, cos in odd ones.

    Computed in fp64 and rounded once to `dtype`. Raises ValueError for a length, width or base that is not positive.

    >>> sinusoidal_table(3, 4, base=100.0)[1]
    tensor([0.8415, 0.5403, 0.0998, 0.9950])
    """
    if not dtype.is_floating_point:
        raise TypeError(f"dtype: expected a floating dtype, got {dtype}")
    at = Positions.arange(1, length, start)
    return Sinusoidal(d_model, base=base).tables(at, dtype)[0][0]
