"""Selective RoPE: the angle grows with what is read, not with the number of tokens.

    angle_t = ω·Σ_{s ≤ t} φ_s,   φ = short convolution of W x̂,   ω_n = base^(-2n/d),   W of low rank

Movahedi et al. 2025, "Selective Rotary Position Embedding", section 4, as in the authors' code (modules/rotary.py) with its
defaults: x̂ is the hidden state, in n_heads parts of length 1; pairs are (j, j + d/2); no gate, no bias.
Legend: b batch, t tokens, h query heads, g key heads, n pairs, d d_head, m d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import Side
from posenc.encodings.bases.content_dependent import ReadsEarlierTokens, running_sum, short_convolution
from posenc.frequencies.layouts import Planes
from posenc.kernels.eager import constant
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_width, for_heads, full_precision, into, turns, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float

SMALLEST = 1e-6  # added under the root of the length of x


class SelectiveRoPE(ReadsEarlierTokens):
    """Queries and keys turned by a running sum of learned steps, which each token makes from its content.

    d_model     channels of the hidden states that go into the projections
    n_heads     query heads
    d_head      channels of a head, even
    n_kv_heads  key heads, each with steps of its own; None: n_heads
    rank        of the projection to the steps
    conv_size   tokens that the short convolution reads, this one included
    base        of the frequencies that the sums are multiplied with
    parts       equal parts of the hidden state, each brought to length 1; None: n_heads

    Parameters: down [rank, d_model], up [n_kv_heads·d_head/2, rank], taps [n_kv_heads·d_head/2, conv_size]. Call
    read_hidden(x, at) once a layer; `Attention` does. With steps of 1 it is RoPE of that base. Sums are kept in fp64.
    Time O(t·d_model·rank) for the steps and O(t·d) to turn; for every token the cache holds n_kv_heads·d_head numbers more.
    """

    @checked
    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_head: int,
        *,
        n_kv_heads: int | None = None,
        rank: int = 16,
        conv_size: int = 4,
        base: float = 500000.0,
        parts: int | None = None,
    ) -> None:
        checks.whole(rank=rank, conv_size=conv_size)
        checks.even(d_head=d_head)
        key_heads = n_heads if n_kv_heads is None else n_kv_heads
        checks.whole(n_kv_heads=key_heads)
        parts = n_heads if parts is None else parts
        checks.whole(parts=parts)
        super().__init__(
            d_model=d_model,
            n_heads=n_heads,
            d_head=d_head,
            n_kv_heads=n_kv_heads,
            rank=rank,
            conv_size=conv_size,
            base=base,
            parts=parts,
        )
        if n_heads % key_heads:
            raise ValueError(f"n_kv_heads: expected a number that divides n_heads={n_heads}, got {key_heads}")
        if d_model % parts:
            raise ValueError(f"d_model: expected a multiple of parts={parts}, of n_heads unless given, got {d_model}")
        self.d_model, self.n_heads, self.d_head, self.key_heads, self.parts = d_model, n_heads, d_head, key_heads, parts
        self.frequencies = tuple(base ** (-2 * n / d_head) for n in range(d_head // 2))
        self.earlier = max(1, conv_size - 1)
        self.down = nn.Parameter(torch.empty(rank, d_model))
        self.up = nn.Parameter(torch.empty(key_heads * d_head // 2, rank))
        self.taps = nn.Parameter(torch.empty(key_heads * d_head // 2, conv_size))
        for parameter in (self.down, self.up, self.taps):
            bound = parameter.shape[1] ** -0.5
            nn.init.uniform_(parameter, -bound, bound)

    def structure(self) -> Rotation:
        return Rotation((), (Planes("half", 0, self.d_head),))  # angles come from the content

    def state_of(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None) -> tuple[Tensor, ...]:
        """W x̂ and the running sum of the steps, of every token."""
        parts = x.unflatten(-1, (self.parts, -1))
        unit = (parts * (parts.square().sum(dim=-1, keepdim=True) + SMALLEST).rsqrt()).flatten(-2)
        plain = F.linear(F.linear(unit, self.down.to(x.dtype)), self.up.to(x.dtype))
        if past is None:
            return plain, running_sum(short_convolution(plain, self.taps, at), at)
        plain_before, sums_before = self.state(past)
        steps = short_convolution(plain, self.taps, at, (past, plain_before))
        return plain, running_sum(steps, at, (past, sums_before))

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not turns(side):
            return into(x, out)
        check_width(self, "d_head", x.shape[-1], self.d_head)
        with full_precision(x):
            sums = for_heads(self, self.state(at)[1].unflatten(-1, (self.key_heads, -1)), x, "steps")  # [b, h, t, n]
            angle = sums * constant(self.frequencies, torch.float64, x.device)
            dtype = working_dtype(x.dtype)
            return rotate(x, angle.cos().to(dtype), angle.sin().to(dtype), "half", out=out)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> SelectiveRoPE:
        """The slice's query heads, each with steps of its own."""
        sizes = {"n_heads": stop - start, "n_kv_heads": stop - start, "parts": self.parts}
        part = SelectiveRoPE(**{**self.configuration, **sizes}).to(self.down)
        part.down.copy_(self.down)
        rows = [head // (self.n_heads // self.key_heads) for head in range(start, stop)]
        for name in ("up", "taps"):
            getattr(part, name).copy_(getattr(self, name).unflatten(0, (self.key_heads, -1))[rows].flatten(0, 1))
        return part
