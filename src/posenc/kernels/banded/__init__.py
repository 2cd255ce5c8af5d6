"""Causal self-attention over a band of keys, in C++ without gradients: see banded.cpp.

    out_i = Σ_j softmax_j(q_i·k_j·scale + bias[i - j])·v_j,   0 ≤ i - j ≤ left

A weight below e^-80 (2^-115) of a query's largest is 0.
Legend: b batch, h query heads, g key heads, t tokens, d channel.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc import kernels
from posenc.kernels.eager import exporting, plain_on_cpu, wants_gradient

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

WIDEST = 256  # channels of a head

_pack = struct.Struct("28qd").pack  # struct Banded


def can_serve(q: Float[Tensor, "b h t d"], k: Float[Tensor, "b g t d"], v: Float[Tensor, "b g t d"]) -> bool:
    """Whether `attend` can compute this: eager fp32 or bf16 on the CPU without gradients, with the C++ kernels.

    It computes in fp32. Where the processor has AMX, torch's kernel multiplies bf16 several times faster and keeps it.
    """
    if not plain_on_cpu(q, k, v) or exporting() or wants_gradient(q, k, v):  # first: the sizes in a graph are symbols
        return False
    if q.dtype != torch.float32 and not (q.dtype == torch.bfloat16 and _multiplies_bf16_best()):
        return False
    alike = q.dtype == k.dtype == v.dtype and q.shape[3] == v.shape[3] <= WIDEST and q.shape[3] % 16 == 0
    dense = q.stride(3) == k.stride(3) == v.stride(3) == 1
    return alike and dense and q.numel() > 0 and _kernel() is not None


def attend(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    v: Float[Tensor, "b g t d"],
    bias: Float[Tensor, "#h n"] | None,
    scale: float,
    left: int,
    out: Float[Tensor, "b h t d"],
    cutoff: Int[Tensor, "b h"] | None = None,
    sums: Float[Tensor, "b h t"] | None = None,
) -> None:
    """Writes the attention of every query to its own key and the `left` before it into `out`, fp32. Only where `can_serve`.

    bias    added to the logits at distances 0 … left and perhaps further, fp32
    sums    gets the logarithm of each query's sum of exponentials; fp32, in memory token by token
    cutoff  fewer keys before the own one, for the queries of a row and head: 0 … left each, int64
    """
    kernel = _kernel()
    assert kernel is not None
    batch, heads, length, width = q.shape
    bias = None if bias is None else bias.contiguous()
    cutoff = None if cutoff is None else cutoff.contiguous()
    kernel(
        _pack(
            q.data_ptr(),
            k.data_ptr(),
            v.data_ptr(),
            0 if bias is None else bias.data_ptr(),
            0 if cutoff is None else cutoff.data_ptr(),
            out.data_ptr(),
            0 if sums is None else sums.data_ptr(),
            batch,
            heads,
            k.shape[1],
            length,
            width,
            left,
            *[stride for x in (q, k, v, out) for stride in x.stride()[:3]],
            0 if bias is None or len(bias) == 1 else bias.stride(0),
            torch.get_num_threads(),
            q.dtype == torch.bfloat16,
            scale,
        )
    )


@functools.cache
def _multiplies_bf16_best() -> bool:
    """Whether our fp32 products are faster than torch's of bf16: on x86-64 without AMX."""
    return kernels.instructions() in ("avx2", "avx512", "avx512_bf16") and not torch.cpu._is_amx_tile_supported()


@functools.cache
def _kernel() -> Callable[[bytes], None] | None:
    """None without wide registers too, where torch's kernel is faster."""
    return None if kernels.instructions() == "portable" else kernels.function("posenc_banded")
