"""T5's bias, multiplied by a gate that each query computes: WavLM.

    logits += g_hi · b[h, bucket(i - j)],   g_hi = α·(β·c_h - 1) + 2,   α, β = σ(sums of four channels of W x_hi + w)

x_hi is head h's slice of the hidden state of token i, before any projection.
Chen et al. 2021, "WavLM", section 3.1, after Chi et al. 2021; two numbers are each the sum of four, as in their code.
Legend: b batch, t tokens, h query heads, i query, j key, d d_head, m d_model = h·d.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn
from posenc.encodings.bases.content_dependent import Reads, ReadsHidden
from posenc.encodings.t5 import T5
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_width

if TYPE_CHECKING:
    from posenc.support.shapes import Float

SUMMED = 4  # channels behind each of the two gates


class GatedT5(ReadsHidden):
    """The bias of T5, both ways, times a gate for every query and head.

    n_heads, d_head          query heads and their channels; the hidden state has n_heads · d_head
    n_buckets, max_distance  of the buckets, 320 and 800 in WavLM
    reads                    "hidden": call read_hidden(x, at) once a layer; "query": the gate reads the query instead

    A slice of the heads reads the hidden state of the whole model, or its own heads' channels of it.
    Parameters: rule.table [n_buckets, n_heads], gate [8, d_head] and gate_offset [8], constant [n_heads].
    """

    def __init__(
        self, n_heads: int, d_head: int, *, n_buckets: int = 320, max_distance: int = 800, reads: Reads = "hidden"
    ) -> None:
        checks.whole(n_heads=n_heads, d_head=d_head)
        super().__init__(n_heads=n_heads, d_head=d_head, n_buckets=n_buckets, max_distance=max_distance, reads=reads)
        self.n_heads, self.d_head = n_heads, d_head
        self.first_head, self.all_heads = 0, n_heads  # of the model, where this is a slice of its heads
        self.rule = T5(n_heads, n_buckets=n_buckets, max_distance=max_distance, bidirectional=True)
        self.gate = nn.Parameter(torch.empty(2 * SUMMED, d_head))
        self.gate_offset = nn.Parameter(torch.zeros(2 * SUMMED))
        self.constant = nn.Parameter(torch.ones(n_heads))
        nn.init.normal_(self.gate, std=0.02)

    def gates(self, x: Float[Tensor, "b h t d"]) -> Float[Tensor, "b h t"]:
        """Between 1 and 3 where the constant is 1: the weight of the bias for each token and head."""
        check_width(self, "d_head", x.shape[-1], self.d_head)
        check_width(self, "n_heads", x.shape[1], self.n_heads)
        projected = F.linear(x, self.gate.to(x.dtype), self.gate_offset.to(x.dtype))
        first, second = projected.unflatten(-1, (2, SUMMED)).sum(-1).sigmoid().unbind(-1)
        gates: Tensor = first * (second * self.constant.to(x.dtype)[:, None] - 1) + 2
        return gates

    def of_query(self, q: Tensor) -> Tensor:
        return self.gates(q)

    def of_hidden(self, x: Float[Tensor, "b t m"]) -> Float[Tensor, "b t h"]:
        if x.shape[-1] == self.all_heads * self.d_head:
            x = x.narrow(-1, self.first_head * self.d_head, self.n_heads * self.d_head)
        check_width(self, "d_model", x.shape[-1], self.n_heads * self.d_head)
        return self.gates(x.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)).transpose(1, 2)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        gates = self.state(q, at_q)
        ungated = self.rule.bias(q, k, at_q, at_k)
        return lambda b, h, i, j: gates[b, h, i] * ungated(b, h, i, j)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> GatedT5:
        part = GatedT5(**{**self.configuration, "n_heads": stop - start}).to(self.gate)
        part.first_head, part.all_heads = self.first_head + start, self.all_heads
        part.rule.table.copy_(self.rule.table[:, start:stop])
        part.gate.copy_(self.gate)
        part.gate_offset.copy_(self.gate_offset)
        part.constant.copy_(self.constant[start:stop])
        return part


@checked
def wavlm(n_heads: int, d_head: int, *, n_buckets: int = 320, max_distance: int = 800) -> GatedT5:
    """`GatedT5`, for attention both ways.

    n_heads, d_head  query heads and their channels; hidden states have n_heads·d_head
    n_buckets        rows of the table
    max_distance     from here on, everything falls into the last bucket

    Raises ValueError for sizes that do not fit.
    """
    return GatedT5(n_heads, d_head, n_buckets=n_buckets, max_distance=max_distance)
