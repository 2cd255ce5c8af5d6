"""CARoPE: each token says by how much it turns what follows, one number for each head.

    angle of pair n at token t = Σ_{s ≤ t} (f_s)^n,   f_s = 1 / (softplus(w_h·x_s + b_h) + 1),   n = 0 … d/2 - 1

Veisi et al. 2025, "Context-aware Rotary Position Embedding", section 2. f lies between 0 and 1 and takes the place of
RoPE's base^(-2/d), whose powers are RoPE's frequencies. The paper has no b, yet starts as RoPE, which needs one: here w
starts at 0 and b where f = base^(-2/d). The paper does not say from which n on it counts; here from 0, as RoPE does, so
that the fastest pair turns by 1 at every token whatever it says. There is no code by the authors.
Legend: b batch, t tokens, h query heads, g key heads, n pairs, d d_head, m d_model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import Side
from posenc.encodings.bases.content_dependent import ReadsEarlierTokens, running_sum
from posenc.frequencies.layouts import Planes
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_width, exact_dtype, for_heads, full_precision, into, turns, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class CARoPE(ReadsEarlierTokens):
    """Queries and keys turned by sums of the powers of a number that every token makes from its content.

    d_model     channels of the hidden states that go into the projections
    n_heads     query heads
    d_head      channels of a head, even
    n_kv_heads  key heads, each with numbers of its own; None: n_heads
    base        of the RoPE that it starts from

    Parameters: weight [n_kv_heads, d_model], offset [n_kv_heads]. Pairs are (j, j + d/2). Call read_hidden(x, at) once a
    layer; `Attention` does. Sums are kept in fp64.
    Time O(t·d_model·n_kv_heads) for f and O(t·d) to turn; for every token the cache holds n_kv_heads·d_head/2 numbers more.
    """

    exact_parameters = ("weight", "offset")
    earlier = 1

    @checked
    def __init__(
        self, d_model: int, n_heads: int, d_head: int, *, n_kv_heads: int | None = None, base: float = 10000.0
    ) -> None:
        checks.even(d_head=d_head)
        key_heads = n_heads if n_kv_heads is None else n_kv_heads
        super().__init__(d_model=d_model, n_heads=n_heads, d_head=d_head, n_kv_heads=n_kv_heads, base=base)
        if n_heads % key_heads:
            raise ValueError(f"n_kv_heads: expected a number that divides n_heads={n_heads}, got {key_heads}")
        softplus = base ** (2 / d_head) - 1
        if not 0 < softplus < 1e30:
            raise ValueError(f"base: expected a number above 1 with base^(2/d_head) below 1e30, got {base}")
        self.d_model, self.n_heads, self.d_head, self.key_heads = d_model, n_heads, d_head, key_heads
        self.weight = nn.Parameter(torch.zeros(key_heads, d_model))
        self.offset = nn.Parameter(
            torch.full((key_heads,), softplus + math.log(-math.expm1(-softplus)), dtype=exact_dtype())
        )

    def structure(self) -> Rotation:
        return Rotation((), (Planes("half", 0, self.d_head),))  # angles come from the content

    def state_of(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None) -> tuple[Tensor, ...]:
        """The angle of every token, key head and pair, [b, t, g·n]."""
        f = 1 / (F.softplus(F.linear(x, self.weight.to(x.dtype), self.offset.to(x.dtype))) + 1)
        powers = f.double()[..., None] ** torch.arange(self.d_head // 2, device=x.device)  # [b, t, g, n]
        return (running_sum(powers.flatten(2), at, None if past is None else (past, self.state(past)[0])),)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not turns(side):
            return into(x, out)
        check_width(self, "d_head", x.shape[-1], self.d_head)
        with full_precision(x):
            angle = for_heads(self, self.state(at)[0].unflatten(-1, (self.key_heads, -1)), x, "angles")  # [b, h, t, n]
            dtype = working_dtype(x.dtype)
            return rotate(x, angle.cos().to(dtype), angle.sin().to(dtype), "half", out=out)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> CARoPE:
        """The slice's query heads, each with numbers of its own."""
        part = CARoPE(**{**self.configuration, "n_heads": stop - start, "n_kv_heads": stop - start}).to(self.weight)
        rows = [head // (self.n_heads // self.key_heads) for head in range(start, stop)]
        part.weight.copy_(self.weight[rows])
        part.offset.copy_(self.offset[rows])
        return part
