"""Gradients of attention over a band of keys and of its bias, in C++: see gradients.cpp.

Legend: b batch, h query heads, g key heads, t tokens, d channel, n distances.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc import kernels

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

_pack = struct.Struct("33qd").pack  # struct BandedGradients


def gradients(
    grad: Float[Tensor, "b h t d"],
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    v: Float[Tensor, "b g t d"],
    bias: Float[Tensor, "#h n"],
    sums: Float[Tensor, "b h t"],
    inner: Float[Tensor, "b h t"],
    scale: float,
    cutoff: Int[Tensor, "b h"],
    learned: bool,
) -> tuple[Float[Tensor, "b h t d"], Float[Tensor, "b g t d"], Float[Tensor, "b g t d"], Float[Tensor, "h n"] | None]:
    """Of q, k, v and, where it is `learned`, of the bias, in fp32. Only where `banded.can_serve`; grad has q's dtype.

    sums    the logarithm of each query's sum of exponentials
    inner   Σ grad·out over the channels, less the gradient of sums
    cutoff  how many keys before its own a query of a row and head sees
    """
    batch, heads, length, width = q.shape
    d_q = q.new_zeros(batch, length, heads, width, dtype=torch.float32)
    d_k, d_v = (q.new_empty(batch, length, k.shape[1], width, dtype=torch.float32) for _ in "kv")
    left = int(cutoff.max())
    d_bias = bias.new_zeros(batch, heads, left + 1) if learned else None
    sums, inner, bias, cutoff = (x.contiguous() for x in (sums, inner, bias, cutoff))
    kernel = kernels.function("posenc_banded_gradients")
    assert kernel is not None
    kernel(
        _pack(
            *[x.data_ptr() for x in (q, k, v, grad, sums, inner, bias, cutoff, d_q, d_k, d_v)],
            0 if d_bias is None else d_bias.data_ptr(),
            batch,
            heads,
            k.shape[1],
            length,
            width,
            left,
            *[stride for x in (q, k, v, grad) for stride in x.stride()[:3]],
            0 if len(bias) == 1 else bias.stride(0),
            torch.get_num_threads(),
            q.dtype == torch.bfloat16,
            scale,
        )
    )
    of_bias = None
    if d_bias is not None:
        of_bias = bias.new_zeros(heads, bias.shape[1])
        of_bias[:, : left + 1] = d_bias.sum(dim=0)
    return d_q.transpose(1, 2), d_k.transpose(1, 2), d_v.transpose(1, 2), of_bias
