"""Terms added to scores: posenc's, as a tensor for every query and key."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc


@torch.no_grad()
def bias_of(encoding: Any, q: Tensor, k: Tensor, at_q: posenc.Positions, at_k: posenc.Positions | None = None) -> Tensor:
    """[b, h, i, j] of queries [b, h, i, d] and keys [b, h, j, d]."""
    at_k = at_q if at_k is None else at_k
    at_q, at_k = at_q.expand(q.shape[0]), at_k.expand(q.shape[0])
    of_pair = encoding.bias(q, k, at_q, at_k)
    sizes = (*q.shape[:3], k.shape[2])
    grid = torch.meshgrid(*(torch.arange(size) for size in sizes), indexing="ij")
    return of_pair(*grid).expand(sizes)


def nothing(heads: int, queries: int, keys: int | None = None, d: int = 8) -> tuple[Tensor, Tensor]:
    """Queries and keys for biases that do not look at them."""
    return torch.zeros(1, heads, queries, d), torch.zeros(1, heads, queries if keys is None else keys, d)
