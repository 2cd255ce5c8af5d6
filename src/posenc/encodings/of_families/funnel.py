"""XLNet's terms with a class token that has no position: Funnel Transformer.

    logits = ( q_i·k_j + u·k_j  +  [neither is the class token] · (position terms + segment term) ) / √d_head

Pooled tokens keep the positions of the original text, so every block reads distances in its units. Without separation the
class token has a position, and the segment of the other token of each pair.
Dai et al. 2020, "Funnel-Transformer", section 2.2 and appendix A.2; both of its computations give these terms.
Legend: b batch, h query heads, i query, j key.
"""

from __future__ import annotations

from torch import Tensor

from posenc.encoding import BiasFn
from posenc.encodings.xlnet import XLNet
from posenc.positions import Positions


class Funnel(XLNet):
    """XLNet whose tokens of negative segment are class tokens; coordinates are (position, segment).

    d_model, n_heads, d_head, base   as in TransformerXL
    separate                         class tokens have no distance and no segment (separate_cls of the configuration)

    As in XLNet: u (r_w_bias), v (r_r_bias), w_r (r_kernel), s (r_s_bias), e (seg_embed; there "same" comes last).
    """

    def __init__(
        self, d_model: int, n_heads: int, *, d_head: int | None = None, base: float = 10000.0, separate: bool = True
    ) -> None:
        super().__init__(d_model, n_heads, d_head=d_head, base=base)
        self._configure(d_model=d_model, n_heads=n_heads, d_head=self.d_head, base=base, separate=separate)
        self.separate = separate

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        terms = self.terms(q, k, at_q, at_k)
        position, segment = terms.content_position + terms.global_position, self._of_segment(q)
        query, key = at_q.coords[..., 1], at_k.coords[..., 1]

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            apart = (query[b, i] < 0) | (key[b, j] < 0)
            different = (query[b, i] != key[b, j]) & ~apart
            term = position[b, h, i, j] + segment[b, h, i, different.long()]
            return terms.global_content[b, h, i, j] + (term.masked_fill(apart, 0) if self.separate else term)

        return of_pair
