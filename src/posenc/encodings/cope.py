"""Contextual positions: count only the tokens that a learned gate lets through.

    g_it = σ(logit_it),   p_ij = Σ_{t = j … i} g_it,   logits_ij += q_i·e[p_ij], interpolated between whole positions

Golovneva et al. 2024, "Contextual Position Encoding: Learning to Count What's Important", section 4 and its listing
(gates read the scaled logits, e is shared by all heads). Other methods go by the name CoPE too; this is the contextual one.
Legend: b batch, h query heads, i query, j key, d d_head, n whole positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import PositionalEncoding
from posenc.encodings.bases.content_dependent import stable_argsort
from posenc.kernels import cope_counts
from posenc.positions import Positions
from posenc.structure import Scores
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_width, readable

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float


FEWEST = 512  # keys that are counted in any case


class CoPE(PositionalEncoding):
    """q·e[count of gated tokens between key and query].

    d_head       channels of a head
    n_positions  whole positions 0 … n_positions-1; a larger count is taken as the last (64 in the paper)

    The table starts at zero, as in the authors' listing.
    """

    traits = frozenset({"local", "shift_invariant", "norm_preserving", "causal_only"})

    @checked
    def __init__(self, d_head: int, *, n_positions: int = 64) -> None:
        checks.whole(n_positions=n_positions)
        super().__init__(d_head=d_head, n_positions=n_positions)
        self.d_head, self.n_positions = d_head, n_positions
        self.table = nn.Parameter(torch.zeros(n_positions, d_head))

    def finish(self, scores: Scores) -> Tensor:
        return scores.mix(scores.weights(self._with_counts(scores)))

    def _with_counts(self, scores: Scores) -> Float[Tensor, "b h i j"]:
        """The logits plus the query's product with the vector of each key's count."""
        check_width(self, "d_head", scores.q.shape[-1], self.d_head, "q")
        logits, at_k, seen = scores.logits, scores.at_k, scores.seen
        products = scores.q @ self.table.to(scores.q.dtype).T  # [b, h, i, n]

        def formula(logits: Tensor, products: Tensor, seen: Tensor) -> Tensor:
            return self._added(logits, products, at_k, seen)

        if at_k.consecutive_in is not None and cope_counts.can_serve(logits, products, seen):  # stored in order
            return cope_counts.added(logits, products, seen, formula)
        return formula(logits, products, seen)

    def _added(self, logits: Tensor, products: Tensor, at_k: Positions, may_attend: Tensor) -> Tensor:
        near, position = self._counted(logits, at_k, may_attend)
        whole = position.detach().floor()
        below = products.gather(-1, whole.long())
        above = products.gather(-1, position.detach().ceil().long())
        share = position - whole
        if near == logits.shape[-1]:
            return logits + below + (above - below) * share
        far, close = logits[..., :-near], logits[..., -near:]
        return torch.cat([far + products[..., -1:], close + below + (above - below) * share], dim=-1)

    def _counted(self, logits: Tensor, at_k: Positions, may_attend: Tensor) -> tuple[int, Tensor]:
        """How many keys at the end are counted, and their positions; all earlier keys have position n_positions - 1.

        Gates are between 0 and 1, so some hundred keys reach the last position: few of a long text, for a block of queries.
        """
        last, keys = self.n_positions - 1, logits.shape[-1]
        near = max(logits.shape[-2] + 2 * self.n_positions, FEWEST)
        while at_k.consecutive_in is not None and near < keys and readable(logits):
            part = slice(keys - near, keys)
            counts = self._counts(logits[..., part], at_k, may_attend[..., part])
            if bool((counts[..., 0] >= last).all()):
                return near, counts.clamp(max=last)
            near *= 2
        return keys, self._counts(logits, at_k, may_attend).clamp(max=last)

    @checked
    def positions(
        self, logits: Float[Tensor, "b h i j"], at_k: Positions, may_attend: Bool[Tensor, "b #h i j"]
    ) -> Float[Tensor, "b h i j"]:
        """How many gated tokens lie from each key up to the query, itself included; keys may be stored in any order."""
        return self._counts(logits, at_k, may_attend)

    def _counts(self, logits: Tensor, at_k: Positions, may_attend: Tensor) -> Tensor:
        gates = logits.sigmoid() * may_attend
        if at_k.consecutive_in is not None:  # stored in order
            return gates.flip(-1).cumsum(dim=-1).flip(-1)
        by_order = stable_argsort(at_k.order)[:, None, None, :].expand_as(gates)
        sorted_gates = gates.gather(-1, by_order)
        counts = sorted_gates.flip(-1).cumsum(dim=-1).flip(-1)
        return torch.empty_like(counts).scatter(-1, by_order, counts)
