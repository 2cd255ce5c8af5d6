"""Stick-breaking: from the nearest key backwards, each takes a share of what is left of a stick of length 1.

    a_ij = β_ij · Π_{j < t < i} (1 - β_it),   β = σ(q·k/√d)        in the place of the softmax, over the keys before the
    query

Tan et al. 2024, "Scaling Stick-Breaking Attention: An Efficient Implementation and In-depth Study", section 2. It stands
for the softmax and for any positional encoding: of two equal keys the nearer one gets more. The weights of a query sum
to at most 1; what is left of the stick goes to no value, as in the paper, or to the query's own value.
Legend: b batch, h query heads, i query, j key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import torch.nn.functional as F
from torch import Tensor

from posenc.encoding import PositionalEncoding
from posenc.encodings.bases.content_dependent import by_document_and_order
from posenc.structure import Scores
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Own = Literal["none", "share", "rest"]


class StickBreaking(PositionalEncoding):
    """Shares of a stick, broken off from the nearest key to the farthest. No parameters, any length.

    own  what the query's own key gets: "none", "share": it is the first to break off, "rest": all that the others left

    Products are sums of logarithms. A call's sinks and return_lse are refused, since there is no softmax.
    Time and memory O(queries·keys) beside the product of queries and keys, in plain torch: no fused kernel can serve it.
    Raises ValueError for another `own`.
    """

    reads_vectors = False
    traits = frozenset({"local", "shift_invariant", "norm_preserving", "causal_only"})

    @checked
    def __init__(self, *, own: Own = "none") -> None:
        checks.one_of(get_args(Own), own=own)
        super().__init__(own=own)
        self.own = own

    def finish(self, scores: Scores) -> Tensor:
        return scores.mix(scores.dropped(self._shares(scores)))

    def _shares(self, scores: Scores) -> Float[Tensor, "b h i j"]:
        """What each key breaks off the stick of each query."""
        logits, at_q, at_k = scores.masked(scores.logits), scores.at_q, scores.at_k
        index = None if at_k.consecutive_in is not None else by_document_and_order(at_k)
        z, seen = logits.masked_fill(~scores.seen, 0), scores.seen.expand_as(logits)
        here = (at_q.order[:, :, None] == at_k.order[:, None, :])[:, None]
        breaks = seen if self.own == "share" else seen & ~here
        z, breaks = _along_keys(z, index), _along_keys(breaks, index)
        with full_precision(logits):
            left = F.logsigmoid(-z).masked_fill(~breaks, 0)  # ln(1 - β)
            after = F.pad(left[..., 1:], (0, 1)).flip(-1).cumsum(dim=-1).flip(-1)  # over the keys nearer than j
            shares = (F.logsigmoid(z) + after).exp().masked_fill(~breaks, 0)
            shares = _along_keys(shares, None if index is None else index.argsort(dim=1))
            if self.own == "rest":
                shares = shares + left.sum(dim=-1, keepdim=True).exp() * (seen & here)
        return shares


def _along_keys(x: Tensor, index: Tensor | None) -> Tensor:
    """[b, h, i, j] with the keys of every row in the order of index [b, j]; as they stand without one."""
    return x if index is None else x.gather(-1, index[:, None, None, :].expand(-1, *x.shape[1:]))
