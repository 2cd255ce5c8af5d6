"""Transformer-XL's four terms and one more: whether two tokens belong to the same segment.

    logits = ( … + (q_i + s)·e[segment_i ≠ segment_j] ) / √d_head

Yang et al. 2019, "XLNet", section 2.5; e holds a vector for "same" and one for "different", at every layer and head.
Legend: b batch, h query heads, i query, j key, d d_head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, scale_of
from posenc.encodings.transformer_xl import TransformerXL
from posenc.kernels.sin_cos import sin_cos_table
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.tensors import check_coords

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class XLNet(TransformerXL):
    """TransformerXL with segments; coordinates are (position, segment), or the position alone with segments=False.

    d_model, n_heads, d_head, base   as in TransformerXL
    segments                         whether tokens have segments; any numbers, only their equality counts

    Parameters: u (r_w_bias), v (r_r_bias), w_r, and with segments s and e [n_heads, 2, d_head], "same" first.
    """

    def __init__(
        self, d_model: int, n_heads: int, *, d_head: int | None = None, base: float = 10000.0, segments: bool = True
    ) -> None:
        super().__init__(d_model, n_heads, d_head=d_head, base=base)
        self._configure(d_model=d_model, n_heads=n_heads, d_head=self.d_head, base=base, segments=segments)
        self.segments = segments
        self.axes = 2 if segments else 1
        self.s = nn.Parameter(torch.empty(n_heads, self.d_head)) if segments else None
        self.e = nn.Parameter(torch.empty(n_heads, 2, self.d_head)) if segments else None
        for parameter in (self.s, self.e):
            if parameter is not None:
                nn.init.normal_(parameter, std=0.02)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        check_coords(self, at)
        if self.segments:
            at = at.replaced(coords=at.coords[..., 0], tables={})
        return (sin_cos_table(at, [self.frequencies], dtype),)

    def _of_segment(self, q: Tensor) -> Float[Tensor, "b h i 2"]:
        """The term of every query for the same segment and for another."""
        if self.s is None or self.e is None:
            raise ValueError("XLNet: built with segments=False, so it has no term for them")
        scores: Tensor = (q + self.s.to(q.dtype)[:, None]) @ self.e.to(q.dtype).transpose(-1, -2)
        return scores * scale_of(self, self.d_head)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        rest = super().bias(q, k, at_q, at_k)
        if not self.segments:
            return rest
        of_segment = self._of_segment(q)
        query, key = at_q.coords[..., 1], at_k.coords[..., 1]

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return rest(b, h, i, j) + of_segment[b, h, i, (query[b, i] != key[b, j]).long()]

        return of_pair


@checked
def xlnet(d_model: int, n_heads: int, *, d_head: int | None = None, base: float = 10000.0, segments: bool = False) -> XLNet:
    """`XLNet`, without segments unless asked for: then coordinates are (position, segment).

    d_model, n_heads, d_head, base   as in TransformerXL
    segments                         whether tokens have segments

    Raises ValueError for sizes that do not fit.
    """
    return XLNet(d_model, n_heads, d_head=d_head, base=base, segments=segments)
