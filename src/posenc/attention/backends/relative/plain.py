"""Attention with vectors of the distance in plain torch: the operator under torch.func, in forward mode and for second
derivatives. All pairs of queries and keys are written out.

Legend: b batch, h query heads, g key heads, i query, j key, d channel, c channel of p and the keys, R rows of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.support.tensors import working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int


def in_torch(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    p: Float[Tensor, "b h i c"],
    keys: Float[Tensor, "#b #h R c"],
    values: Float[Tensor, "#b #h R dv"] | None,
    row: Int[Tensor, "#b"],
    seen: Int[Tensor, "#b"] | None,
    scale: float,
) -> Float[Tensor, "b h i dv"]:
    """`relative_attention`: its arguments and its result."""
    dtype, groups = working_dtype(v.dtype), q.shape[1] // k.shape[1]
    wide_q, wide_k, wide_v, p, keys = (x.to(dtype) for x in (q, k, v, p, keys))
    wide_k, wide_v = (x.repeat_interleave(groups, dim=1) for x in (wide_k, wide_v))
    i, j = torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device)
    of_pair = (row[:, None, None] - i + j).clamp(0, keys.shape[2] - 1)[:, None].expand(*q.shape[:3], -1)
    logits = (wide_q @ wide_k.transpose(-1, -2) + (p @ keys.transpose(-1, -2)).gather(-1, of_pair)) * scale
    allowed = torch.ones_like(i + j, dtype=torch.bool) if seen is None else (j <= i + seen[:, None, None])[:, None]
    probs = logits.masked_fill(~allowed, float("-inf")).softmax(dim=-1).masked_fill(~allowed, 0.0)
    out = probs @ wide_v
    if values is not None:
        by_row = torch.zeros_like(probs[..., :1]).expand(*q.shape[:3], keys.shape[2]).scatter_add(-1, of_pair, probs)
        out = out + by_row @ values.to(dtype)
    return out.to(v.dtype)
