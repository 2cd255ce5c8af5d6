"""The rotation in C++ (rotation.cpp): addresses, sizes and strides as one block of integers, which ctypes passes fast."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc import kernels

TYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}  # as rotation.cpp numbers them

_pack = struct.Struct("34q").pack  # struct Rotation


@functools.cache
def kernel() -> Callable[[bytes, int], None] | None:
    """Takes that many packed rotations and turns them one after the other; None where the C++ kernels are not built."""
    library = kernels.library()
    if library is None:
        return None
    native: Any = library.posenc_rotate
    native.argtypes, native.restype = [ctypes.c_char_p, ctypes.c_int64], None
    return native  # type: ignore[no-any-return]


def packed(
    x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool, out: Tensor
) -> bytes:
    """One rotation of x to `out`, as the kernel reads it."""
    size, of_cos, of_sin = cos.shape, cos.stride(), sin.stride()
    if len(size) == 3:  # no axis of heads
        size = (size[0], 1, size[1], size[2])  # type: ignore[assignment]
        of_cos = (of_cos[0], 0, of_cos[1], of_cos[2])
        of_sin = (of_sin[0], 0, of_sin[1], of_sin[2])
    return _pack(
        x.data_ptr(),
        out.data_ptr(),
        cos.data_ptr(),
        sin.data_ptr(),
        *x.shape,
        *size,
        start,
        *x.stride(),
        *out.stride(),
        *of_cos,
        *of_sin,
        TYPES[x.dtype],
        half_in,
        half_out,
        back,
        torch.get_num_threads(),
    )
