"""What an encoding does to the scores: the map of what it adds, and the score of like vectors against distance.

Legend: h query heads, i query, j key, d d_head, t positions, k lags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.attention.backends.reference import index_grid
from posenc.encoding import PositionalEncoding, scale_of
from posenc.pictures.measures.layers import normal, seeded
from posenc.positions import Positions, may_attend
from posenc.structure import Scores
from posenc.support.checked import checked
from posenc.support.tensors import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


@checked
@torch.no_grad()
def added_to_logits(
    encoding: PositionalEncoding, *, n_heads: int, d_head: int, length: int, causal: bool, seed: int = 0
) -> Float[Tensor, "h i j"]:
    """What the bias and finish seams add to the scaled logits of random q and k, N(0, 1); NaN where j is masked."""
    random = seeded(seed)
    at = Positions.arange(1, length)
    q, k = (encoding.rotate(normal(1, n_heads, length, d_head, random=random), at, side) for side in ("query", "key"))
    logits = q @ k.transpose(-1, -2) * scale_of(encoding, d_head)
    bias = encoding.bias(q, k, at, at)
    biased = logits if bias is None else logits + bias(*index_grid(logits))
    allowed = may_attend(at, at, causal)
    added = softened(encoding, Scores(biased, q, torch.zeros_like(q), at, at, allowed)) - logits
    return added.masked_fill(~allowed, float("nan"))[0]


def softened(encoding: PositionalEncoding, scores: Scores) -> Float[Tensor, "b h i j"]:
    """The logits of which the encoding's finish takes the softmax; the logits themselves where it takes none."""
    encoding.finish(scores)
    return scores.kept.get("logits", scores.logits)


@checked
@torch.no_grad()
def score_of_ones(encoding: PositionalEncoding, lags: Num[Tensor, "k"], d_head: int) -> Float[Tensor, "k"]:
    """q̂·k̂/d for q and k of ones, the query `lag` positions after the key: what the rotate seam alone makes of distance."""
    with_values(lags=lags)
    last = float(lags.max())
    at_q = Positions.at(torch.full((1, 1), last, dtype=torch.float64))
    at_k = Positions.at(last - lags.double()[None])
    ones = torch.ones(1, 1, len(lags), d_head, dtype=torch.float64)
    q, k = encoding.rotate(ones[:, :, :1], at_q, "query"), encoding.rotate(ones, at_k, "key")
    return (k @ q.transpose(-1, -2))[0, 0, :, 0] / d_head


@checked
def row_similarity(table: Float[Tensor, "t d"]) -> Float[Tensor, "t"]:
    """The mean of table[p]·table[p + k] over p, for k = 0 … t-1, relative to k = 0."""
    with_values(table=table)
    products = table @ table.T
    means = torch.stack([products.diagonal(lag).mean() for lag in range(len(table))])
    return means / means[0]
