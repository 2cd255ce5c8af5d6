"""The tables in C++ (sin_cos.cpp): addresses, sizes and strides through ctypes.

Legend: b batch, t tokens, n frequencies.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from typing import Any

import torch
from torch import Tensor

from posenc import kernels
from posenc.kernels.sin_cos.text import KEPT, read

FILLED = (torch.float32, torch.float64)  # what the kernels write


@functools.lru_cache(KEPT)
def numbers(given: tuple[float, ...]) -> tuple[Any, int]:
    """As a C array, and how many."""
    return (ctypes.c_double * len(given))(*given), len(given)


@functools.lru_cache(KEPT)
def doubles(text: str) -> tuple[Any, int]:
    return numbers(tuple(read(text)))


@functools.lru_cache(KEPT)
def _whole(text: str) -> Any:
    numbers = read(text, int)
    return (ctypes.c_int64 * len(numbers))(*numbers) if numbers else None


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


strides_of = struct.Struct("3q").pack  # strides


def where(table: Tensor) -> tuple[Any, ...]:
    """Addresses of sin and cos, strides, and whether fp64."""
    row, token, pair, other = table.stride()
    sin = table.data_ptr()
    return sin, sin + other * table.element_size(), strides_of(row, token, pair), table.dtype == torch.float64


def fill_in_a_row(starts: Tensor, rows: int, length: int, omega: tuple[Any, int], where: tuple[Any, ...]) -> None:
    """The first `rows` numbers of `starts` are where the rows start."""
    if starts.dtype != torch.int64 or rows > 1:
        starts = starts.to(torch.int64).contiguous()
    native = functions()
    assert native is not None
    native[0](starts.data_ptr(), rows, length, *omega, *where, torch.get_num_threads())


def fill_anywhere(coords: Tensor, omega: tuple[Any, int], axes: str, where: tuple[Any, ...]) -> None:
    real = coords.is_floating_point()
    if coords.dtype not in (torch.int64, torch.float64):
        coords = coords.double() if real else coords.long()
    (frequencies, n), size, native = omega, coords.shape, functions()
    assert native is not None
    strides = strides_of(*(*coords.stride(), 0)[:3])
    native[1](
        coords.data_ptr(), real, strides, size[0], size[1], frequencies, _whole(axes), n, *where, torch.get_num_threads()
    )
