"""HSTU: a learned number for the distance and one for the time between two events, and SiLU instead of the softmax.

    a_ij = SiLU(q_i·k_j + p[i - j] + w[bucket(t'_i - t_j)])        in the place of the softmax, over the keys that are seen
    bucket(t) = ⌊ln(max(|t|, 1)) / 0.301⌋, at most the last

t_j is the time of event j, t'_i that of the event after i: what is predicted, whose time is known. Zhai et al. 2024,
"Actions Speak Louder than Words: Trillion-Parameter Sequential Transducers for Generative Recommendations", section 3,
equation 2, which divides by nothing; a layer norm follows in equation 3. The authors' code divides what SiLU returns by the
padded length (research/modeling/sequential/hstu.py, ops/pytorch/pt_hstu_attention.py). The buckets are the code's: 0.301 is
the decimal logarithm of 2, the logarithm is the natural one.
Legend: b batch, h query heads, i query, j key, N max_positions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding, usual_scale
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.structure import Scores
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_accepted, check_coords

if TYPE_CHECKING:
    from posenc.support.shapes import Int

Form = Literal["paper", "code"]
WIDTH = 0.301  # of a bucket, in natural logarithms
LONGEST = 2**62  # times are no further apart


class HSTU(PositionalEncoding):
    """SiLU(q·k + p[index of query - index of key] + w[bucket of the time between]), without a softmax.

    max_positions  N: two events of one list are fewer than N apart
    n_buckets      buckets of time after the first, which holds what is less than a bucket's width apart
    form           "paper": the SiLU alone. "code": divided by max_positions

    Coordinates are three whole numbers: the index of an event, its time, and the time of the next one. The last event of a
    list takes the time of what is asked for, or its own, as in the authors' code.
    Parameters, shared by all heads: position_table [2N - 1], from a key N - 1 before the query to one N - 1 after it;
    time_table [n_buckets + 1]. q·k is not divided by √d_head. A call's sinks and return_lse are refused, since there is no
    softmax. Time and memory O(queries·keys), in plain torch.
    Raises ValueError for events of a list that are N or more apart, TypeError for coordinates that are not integers.
    """

    reads_vectors = False
    axes = 3

    @checked
    def __init__(self, max_positions: int, *, n_buckets: int = 128, form: Form = "paper") -> None:
        checks.whole(max_positions=max_positions, n_buckets=n_buckets)
        checks.one_of(get_args(Form), form=form)
        super().__init__(max_positions=max_positions, n_buckets=n_buckets, form=form)
        self.max_positions, self.form = max_positions, form
        starts = (math.ceil(math.exp(WIDTH * n)) for n in range(1, min(n_buckets, int(math.log(LONGEST) / WIDTH)) + 1))
        self.starts = tuple(starts)
        self.position_table = nn.Parameter(torch.empty(2 * max_positions - 1).normal_(std=0.02))
        self.time_table = nn.Parameter(torch.empty(n_buckets + 1).normal_(std=0.02))

    def bucket(self, between: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        """The row of time_table for a time between two events."""
        starts = constant(self.starts, torch.int64, between.device)
        return torch.bucketize(between.abs().long(), starts, right=True)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        for at in (at_q, at_k):
            check_coords(self, at, integers=True)
        index_q, _, next_time = at_q.coords.unbind(-1)
        index_k, time, _ = at_k.coords.unbind(-1)
        self._check_distances(at_q, at_k)
        positions, times, most = self.position_table.to(q.dtype), self.time_table.to(q.dtype), self.max_positions - 1

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            apart = (index_k[b, j] - index_q[b, i]).clamp(-most, most) + most
            return positions[apart.long()] + times[self.bucket(next_time[b, i] - time[b, j])]

        return of_pair

    def _check_distances(self, at_q: Positions, at_k: Positions) -> None:
        apart = (at_q.coords[:, :, None, 0] - at_k.coords[:, None, :, 0]).abs()
        other = (at_q.document[:, :, None] != at_k.document[:, None]) | (at_q.document < 0)[:, :, None]
        message = f"HSTU: two events of one list are {{}} apart; expected fewer than max_positions={self.max_positions}"
        check_accepted(apart, (apart < self.max_positions) | other, message)

    def finish(self, scores: Scores) -> Tensor:
        weights = F.silu(scores.masked(scores.logits).masked_fill(~scores.seen, 0))  # SiLU(0) = 0: unseen keys add nothing
        return scores.mix(scores.dropped(weights / self.max_positions if self.form == "code" else weights))

    def softmax_scale(self, d_head: int) -> float:
        """1: products are not divided."""
        usual_scale(d_head)
        return 1.0
