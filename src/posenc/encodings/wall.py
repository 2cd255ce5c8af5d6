"""A forget gate for every channel: a query forgets each channel of a key at a speed of its own.

    logit_ij = Σ_c q_ic k_jc exp(P_ic - P_jc) / √d,   P_c = running sum of ln σ(w_hc·x_t + b_hc)

Averbuch and Pai 2026, "Wall attention" (Tilde Research, 2 June 2026), as in flash-linear-attention: fla/layers/wall_attn.py
and ops/wall_attn. With a gate of each head on top: Stack(Wall(…), FoX(…)), `use_scalar_gate` there.

exp(P_i) and exp(-P_j) apart would overflow. Keys are taken by blocks, with A = P of the last token of the block:
    exp(P_i - P_j) = exp(P_i - A)·exp(A - P_j)      both at most 1 for queries after the block; pairs within 16 tokens
Legend: b batch, h query heads, i query, j key, t tokens, d d_head, m d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.bilingual import Words
from posenc.checked import checked
from posenc.content_dependent import ForgetGates, by_document_and_order, filled_up
from posenc.encoding import BiasFn, Site, check_width, full_precision
from posenc.entry import Entry
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.shapes import Float

BLOCK, SMALL = 64, 16  # keys that are taken at once, and within a block of queries and keys


class Wall(ForgetGates):
    """Σ_c q_c k_c exp(P_c(query) - P_c(key)) in the place of q·k, P running sums of log gates of every head and channel.

    d_model     channels of the hidden states that go into the projections
    n_heads     query heads
    d_head      channels of a head
    first_bias  b at the start: 8 in the authors' code, where a gate keeps 0.9997

    Parameters: weight [n_heads·d_head, d_model], offset [n_heads·d_head]. Call read(x, at) once a layer; `Attention` does.
    With equal gates in all channels of a head it is FoX's decay as a factor instead of an addend. A call's own scale and
    softcap are refused, since q·k is replaced.
    Time O(queries·keys·d) and a loop over blocks of 64 keys; memory O(queries·keys + 16·keys·d). Queries at other positions
    than the keys, as in decoding, are taken one by one. The cache holds n_heads·d_head running sums per token, in fp64.
    """

    sites = Site.BIAS
    replaces_products = True

    @checked
    def __init__(self, d_model: int, n_heads: int, d_head: int, *, first_bias: float = 8.0) -> None:
        dtype = torch.get_default_dtype()
        if abs(first_bias) > (largest := torch.finfo(dtype).max):
            raise ValueError(f"first_bias: expected at most {largest:g} in size, as {dtype} holds it, got {first_bias!r}")
        super().__init__(d_model, n_heads, per_head=d_head, offset=first_bias, d_head=d_head, first_bias=first_bias)
        self.d_head = d_head

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        query, key = (self.sums(at).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2) for at in (at_q, at_k))
        with full_precision(q):
            if at_q is not at_k:
                scores = one_by_one(q, k, query, key)
            elif at_k.consecutive_in == "row":
                scores = by_blocks(q, k, key)
            else:
                index = by_document_and_order(at_k)[:, None, :, None]
                back = index.argsort(dim=2)
                q_, k_, key = (x.gather(2, index.expand_as(x)) for x in (q, k, key))
                scores = by_blocks(q_, k_, key)
                scores = scores.gather(2, back.expand_as(scores))
                scores = scores.gather(3, back.transpose(2, 3).expand_as(scores))
            correction = (scores - q @ k.transpose(-1, -2)) * self.softmax_scale(self.d_head)
        return lambda b, h, i, j: correction[b, h, i, j]


def one_by_one(
    q: Float[Tensor, "b h i d"], k: Float[Tensor, "b h j d"], query: Float[Tensor, "b h i d"], key: Float[Tensor, "b h j d"]
) -> Float[Tensor, "b h i j"]:
    """Σ_c q_c k_c exp(query_c - key_c), query by query; no channel grows, whichever sum is larger."""
    rows = [
        (k * (query[:, :, i, None] - key).clamp(max=0).to(q.dtype).exp()) @ q[:, :, i, :, None] for i in range(q.shape[2])
    ]
    return torch.cat(rows, dim=-1).transpose(-1, -2)


def by_blocks(
    q: Float[Tensor, "b h t d"], k: Float[Tensor, "b h t d"], sums: Float[Tensor, "b h t d"]
) -> Float[Tensor, "b h t t"]:
    """The same for tokens in causal order, each a query and a key. Entries for later keys are finite and unused."""
    tokens = q.shape[2]
    filled = filled_up(tokens, BLOCK, q.device)
    q, k, sums = (x.index_select(2, filled).unflatten(2, (-1, BLOCK)) for x in (q, k, sums))  # [b, h, blocks, B, d]
    blocks, columns = q.shape[2], []
    within = _within(q, k, sums)  # [b, h, blocks, B, B]
    for block in range(blocks):
        later = _after(q, k[:, :, block, None], sums, sums[:, :, block, None])  # [b, h, blocks, B, B]
        columns.append(torch.cat([later[:, :, :block], within[:, :, block, None], later[:, :, block + 1 :]], dim=2))
    scores, own = torch.stack(columns, dim=-2).flatten(-2).flatten(2, 3), torch.arange(tokens, device=q.device)
    return scores.index_select(2, own).index_select(3, own)


def _after(q: Tensor, k: Tensor, of_q: Tensor, of_k: Tensor) -> Tensor:
    """Queries that come after a block of keys, by the sum of its last one."""
    between = of_k[..., -1:, :]
    return (q * (of_q - between).clamp(max=0).to(q.dtype).exp()) @ (k * (between - of_k).to(k.dtype).exp()).transpose(
        -1, -2
    )


def _within(q: Tensor, k: Tensor, sums: Tensor) -> Tensor:
    """A block with itself, by small blocks."""
    columns = []
    for begin in range(0, BLOCK, SMALL):
        some = slice(begin, begin + SMALL)
        later = _after(q, k[..., some, :], sums, sums[..., some, :])
        decay = (sums[..., some, None, :] - sums[..., None, some, :]).clamp(max=0).to(q.dtype).exp()  # [… i, j, d]
        near = torch.einsum("...id,...jd,...ijd->...ij", q[..., some, :], k[..., some, :], decay)
        columns.append(torch.cat([later[..., :begin, :], near, later[..., begin + SMALL :, :]], dim=-2))
    return torch.cat(columns, dim=-1)


ENTRY = Entry(
    name="wall",
    class_name="Wall",
    title=Words("Wall", "逐通道遗忘注意力"),
    kind="contextual",
    published="2026-06",
    needs=("parameters", "hidden_states", "causal"),
    per_layer=True,
    formula="Σ q·k·exp(Σ ln σ(w·xₜ + b)) by channel",
    also_called=("wall_attention", "WallAttention", "channel_wise_forgetting", "per_channel_decay"),
    used_by=("flash-linear-attention",),
    source="Averbuch and Pai 2026, Tilde Research; flash-linear-attention, fla/layers/wall_attn.py",
    idea=Words(
        "Every token computes a gate for each channel of each head. The product of a query and a key is taken channel by "
        "channel, each multiplied with the gates of all tokens in between. One head can therefore keep some features of a "
        "token for long and forget others at once.",
        "每个词为每个头的每个通道算一个门。查询与键逐通道相乘，各乘以其间所有词的门。"
        "因此同一个头可以长期保留一个词的某些特征，而立即忘掉另一些。",
    ),
    latex=r"\frac{1}{\sqrt{d}} \sum_c q_{ic}\, k_{jc}\, e^{P_{ic} - P_{jc}}, \quad P_{c} = \sum_t \ln "
    r"\sigma(w_{hc} \cdot x_t + b_{hc})",
    breaks=Words(
        "Only causal attention, and no fused kernel on the CPU: see the costs. The cache holds one more number for "
        "every channel.",
        "只适用于因果注意力，CPU 上没有融合内核，代价见下表。缓存中每个通道多一个数。",
    ),
    code="fla-org/flash-linear-attention",
    options={
        "first_bias": "b 的初始值：作者代码为 8，此时门保留 0.9997",
    },
)
