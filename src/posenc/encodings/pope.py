"""Polar coordinates: the content sets the length of every channel and the position its angle, so that neither speaks of the
other.

    q̂ = [μ_c cos iω_c | μ_c sin iω_c],  μ = softplus(q)
    k̂ = [ν_c cos(jω_c + δ_c) | ν_c sin(jω_c + δ_c)],  ν = softplus(k)
    q̂·k̂ = Σ_c μ_c ν_c cos((j - i)ω_c + δ_c),   ω_c = base^(-c/d) for c = 0 … d-1,   -2π ≤ δ_c ≤ 0

Gopalakrishnan et al. 2025, "Decoupling the 'What' and 'Where' With Polar Coordinate Positional Embeddings" (PoPE),
section 3. Heads become twice as wide: each channel, not each pair of them, has a frequency. Here queries turn by -δ
instead of keys by δ, which gives the same products and lets query heads that share keys have a δ of their own. Another
PoPE is made of Legendre polynomials.
Legend: b batch, h heads, t tokens, d d_head, c channel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import PositionalEncoding, Side, usual_scale
from posenc.frequencies.layouts import Planes
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support.checked import checked
from posenc.support.tensors import (
    check_coords,
    check_width,
    floating,
    full_precision,
    into,
    rotates,
    tables_at,
    working_dtype,
)

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class PoPE(PositionalEncoding):
    """Softplus of queries and keys, turned channel by channel into twice as many channels.

    d_head   channels of a head before it is turned; rotated queries and keys, and cached keys, have 2·d_head
    n_heads  query heads
    base     the slowest channel turns once in about 2π·base positions

    Parameter: phase [n_heads, d_head], δ; a number outside of -2π … 0 counts as the nearer end. It starts at 0, as in
    x-transformers. The softmax scale stays 1/√d_head. Time O(t·d) for the rotation; products and cached keys cost twice
    as much as with RoPE.
    """

    traits = frozenset({"local", "shift_invariant"})

    @checked
    def __init__(self, d_head: int, n_heads: int, *, base: float = 10000.0) -> None:
        super().__init__(d_head=d_head, n_heads=n_heads, base=base)
        self.d_head, self.n_heads = d_head, n_heads
        self.frequencies = tuple(base ** (-channel / d_head) for channel in range(d_head))
        self.phase = nn.Parameter(torch.zeros(n_heads, d_head))

    def structure(self) -> Rotation:
        return Rotation((Planes("half", 0, 2 * self.d_head),), None)  # a softplus first

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        """cos of the angle of every channel, then sin of them, [b, t, 2·d]."""
        check_coords(self, at)
        floating(dtype)
        angle = at.coords.double()[..., None] * constant(self.frequencies, torch.float64, at.coords.device)
        return (torch.cat([angle.cos(), angle.sin()], dim=-1).to(dtype),)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t 2*d"]:
        """Twice as many channels for queries and keys: first all cosines, then all sines."""
        if not rotates(self, x, at, side):
            return into(x, out)
        (table,) = tables_at(self, at, x.dtype)
        cos, sin = table[:, None, :, : self.d_head], table[:, None, :, self.d_head :]  # [b, 1, t, d]
        with full_precision(x):
            length = F.softplus(x.to(working_dtype(x.dtype)).contiguous())  # strides change the last bit
            if side == "query":
                check_width(self, "n_heads", x.shape[1], self.n_heads, "query heads of x")
                delta = self.phase.to(length.dtype).clamp(-2 * math.pi, 0.0)[:, None]
                cos, sin = cos * delta.cos() + sin * delta.sin(), sin * delta.cos() - cos * delta.sin()
            turned = torch.cat([length * cos, length * sin], dim=-1).to(x.dtype)
        return into(turned, out)

    def softmax_scale(self, d_head: int) -> float:
        usual_scale(d_head)  # checks it
        return usual_scale(self.d_head)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> PoPE:
        part = PoPE(**{**self.configuration, "n_heads": stop - start}).to(self.phase)
        part.phase.copy_(self.phase[start:stop])
        return part
