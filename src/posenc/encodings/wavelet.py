"""Wavelets of the distance: vectors that show where a key lies, in windows of several widths. Nothing is learned.

    logits += q_i·p[i - j] / √d_head,    p[t]_c = (1 - u²)·exp(-u²/2),    u = (t - b_c)/a_c

(a_c, b_c) are all pairs of a scale a in {1, 2, 4, …, 2^(s-1)} and a shift b in {0, 1, …, d_head/s - 1}. Oka et al. 2025,
"Wavelet-based Positional Representation for Long Context", section 5.1, equations 10 to 14: Shaw's relative vectors, on
keys alone, with the Ricker wavelet in the place of a table, and no clipping. All heads share them.
Legend: b batch, h query heads, i query, j key, c channel of d d_head, s scales, n distances.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import BiasFn, PositionalEncoding, scale_of
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.structure import Relative, Vectors
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_width

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


class Wavelet(PositionalEncoding):
    """q_i·p[i - j] beside q_i·k_j, p a Ricker wavelet in each channel. No parameters; any distances, integers or reals.

    d_head     channels of a head, a multiple of n_scales
    n_scales   s: widths of the window, each twice the one before; None: 8, as in the paper, or as many as divide the head
    narrowest  the smallest scale; the paper takes 1 for models trained on 512 or 1024 tokens, and 4 for 4096

    Channels are ordered by scale, then by shift. Any other order would be a permutation of the channels of q and k.
    Time O(queries·(queries + keys)·d_head) on consecutive positions, O(queries·keys·d_head) elsewhere, where every pair has
    its own wavelets; memory O(queries·keys·d_head/n_scales) there.
    Raises ValueError for scales that do not divide the head.
    """

    @checked
    def __init__(self, d_head: int, *, n_scales: int | None = None, narrowest: float = 1.0) -> None:
        checks.whole(d_head=d_head)
        checks.positive(narrowest=narrowest)
        n_scales = math.gcd(d_head, 8) if n_scales is None else n_scales
        checks.whole(n_scales=n_scales)
        if d_head % n_scales:
            raise ValueError(f"n_scales: d_head={d_head} cannot be shared evenly by {n_scales} scales")
        super().__init__(d_head=d_head, n_scales=n_scales, narrowest=narrowest)
        self.d_head, self.scales = d_head, tuple(narrowest * 2.0**n for n in range(n_scales))

    def _wavelets(self, t: Num[Tensor, "*s"]) -> Float[Tensor, "*s d"]:
        """p[t] in fp64, t = query - key."""
        return torch.cat([self._at_scale(t, scale) for scale in self.scales], dim=-1)

    def _at_scale(self, t: Tensor, scale: float) -> Tensor:
        """The channels of one scale, one for each shift."""
        shifts = constant(tuple(float(b) for b in range(self.d_head // len(self.scales))), torch.float64, t.device)
        square = ((t[..., None].double() - shifts) / scale).square()
        return (1 - square) * (-square / 2).exp()

    def structure(self) -> Vectors:
        return Vectors(self._vectors)

    def _vectors(self, q: Tensor, at_q: Positions, at_k: Positions, first: Tensor, n: int) -> Relative:
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        distance = -(first[:, None] + torch.arange(n, device=q.device))  # the table is of key - query
        return Relative(q, q, self._wavelets(distance).to(q.dtype)[:, None], None, first)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        """With consecutive positions q meets the vector of every distance once, and a pair finds its own there."""
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_coords(self, at_q)
        check_coords(self, at_k)
        scaled = q * scale_of(self, self.d_head)
        if at_q.consecutive_in == at_k.consecutive_in == "row":
            keys = at_k.length
            offset = at_q.coords[:, :1] - at_k.coords[:, :1]
            distance = offset + torch.arange(1 - keys, at_q.length, device=offset.device)  # [b, n]
            scores = scaled @ self._wavelets(distance).to(q.dtype).transpose(-1, -2)[:, None]  # [b, h, i, n]
            return lambda b, h, i, j: scores[b, h, i, i - j + (keys - 1)]
        distance = at_q.coords[:, :, None] - at_k.coords[:, None, :]  # [b, i, j]
        parts = zip(scaled.chunk(len(self.scales), dim=-1), self.scales, strict=True)
        added = sum(
            torch.einsum("bhic,bijc->bhij", part, self._at_scale(distance, scale).to(q.dtype).expand(len(q), -1, -1, -1))
            for part, scale in parts
        )
        assert isinstance(added, Tensor)
        return lambda b, h, i, j: added[b, h, i, j]
