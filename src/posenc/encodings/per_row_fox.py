"""FoX whose gates a query computes for itself: every query has a product with each token between it and the key.

    logits_ij += Σ_{t = j … i-1} ln σ(u_i·v_t / √w),   u = U_h·x,  v = V_h·x, of w channels

x-transformers' PerRowDataDependentAlibi. FoX (fox.py) is the case in which a gate does not depend on the query; there the
gates after the key up to the query count, here the key's own and not the query's. GRAPE-AP has such a sum with a norm,
slopes and turned pairs.
Legend: b batch, t tokens, h query heads, i query, j key, m d_model, w channels of u and v.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn
from posenc.encodings.bases.content_dependent import ReadsEarlierTokens, by_document_and_order, taken
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_width, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class PerRowFoX(ReadsEarlierTokens):
    """The sum of ln σ(u_i·v_t/√w) over the tokens t from the key on, before the query.

    d_model  channels of the hidden states that go into the projections
    n_heads  query heads
    width    w, 8 in x-transformers

    Parameter: weight [2·n_heads·width, d_model], U of all heads, then V: x-transformers' to_forget_gates.0.weight. Call
    read_hidden(x, at) once a layer; `Attention` does.
    Time O(queries·keys·width) and memory O(queries·keys); for every token the cache holds 2·n_heads·width numbers more.
    """

    reads_vectors = False
    earlier = 0

    @checked
    def __init__(self, d_model: int, n_heads: int, *, width: int = 8) -> None:
        checks.whole(d_model=d_model, n_heads=n_heads, width=width)
        super().__init__(d_model=d_model, n_heads=n_heads, width=width)
        self.d_model, self.n_heads, self.width = d_model, n_heads, width
        self.weight = nn.Parameter(torch.empty(2 * n_heads * width, d_model).uniform_(-(d_model**-0.5), d_model**-0.5))

    def state_of(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None) -> tuple[Tensor, ...]:
        """u and v of every token, [b, t, 2·h·w]."""
        return (F.linear(x, self.weight.to(x.dtype)),)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        u, v = (
            self.state(at)[0].to(q.dtype).unflatten(-1, (2, self.n_heads, self.width))[:, :, side].transpose(1, 2)
            for side, at in enumerate((at_q, at_k))
        )
        order, document, place = at_k.order, at_k.document, None
        if at_k.consecutive_in is None:
            index = by_document_and_order(at_k)
            v, order, document = (
                taken(v.transpose(1, 2), index).transpose(1, 2),
                order.gather(1, index),
                document.gather(1, index),
            )
            place = index.argsort(dim=1)
        before = (order[:, None] < at_q.order[:, :, None]) & (document[:, None] == at_q.document[:, :, None])  # b i j
        with full_precision(q):
            gates = F.logsigmoid(u @ v.transpose(-1, -2) * self.width**-0.5).masked_fill(~before[:, None], 0.0)
            total = gates.flip(-1).cumsum(dim=-1).flip(-1)  # small sums first

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return total[b, h, i, j if place is None else place[b, j]]

        return of_pair

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> PerRowFoX:
        part = PerRowFoX(self.d_model, stop - start, width=self.width).to(self.weight)
        rows = self.weight.unflatten(0, (2, self.n_heads, self.width))[:, start:stop]
        part.weight.copy_(rows.flatten(0, 2))
        return part
