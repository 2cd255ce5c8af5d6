"""T5's buckets with biases that each token computes from its hidden state.

    logits += (W_h x_i + w_h)[bucket(i - j)]

x_i is the hidden state that goes into the projections. Keys after the query share bucket 0.
Qi et al. 2020, "ProphetNet", and its code (get_main_relative_pos_embeddings).
Legend: b batch, t tokens, h query heads, i query, j key, d d_head, m d_model, n buckets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, usual_scale
from posenc.encodings.bases.content_dependent import Reads, ReadsHidden
from posenc.encodings.t5 import Buckets
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_coords, check_width, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class T5OfContent(ReadsHidden):
    """(W x + w)[bucket(distance)], for causal attention.

    n_heads                  query heads
    d_in                     channels of what is read: d_model for hidden states, d_head for queries
    n_buckets, max_distance  of the buckets, 32 and 128 in ProphetNet
    reads                    "hidden": call read_hidden(x, at) once a layer. "query": every head's query replaces x
    scale                    the softmax scale: None is 1/√d_head

    Parameters: project [n_heads, n_buckets, d_in] and offset [n_heads, n_buckets].
    """

    traits = frozenset({"local", "shift_invariant", "norm_preserving", "causal_only"})

    def __init__(
        self,
        n_heads: int,
        d_in: int,
        *,
        n_buckets: int = 32,
        max_distance: int = 128,
        reads: Reads = "hidden",
        scale: float | None = None,
    ) -> None:
        checks.whole(n_heads=n_heads, d_in=d_in, n_buckets=n_buckets, max_distance=max_distance)
        if scale is not None:
            checks.positive(scale=scale)
        super().__init__(
            n_heads=n_heads, d_in=d_in, n_buckets=n_buckets, max_distance=max_distance, reads=reads, scale=scale
        )
        self.n_heads, self.d_in, self.scale = n_heads, d_in, scale
        self.buckets = Buckets.of(n_buckets, max_distance, bidirectional=False)
        self.project = nn.Parameter(torch.empty(n_heads, n_buckets, d_in))
        self.offset = nn.Parameter(torch.zeros(n_heads, n_buckets))
        nn.init.normal_(self.project, std=0.02)

    def of_hidden(self, x: Float[Tensor, "b t m"]) -> Float[Tensor, "b t h n"]:
        check_width(self, "d_in", x.shape[-1], self.d_in)
        return torch.einsum("btm,hnm->bthn", x, self.project.to(x.dtype)) + self.offset.to(x.dtype)

    def of_query(self, q: Float[Tensor, "b h t d"]) -> Float[Tensor, "b h t n"]:
        check_width(self, "d_in", q.shape[-1], self.d_in, "q")
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        return q @ self.project.to(q.dtype).transpose(-1, -2) + self.offset.to(q.dtype)[:, None]

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_coords(self, at_q, integers=True)
        check_coords(self, at_k, integers=True)
        with full_precision(q):
            numbers = self.state(q, at_q)
        query, key = at_q.coords, at_k.coords
        return lambda b, h, i, j: numbers[b, h, i, self.buckets(query[b, i] - key[b, j])]

    def softmax_scale(self, d_head: int) -> float:
        return usual_scale(d_head) if self.scale is None else self.scale

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> T5OfContent:
        part = T5OfContent(**{**self.configuration, "n_heads": stop - start}).to(self.project)
        part.project.copy_(self.project[start:stop])
        part.offset.copy_(self.offset[start:stop])
        return part
