"""A forget gate for every channel: a query forgets each channel of a key at a speed of its own.

    logit_ij = Σ_c q_ic k_jc exp(P_ic - P_jc) / √d,   P_c = running sum of ln σ(w_hc·x_t + b_hc)

Averbuch and Pai 2026, "Wall attention" (Tilde Research, 2 June 2026), as in flash-linear-attention: fla/layers/wall_attn.py
and ops/wall_attn. With a gate of each head on top: Stack(Wall(…), FoX(…)), `use_scalar_gate` there.

exp(P_i) and exp(-P_j) apart would overflow. Queries are taken by blocks, with A = P of the last token before the block:
    exp(P_i - P_j) = exp(P_i - A)·exp(A - P_j)      both at most 1 for keys before the block
Keys k·exp(A - P_j) go from one block to the next by one more factor. A block is halved until one token is left.
Legend: b batch, h query heads, i query, j key, t tokens, d d_head, m d_model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.encoding import BiasFn, scale_of
from posenc.encodings.bases.content_dependent import ForgetGates, by_document_and_order, carried, cut, entries, filled_up
from posenc.positions import Positions
from posenc.structure import Blocks
from posenc.support.checked import checked
from posenc.support.tensors import check_width, exact_dtype, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float

BLOCK = 128  # queries that are taken at once: a power of 2


class Wall(ForgetGates):
    """Σ_c q_c k_c exp(P_c(query) - P_c(key)) in the place of q·k, P running sums of log gates of every head and channel.

    d_model     channels of the hidden states that go into the projections
    n_heads     query heads
    d_head      channels of a head
    first_bias  b at the start: 8 in the authors' code, where a gate keeps 0.9997

    Parameters: weight [n_heads·d_head, d_model], offset [n_heads·d_head]. Call read_hidden(x, at) once a layer;
    `Attention` does. With equal gates in all channels of a head it is FoX's decay as a factor instead of an addend. A
    call's own scale and softcap are refused, since q·k is replaced.
    Time O(queries·keys·d). A causal row of more than 128 tokens is taken by blocks of 128 queries, in memory
    O(queries·(d + 128)) without gradients; other calls hold O(queries·keys). Queries at other positions than the keys, as
    in decoding, are taken one by one. The cache holds n_heads·d_head running sums per token, in fp64.
    """

    @checked
    def __init__(self, d_model: int, n_heads: int, d_head: int, *, first_bias: float = 8.0) -> None:
        dtype = exact_dtype()
        if abs(first_bias) > (largest := torch.finfo(dtype).max):
            raise ValueError(f"first_bias: expected at most {largest:g} in size, as {dtype} holds it, got {first_bias!r}")
        super().__init__(d_model, n_heads, per_head=d_head, offset=first_bias, d_head=d_head, first_bias=first_bias)
        self.d_head = d_head

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        query, key = (self._of_heads(q, at) for at in (at_q, at_k))
        with full_precision(q):
            if not (q.shape[2] and k.shape[2]):
                return entries(q @ k.transpose(-1, -2))  # no pairs
            if at_q is not at_k:
                scores = one_by_one(q, k, query, key)
            elif at_k.consecutive_in == "row":
                scores = square(by_blocks(q, k, key), q.shape[2])
            else:
                index = by_document_and_order(at_k)[:, None, :, None]
                back = index.argsort(dim=2)
                q_, k_, key = (x.gather(2, index.expand_as(x)) for x in (q, k, key))
                scores = square(by_blocks(q_, k_, key), q.shape[2])
                scores = scores.gather(2, back.expand_as(scores))
                scores = scores.gather(3, back.transpose(2, 3).expand_as(scores))
            correction = (scores - q @ k.transpose(-1, -2)).mul_(scale_of(self, self.d_head))
        return entries(correction)

    def structure(self) -> Blocks:
        return Blocks(self._logits, BLOCK)

    def _logits(self, q: Tensor, k: Tensor, at: Positions) -> Iterator[Tensor]:
        return cut(by_blocks(q * scale_of(self, self.d_head), k, self._of_heads(q, at)), q.shape[2])

    def _of_heads(self, q: Tensor, at: Positions) -> Float[Tensor, "b h t d"]:
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        sums: Tensor = self.sums(at).unflatten(-1, (self.n_heads, self.d_head))
        return sums.transpose(1, 2)


def factor(between: Float[Tensor, "*s"], dtype: torch.dtype) -> Float[Tensor, "*s"]:
    """exp of what the sums lost between two tokens. Between tokens of one document, in causal order, it is at most 1; where
    one of them is padding or of another document the sums may grow, and nothing may overflow: the pair is hidden later."""
    return between.clamp(max=0).to(dtype).exp()


def one_by_one(
    q: Float[Tensor, "b h i d"], k: Float[Tensor, "b h j d"], query: Float[Tensor, "b h i d"], key: Float[Tensor, "b h j d"]
) -> Float[Tensor, "b h i j"]:
    """Σ_c q_c k_c exp(query_c - key_c), query by query; no channel grows, whichever sum is larger."""
    rows = [(k * factor(query[:, :, i, None] - key, q.dtype)) @ q[:, :, i, :, None] for i in range(q.shape[2])]
    return torch.cat(rows, dim=-1).transpose(-1, -2)


def by_blocks(
    q: Float[Tensor, "b h t d"], k: Float[Tensor, "b h t d"], sums: Float[Tensor, "b h t d"]
) -> Iterator[Float[Tensor, "b h i j"]]:
    """The same for tokens in causal order, each a query and a key: blocks of queries with all keys up to the end of their
    block, the last token again where the last block is not full. Entries for later keys are -inf.
    """
    filled = filled_up(q.shape[2], BLOCK, q.device)
    q, k, sums = (x.index_select(2, filled).unflatten(2, (-1, BLOCK)) for x in (q, k, sums))  # [b, h, blocks, B, d]
    last = sums[..., -1:, :]
    before = torch.cat([sums[:, :, :1, :1], last[:, :, :-1]], dim=2)
    decay = factor(last - before, q.dtype)
    queries, keys = q * factor(sums - before, q.dtype), k * factor(last - sums, q.dtype)
    return carried(queries, keys, _within(q, k, sums), lambda held, block: held * decay[:, :, block])


def square(blocks: Iterator[Float[Tensor, "b h i j"]], tokens: int) -> Float[Tensor, "b h t t"]:
    """All blocks of queries in one matrix, with 0 for later keys."""
    rows = list(blocks)
    index, keys = torch.arange(tokens, device=rows[0].device), rows[-1].shape[-1]
    whole = torch.cat([F.pad(block, (0, keys - block.shape[-1])) for block in rows], dim=2)
    return whole.index_select(2, index).index_select(3, index).tril()


def _within(
    q: Float[Tensor, "*n t d"], k: Float[Tensor, "*n t d"], sums: Float[Tensor, "*n t d"]
) -> Float[Tensor, "*n t t"]:
    """A block with itself: the second half sees the first by the sums of its last token, and each half sees itself."""
    if q.shape[-2] == 1:
        return (q * k).sum(dim=-1, keepdim=True)
    q, k, sums = (x.unflatten(-2, (2, -1)) for x in (q, k, sums))
    halves, between = _within(q, k, sums), sums[..., 0, -1:, :]
    after = q[..., 1, :, :] * factor(sums[..., 1, :, :] - between, q.dtype)
    across = after @ (k[..., 0, :, :] * factor(between - sums[..., 0, :, :], k.dtype)).transpose(-1, -2)
    first = torch.cat([halves[..., 0, :, :], torch.full_like(across, -torch.inf)], dim=-1)
    return torch.cat([first, torch.cat([across, halves[..., 1, :, :]], dim=-1)], dim=-2)
