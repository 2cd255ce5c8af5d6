"""Relative vectors on a few causal tokens by one call of a C++ kernel without gradients: see few.cpp.

The formula and its letters are those of attention.py, whose preparation of blocks takes longer than few tokens do.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc import kernels
from posenc.attention.call import Call
from posenc.kernels.eager import plain_on_cpu, wants_gradient
from posenc.structure import Relative
from posenc.support.tensors import FEW

if TYPE_CHECKING:
    from posenc.support.shapes import Float


_pack = struct.Struct("38qd").pack  # struct FewVectors


def can_serve(call: Call, vectors: Relative) -> bool:
    """Whether `attend` can compute this: fp32 in eager code on the CPU, with the C++ kernels."""
    q, k, v = call[:3]
    _, position, keys, values, first = vectors
    tensors = (q, k, v, position, keys) if values is None else (q, k, v, position, keys, values)
    if not plain_on_cpu(*tensors) or wants_gradient(*tensors):  # first: the sizes in a graph are symbols
        return False
    few = 1 < q.shape[2] <= FEW and q.shape[0] > 0 and first.numel() == 1
    if not (few and call.causal and call.in_one_row() and position.shape[2] == q.shape[2]) or _kernel() is None:
        return False
    for x in tensors:  # noqa: SIM110 - a generator takes longer
        if x.dtype != torch.float32 or x.shape[3] % 16 or x.stride(3) != 1:
            return False
    return True


def attend(call: Call, vectors: Relative, scale: float) -> Float[Tensor, "b h t dv"]:
    """The output of every query over its own key and all before it. Only where `can_serve`."""
    q, k, v = call[:3]
    content, position, keys, values, first = vectors
    batch, heads, length, width = q.shape
    value_width = v.shape[3]
    out = q.new_empty(batch, length, heads, value_width).transpose(1, 2)
    native: Any = _kernel()
    native(
        _pack(
            content.data_ptr(),
            k.data_ptr(),
            v.data_ptr(),
            position.data_ptr(),
            keys.data_ptr(),
            0 if values is None else values.data_ptr(),
            out.data_ptr(),
            *(batch, heads, k.shape[1], length, width, position.shape[3], value_width),
            *content.stride()[:3],
            *k.stride()[:3],
            *v.stride()[:3],
            *position.stride()[:3],
            *_strides(keys),
            *((0, 0, 0) if values is None else _strides(values)),
            *out.stride()[:3],
            *(keys.shape[2], int(first), torch.get_num_threads()),
            scale,
        )
    )
    return out


def _strides(table: Float[Tensor, "#b #h R c"]) -> tuple[int, int, int]:
    """Along b, h and R: one table serves all rows of the batch, or all heads."""
    batch, heads, rows, _ = table.stride()
    return batch if table.shape[0] > 1 else 0, heads if table.shape[1] > 1 else 0, rows


@functools.cache
def _kernel() -> Callable[[bytes], None] | None:
    """None without wide registers too, where torch's kernel is faster."""
    return None if kernels.instructions() == "portable" else kernels.function("posenc_few_vectors")
