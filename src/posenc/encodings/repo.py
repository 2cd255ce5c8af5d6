"""Context re-positioning: every token computes a position of its own for every head, a real number, for RoPE to turn to.

    z = (SiLU(x W_g) ⊙ (x W_c)) w_h,   q̂ = R(z)q,   k̂ = R(z')k

Li et al. 2025, "RePo: Language Models with Context Re-Positioning", section 3: W_g and W_c are shared by the heads of a
layer, w is each head's own. The index of a token is not read at all. The authors give the lower five layers plain
RoPE: PerLayer([RoPE(d_head)] * 5 + [RePo(…), …]). Their code has as many key heads as query heads.
Legend: b batch, t tokens, h query heads, g key heads, n pairs, d d_head, m d_model, r width of W_g and W_c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import Side
from posenc.encodings.bases.content_dependent import ReadsEarlierTokens
from posenc.frequencies.layouts import Layout, Planes
from posenc.kernels.eager import constant
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_width, for_heads, full_precision, into, turns, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class RePo(ReadsEarlierTokens):
    """RoPE at positions that a small network reads from the hidden states.

    d_model     channels of the hidden states that go into the projections
    n_heads     query heads
    d_head      channels of a head, even
    n_kv_heads  key heads, each with positions that its query heads share; None: n_heads
    width       of W_g and W_c; None: d_model / 8, as in the paper
    base        of the frequencies; 500 000 in the authors' models
    layout      which channels make a pair

    Parameters: gate and content [width, d_model], assign [n_kv_heads, width]. Call read_hidden(x, at) once a layer;
    `Attention` does. A network that gives all tokens one position is NoPE. Angles are computed in fp64.
    Time O(t·d_model·width) for the positions and O(t·d) to turn; for every token the cache holds n_kv_heads numbers more.
    """

    traits = frozenset({"local", "shift_invariant", "norm_preserving"})
    earlier = 0

    @checked
    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_head: int,
        *,
        n_kv_heads: int | None = None,
        width: int | None = None,
        base: float = 500000.0,
        layout: Layout = "half",
    ) -> None:
        checks.whole(d_model=d_model, n_heads=n_heads)
        checks.even(d_head=d_head)
        checks.positive(base=base)
        key_heads = n_heads if n_kv_heads is None else n_kv_heads
        width = max(1, d_model // 8) if width is None else width
        checks.whole(n_kv_heads=key_heads, width=width)
        super().__init__(
            d_model=d_model, n_heads=n_heads, d_head=d_head, n_kv_heads=n_kv_heads, width=width, base=base, layout=layout
        )
        if n_heads % key_heads:
            raise ValueError(f"n_kv_heads: expected a number that divides n_heads={n_heads}, got {key_heads}")
        self.d_model, self.n_heads, self.d_head, self.key_heads, self.layout = d_model, n_heads, d_head, key_heads, layout
        self.frequencies = tuple(base ** (-2 * n / d_head) for n in range(d_head // 2))
        self.gate, self.content = nn.Parameter(torch.empty(width, d_model)), nn.Parameter(torch.empty(width, d_model))
        self.assign = nn.Parameter(torch.empty(key_heads, width))
        for parameter in (self.gate, self.content, self.assign):
            nn.init.trunc_normal_(parameter, std=0.02, a=-0.06, b=0.06)

    def structure(self) -> Rotation:
        return Rotation((), (Planes(self.layout, 0, self.d_head),))  # angles come from the content

    def state_of(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None) -> tuple[Tensor, ...]:
        """The position of every token, [b, t, g], which depends on that token alone."""
        hidden = F.silu(F.linear(x, self.gate.to(x.dtype))) * F.linear(x, self.content.to(x.dtype))
        return (F.linear(hidden, self.assign.to(x.dtype)),)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not turns(side):
            return into(x, out)
        check_width(self, "d_head", x.shape[-1], self.d_head)
        with full_precision(x):
            position = for_heads(self, self.state(at)[0], x, "positions").double()  # [b, h, t]
            angle = position[..., None] * constant(self.frequencies, torch.float64, x.device)
            dtype = working_dtype(x.dtype)
            return rotate(x, angle.cos().to(dtype), angle.sin().to(dtype), self.layout, out=out)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> RePo:
        """The slice's query heads, each with positions of its own."""
        part = RePo(**{**self.configuration, "n_heads": stop - start, "n_kv_heads": stop - start}).to(self.gate)
        part.gate.copy_(self.gate)
        part.content.copy_(self.content)
        part.assign.copy_(self.assign[[head // (self.n_heads // self.key_heads) for head in range(start, stop)]])
        return part
