"""Learned relative vectors for keys and values, clipped at a largest distance.

    logits += q_i·a^K[c] / √d_head,   out_i += Σ_j probs_ij · a^V[c],   c = clip(j - i, -k, k)

Shaw et al. 2018, "Self-Attention with Relative Position Representations", equations 3 and 4; shared by all heads.
Legend: b batch, h query heads, i query, j key, d d_head, r = 2k+1 relative vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding, Site, check_width
from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Int


class Shaw(PositionalEncoding):
    """Relative vectors on keys and, unless values=False, on values.

    d_head        channels of a head
    max_distance  k: further away counts as this far (16 in the paper's base model)
    values        whether values get vectors too; without them the fused backends can serve it
    """

    def __init__(self, d_head: int, *, max_distance: int = 16, values: bool = True) -> None:
        super().__init__(d_head=d_head, max_distance=max_distance, values=values)
        self.d_head, self.max_distance = d_head, max_distance
        self.sites = Site.BIAS | Site.VALUE if values else Site.BIAS
        self.keys = nn.Parameter(torch.empty(2 * max_distance + 1, d_head))
        nn.init.xavier_uniform_(self.keys)
        self.values = nn.Parameter(torch.empty(2 * max_distance + 1, d_head)) if values else None
        if self.values is not None:
            nn.init.xavier_uniform_(self.values)

    def row(self, query: Int[Tensor, "*s"], key: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        """Which of the 2k+1 vectors: 0 is k or more before the query, k is the query itself, 2k is k or more after."""
        return (key - query).clamp(-self.max_distance, self.max_distance) + self.max_distance

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "d_head", q.shape[-1], self.d_head)
        self.check_coords(at_q, integers=True)
        self.check_coords(at_k, integers=True)
        scores = q @ self.keys.to(q.dtype).T * self.softmax_scale(self.d_head)  # [b, h, i, r]
        query, key = at_q.coords, at_k.coords
        return lambda b, h, i, j: scores[b, h, i, self.row(query[b, i], key[b, j])]

    def value(self, probs: Tensor, at_q: Positions, at_k: Positions) -> Tensor | None:
        if self.values is None:
            return None
        row = self.row(at_q.coords[:, None, :, None], at_k.coords[:, None, None, :]).expand_as(probs)
        by_row = probs.new_zeros(*probs.shape[:3], len(self.values)).scatter_add(-1, row, probs)  # [b, h, i, r]
        return by_row @ self.values.to(probs.dtype)
