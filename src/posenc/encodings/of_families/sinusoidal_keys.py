"""A vector for every distance within reach, projected from its sinusoid and multiplied with the query like a key.

    logits += q_i·W R(i - j + shift)   where -right <= i - j + shift <= left, else 0

    R(δ) = [sin δω | cos δω],   ω_n = base^(-n/(d_model/2 - 1)),   n = 0 … d_model/2 - 1

Transformer-XL's second term alone (Dai et al. 2019, section 3.3), as the audio encoders of Gemma 3n and 4 have it: queries
come scaled, so that neither this term nor q·k is divided by √d_head. Gemma 4 shifts distances where its context is not
twice what it sees back.
Legend: b batch, h query heads, i query, j key, d d_head, m d_model, r distances within reach.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_coords, check_width, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class SinusoidalKeys(PositionalEncoding):
    """q·W R of the distance; zero beyond reach.

    d_model      channels of the sinusoid, even
    n_heads      query heads, each with its own W
    left, right  the furthest distance before the query and after it that has a vector
    d_head       channels of a head, d_model / n_heads if left out
    base         of the sinusoid
    shift        added to every distance

    Parameter: w_r [n_heads, d_head, d_model]. Raises ValueError for sizes that do not fit, and TypeError for positions
    that are not integers.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        left: int,
        right: int = 0,
        d_head: int | None = None,
        base: float = 10000.0,
        shift: int = 0,
    ) -> None:
        checks.whole(d_model=d_model, n_heads=n_heads)
        checks.whole(0, left=left, right=right)
        checks.positive(base=base)
        if d_model % 2 or d_model < 4 or (d_head is None and d_model % n_heads):
            raise ValueError(
                f"d_model: expected an even multiple of n_heads={n_heads} from 4, got {d_model}; or say d_head"
            )
        d_head = d_model // n_heads if d_head is None else d_head
        checks.whole(d_head=d_head)
        super().__init__(d_model=d_model, n_heads=n_heads, left=left, right=right, d_head=d_head, base=base, shift=shift)
        self.d_head, self.left, self.right, self.shift = d_head, left, right, shift
        step = math.log(base) / (d_model // 2 - 1)
        self.values = tuple(math.exp(-n * step) for n in range(d_model // 2))
        self.w_r = nn.Parameter(torch.empty(n_heads, d_head, d_model))
        nn.init.normal_(self.w_r, std=0.02)

    def vectors(self, dtype: torch.dtype) -> Float[Tensor, "h r d"]:
        """W R(δ) for δ = -right … left."""
        delta = torch.arange(-self.right, self.left + 1, dtype=torch.float64, device=self.w_r.device)
        angle = delta[:, None] * constant(self.values, torch.float64, self.w_r.device)
        return torch.cat([angle.sin(), angle.cos()], dim=-1).to(dtype) @ self.w_r.to(dtype).transpose(-1, -2)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_width(self, "n_heads", q.shape[1], len(self.w_r), "q")
        check_coords(self, at_q, integers=True)
        check_coords(self, at_k, integers=True)
        with full_precision(q):
            scores = q @ self.vectors(q.dtype).transpose(-1, -2)  # [b, h, i, r]
        query, key = at_q.coords, at_k.coords

        def added(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            delta = query[b, i] - key[b, j] + self.shift
            reached = (delta >= -self.right) & (delta <= self.left)
            return scores[b, h, i, (delta + self.right).clamp(0, self.left + self.right)].masked_fill(~reached, 0)

        return added

    def softmax_scale(self, d_head: int) -> float:
        """1: queries come scaled."""
        return 1.0

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> SinusoidalKeys:
        part = SinusoidalKeys(**{**self.configuration, "n_heads": stop - start}).to(self.w_r)
        part.w_r.copy_(self.w_r[start:stop])
        return part
