"""Attention with a bias of the distance alone in plain torch: the operator under torch.func, in forward mode and for second
derivatives. The matrix of biases is written out.

Legend: b batch, h query heads, g key heads, i query, j key, d channel, n = i + j - 1 distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float, Int


def in_torch(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    vector: Float[Tensor, "h #b n"],
    ahead: Int[Tensor, "#b"],
    document: Int[Tensor, "b t"] | None,
    scale: float,
    causal: bool,
) -> tuple[Float[Tensor, "b h i dv"], Float[Tensor, "b h i"]]:
    """`toeplitz_attention`: its arguments and its results."""
    groups, dtype = q.shape[1] // k.shape[1], vector.dtype
    wide_k, wide_v = (x.to(dtype).repeat_interleave(groups, dim=1) for x in (k, v))
    distance, allowed = _pairs(q.shape[2], k.shape[2], ahead, document, causal)
    row = torch.arange(vector.shape[1], device=q.device)[:, None, None]
    bias = vector[:, row, distance].transpose(0, 1)  # [#b, h, i, j]
    logits = (q.to(dtype) @ wide_k.transpose(-1, -2) * scale + bias).masked_fill(~allowed, float("-inf"))
    probs = logits.softmax(dim=-1).masked_fill(~allowed, 0.0)
    blind = ~allowed.any(dim=-1)
    logsumexp = logits.logsumexp(dim=-1).masked_fill(blind, float("-inf"))
    return (probs @ wide_v).to(q.dtype), logsumexp


def _pairs(
    queries: int, keys: int, ahead: Tensor, document: Tensor | None, causal: bool
) -> tuple[Int[Tensor, "#b i j"], Bool[Tensor, "#b 1 i j"]]:
    """Where the vector has the bias of each pair, and which pairs there are."""
    i, j = torch.arange(queries, device=ahead.device)[:, None], torch.arange(keys, device=ahead.device)
    if document is None:
        allowed = j <= i + ahead[:, None, None] if causal else torch.ones_like(i + j, dtype=torch.bool)[None]
        return (queries - 1 - i + j)[None], allowed[:, None]
    same = document[:, :, None] == document[:, None, :]
    number = (same & (j < i)).sum(dim=-1)  # of a token within its document
    distance = queries - 1 - number[:, :, None] + number[:, None, :]
    allowed = same & (document >= 0)[:, :, None]
    return distance, (allowed & (j <= i) if causal else allowed)[:, None]
