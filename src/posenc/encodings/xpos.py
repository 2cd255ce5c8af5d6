"""Rotary positions whose scores also fade with distance.

    q -> R(m) q · ζ^(m/s),   k -> R(n) k · ζ^(-n/s),   ζ_i = (2i/d + γ) / (1 + γ),  γ = 0.4,  s = 512
    so that pair i of the score carries ζ_i^((m-n)/s)

Sun et al. 2022, "A Length-Extrapolatable Transformer", section 3.2, and torchscale's code, which centres the exponents on
the middle of the current sequence. Here the origin is position 0 and stays there, so that cached keys remain right; the
price is a largest position, at which a key's scale would overflow.
Legend: b batch, h heads, t tokens, d d_head, n pairs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc import frequencies
from posenc.encoding import PositionalEncoding, Side
from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout, Planes
from posenc.kernels.eager import constant
from posenc.kernels.rotation import rotate, rotate_both
from posenc.kernels.sin_cos import sin_cos
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support import checks
from posenc.support.checked import checked, checked_on_failure
from posenc.support.tensors import check_coords, check_range, floating, into, rotates, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class XPos(PositionalEncoding):
    """RoPE with an exponential decay per pair; causal attention only, since it grows towards later keys.

    d_head      channels of a head, even
    base        of the rotation
    scale_base  s: positions in which the fastest fading pair falls to ζ_0 = γ/(1+γ) = 0.29
    gamma       γ
    layout      which channels make a pair; the authors' code interleaves

    Raises ValueError for a position beyond `largest_position(dtype)` (a device assert off the CPU).
    """

    traits = frozenset({"local", "shift_invariant", "causal_only"})

    @checked
    def __init__(
        self,
        d_head: int,
        *,
        base: float = 10000.0,
        scale_base: float = 512.0,
        gamma: float = 0.4,
        layout: Layout = "interleaved",
    ) -> None:
        checks.even(d_head=d_head)
        checks.positive(scale_base=scale_base, gamma=gamma)
        super().__init__(d_head=d_head, base=base, scale_base=scale_base, gamma=gamma, layout=layout)
        layouts.check(layout)
        self.d_head, self.layout = d_head, layout
        self.frequencies = frequencies.rotary(d_head, base)
        self.log_decay = tuple(math.log((2 * i / d_head + gamma) / (1 + gamma)) / scale_base for i in range(d_head // 2))
        if not self.log_decay[0]:
            raise ValueError(f"gamma, scale_base: no pair fades, got gamma={gamma:g} and scale_base={scale_base:g}")

    def structure(self) -> Rotation:
        planes = (Planes(self.layout, 0, self.d_head),)
        return Rotation(planes, planes, both=self._rotate_both)

    @checked
    def largest_position(self, dtype: torch.dtype = torch.float32) -> int:
        """The last position, either way from 0, at which ζ_0^(-p/s) still leaves `dtype` room for pairs of length 256."""
        if not dtype.is_floating_point:
            raise TypeError(f"dtype: expected a floating dtype, got {dtype}")
        return math.floor(math.log(torch.finfo(dtype).max / 256) / -self.log_decay[0])

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """cos and sin of the angle of every pair, times the decay, for queries and then for keys: [b, t, n] each."""
        cos, sin, log_decay = self.cos_sin_log_decay(at, dtype)
        query, key = log_decay.exp(), (-log_decay).exp()
        return cos * query, sin * query, cos * key, sin * key

    @checked_on_failure
    def cos_sin_log_decay(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """What the tables are made of, [b, t, n] each; queries have the decay and keys its inverse."""
        floating(dtype)
        check_coords(self, at)
        self._check_limit(at, dtype)
        sin, cos = sin_cos(at, self.frequencies, dtype)
        rate = constant(self.log_decay, torch.float64, at.coords.device)
        return cos, sin, (at.coords.double()[..., None] * rate).to(dtype)

    def _check_limit(self, at: Positions, dtype: torch.dtype) -> None:
        limit = self.largest_position(dtype)
        check_range(self, at, -limit, limit, f"the scale of a key overflows {dtype} there")

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not rotates(self, x, at, side):
            return into(x, out)
        tables = tables_at(self, at, x.dtype)
        if x.dtype != tables[0].dtype:
            self._check_limit(at, x.dtype)
        cos, sin = tables[:2] if side == "query" else tables[2:]
        return rotate(x, cos, sin, self.layout, out=out)

    def _rotate_both(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> tuple[Tensor, Tensor]:
        if at_q is not at_k or q.dtype != k.dtype:
            return self.rotate(q, at_q, "query"), self.rotate(k, at_k, "key")
        rotates(self, q, at_q, "query"), rotates(self, k, at_k, "key")
        cos, sin, cos_k, sin_k = tables_at(self, at_q, q.dtype)
        if q.dtype != cos.dtype:
            self._check_limit(at_q, q.dtype)
        return rotate_both(q, k, cos, sin, self.layout, of_keys=(cos_k, sin_k))
