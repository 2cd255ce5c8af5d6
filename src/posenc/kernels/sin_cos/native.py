"""The tables in C++ (sin_cos.cpp): addresses, sizes and strides through ctypes.

Legend: b batch, t tokens, n frequencies.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from posenc import kernels
from posenc.kernels.sin_cos.text import KEPT

FILLED = (torch.float32, torch.float64)  # what the kernels write

Memory = tuple[int, int, bytes, bool]  # addresses of sin and cos, strides, and whether fp64

_strides = struct.Struct("3q").pack


@functools.lru_cache(KEPT)
def _numbers(frequencies: tuple[float, ...]) -> tuple[Any, int]:
    """The numbers as a C array, and their count."""
    return (ctypes.c_double * len(frequencies))(*frequencies), len(frequencies)


@functools.lru_cache(KEPT)
def _indices(axes: tuple[int, ...]) -> Any:
    return (ctypes.c_int64 * len(axes))(*axes) if axes else None


@functools.cache
def functions() -> tuple[Any, Any] | None:
    """The kernels for consecutive positions and for arbitrary ones, or None."""
    library = kernels.library()
    if library is None:
        return None
    number, address, choice = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
    table: list[Any] = [address, address, address, choice, choice]
    consecutive, at = library.posenc_sin_cos_consecutive, library.posenc_sin_cos_at
    consecutive.argtypes = [address, number, number, address, number, *table]
    at.argtypes = [address, choice, address, number, number, address, address, number, *table]
    consecutive.restype = at.restype = None
    return consecutive, at


def apart(sin: Tensor, cos: Tensor) -> Memory:
    """Two tensors [b, t, n] of the same strides."""
    return sin.data_ptr(), cos.data_ptr(), _strides(*sin.stride()), sin.dtype == torch.float64


def side_by_side(table: Tensor) -> Memory:
    """One tensor [b, t, n, 2], of any strides."""
    row, token, pair, other = table.stride()
    sin = table.data_ptr()
    return sin, sin + other * table.element_size(), _strides(row, token, pair), table.dtype == torch.float64


def fill(coords: Tensor, frequencies: Sequence[float], axes: Sequence[int], consecutive: bool, memory: Memory) -> None:
    """Writes sin and cos of coords [b, t] or [b, t, axes] times frequencies; the kernels must be there (`functions`)."""
    b, t = coords.shape[:2]
    omega, n = _numbers(tuple(frequencies))
    in_a_row, anywhere = functions()  # type: ignore[misc]
    if consecutive:
        starts = coords if b == 1 else coords[:, 0]
        if starts.dtype != torch.int64 or b > 1:
            starts = starts.to(torch.int64).contiguous()
        in_a_row(starts.data_ptr(), b, t, omega, n, *memory, torch.get_num_threads())
        return
    real = coords.is_floating_point()
    if coords.dtype not in (torch.int64, torch.float64):
        coords = coords.double() if real else coords.long()
    strides = _strides(*(*coords.stride(), 0)[:3])
    anywhere(coords.data_ptr(), real, strides, b, t, omega, _indices(tuple(axes)), n, *memory, torch.get_num_threads())
