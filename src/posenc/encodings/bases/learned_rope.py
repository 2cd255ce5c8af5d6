"""Rotary positions whose frequencies are parameters.

    LeRoPE      pair i turns by p·ω_i·exp(α_i)            α one number for each pair, shared by the heads
    MixedRoPE   pair i of head h turns by Σ_a p_a·ω_ahi   every pair reads all axes, at its own slant

Angles in fp64, like RoPE's, but for frequencies of the parity mode.
Tables belong to this very module: a copy, with parameters of its own, refuses them.
Legend: b batch, h heads, t tokens, d d_head, n pairs, a axes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from posenc.encoding import PositionalEncoding, Side
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies, layouts
from posenc.frequencies.layouts import Layout, Planes
from posenc.kernels.eager import constant
from posenc.kernels.rotation import rotate
from posenc.kernels.sin_cos import coordinate_of_pairs
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import (
    check_coords,
    check_width,
    exact_dtype,
    floating,
    full_precision,
    into,
    on_device_of,
    rotates,
    tables_at,
)

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class LeRoPE(RoPE):
    """RoPE with ω_i·exp(α_i) for ω_i; fresh α is 0, which is RoPE itself.

    Takes RoPE's arguments, with frequencies of any scaling and any axes. alpha is α, [n]. Mistral-Large-4 ships it on
    YaRN's frequencies, interleaved. What is trained, as numbers: `frequencies_now()`.
    Frequencies of the parity mode keep fp32 angles, as that library has them.
    Raises ValueError for frequencies that depend on length: ask them for one length first.
    """

    learned_tables = True
    exact_parameters = ("alpha",)

    def __init__(self, d_head: int, **options: Any) -> None:
        frequencies = options.get("frequencies")
        if frequencies is not None and not isinstance(frequencies, Frequencies):
            raise ValueError("LeRoPE: frequencies: learned for one set, got a family by length; give its at_length(n)")
        super().__init__(d_head, **options)
        self.alpha = nn.Parameter(torch.zeros(len(self.frequencies)))

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair, [b, t, n] each, times the frequencies' cos_sin_scale."""
        check_coords(self, at)
        floating(dtype)
        on_device_of(self.alpha, at=at.coords)
        with full_precision(self.alpha):
            omega = self._omega()
            angle = coordinate_of_pairs(at.coords, self.frequencies).to(omega.dtype) * omega
            return _tables(angle, self.frequencies.cos_sin_scale, self.reverse, dtype)

    @torch.no_grad()
    def frequencies_now(self) -> Frequencies:
        """The frequencies as the parameters are now: for a RoPE that learns nothing."""
        origin = f"{self.frequencies.values_from}, lerope"
        return replace(self.frequencies, values=tuple(self._omega().tolist()), base=None, width=None, values_from=origin)

    def _omega(self) -> Float[Tensor, "n"]:
        precision = torch.float64 if self.frequencies.arithmetic == "float64" else torch.float32
        return constant(self.frequencies.values, precision, self.alpha.device) * self.alpha.to(precision).exp()


class MixedRoPE(PositionalEncoding):
    """RoPE-Mixed: pair i of head h turns by Σ_a p_a·ω_ahi, all ω learned, so that diagonals can be told apart.

    d_head    channels of a head; even
    n_heads   heads; keys need as many, or one group each of `heads`
    axes      coordinates per token
    base      fresh magnitudes are base^(-4j/d), in two groups at right angles; base 10 in the authors' code
    layout    which channels make a pair

    `frequencies` is ω, [a, h, n]. Fresh, each head looks along a drawn direction of the first two axes; further axes
    start at zero. Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", section 3.2; their coordinates are
    (x, y), so that the first axis of Positions.grid is their second.
    Raises ValueError for d_head not a multiple of 4, and for tensors with another number of heads.
    """

    learned_tables = True
    exact_parameters = ("frequencies",)

    def __init__(
        self, d_head: int, n_heads: int, *, axes: int = 2, base: float = 10.0, layout: Layout = "interleaved"
    ) -> None:
        checks.whole(d_head=d_head, n_heads=n_heads, axes=axes)
        super().__init__(d_head=d_head, n_heads=n_heads, axes=axes, base=base, layout=layout)
        checks.from_one(base=base)
        checks.multiple(4, d_head=d_head)
        self.d_head, self.layout, self.axes = d_head, layouts.check(layout), axes
        magnitude = torch.tensor([base ** (-4 * j / d_head) for j in range(d_head // 4)], dtype=torch.float64)
        direction = torch.rand(n_heads, 1, dtype=torch.float64) * 2 * math.pi
        slant = torch.cat([direction.expand(-1, d_head // 4), direction.expand(-1, d_head // 4) + math.pi / 2], dim=1)
        fresh = torch.zeros(axes, n_heads, d_head // 2, dtype=exact_dtype())
        fresh[0] = magnitude.repeat(2) * slant.cos()
        if axes > 1:
            fresh[1] = magnitude.repeat(2) * slant.sin()
        self.frequencies = nn.Parameter(fresh)

    def structure(self) -> Rotation:
        planes = (Planes(self.layout, 0, self.d_head),)
        return Rotation(planes, planes)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair of every head, [b, t, h, n] each."""
        check_coords(self, at)
        floating(dtype)
        on_device_of(self.frequencies, at=at.coords)
        coords = at.coords if at.coords.ndim == 3 else at.coords[..., None]
        with full_precision(self.frequencies):
            angle = sum(coords[..., a, None, None].double() * omega.double() for a, omega in enumerate(self.frequencies))
            return _tables(angle, 1.0, False, dtype)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not rotates(self, x, at, side):
            return into(x, out)
        check_width(self, "n_heads", x.shape[1], self.frequencies.shape[1])
        cos, sin = (table.transpose(1, 2) for table in tables_at(self, at, x.dtype))
        return rotate(x, cos, sin, self.layout, out=out)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> MixedRoPE:
        part = MixedRoPE(**{**self.configuration, "n_heads": stop - start}).to(self.frequencies)
        part.frequencies.copy_(self.frequencies[:, start:stop])
        return part


def _tables(angle: Tensor, scale: float, reverse: bool, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    return (angle.cos() * scale).to(dtype), (angle.sin() * (-scale if reverse else scale)).to(dtype)


@checked
def rope_mixed(
    d_head: int, n_heads: int, *, axes: int = 2, base: float = 10.0, layout: Layout = "interleaved"
) -> MixedRoPE:
    """`MixedRoPE` for images.

    d_head   channels of a head, a multiple of 4
    n_heads  heads, of queries and of keys
    axes     coordinates of a token
    base     of the frequencies that it starts from; 10 in the authors' code
    layout   which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return MixedRoPE(d_head, n_heads, axes=axes, base=base, layout=layout)


@checked
def lerope(d_head: int, *, base: float = 10000.0, layout: Layout = "interleaved") -> LeRoPE:
    """`LeRoPE`, which takes all of RoPE's options.

    d_head  channels of a head, even
    base    of the frequencies that it starts from
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return LeRoPE(d_head, base=base, layout=layout)
