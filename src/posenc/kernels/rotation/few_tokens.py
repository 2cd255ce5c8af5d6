"""Queries and keys of a few tokens turned in one call of the C++ kernels, with cos and sin computed within.

For one decoded token, tables cost as much as the rotation: two tensors, a call, and checks. Here the kernels of tables and
of rotations run one after the other in memory of their own (few_tokens.cpp), so that the results are the same bits.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc import kernels
from posenc.kernels.fast_path import plain_on_cpu, wants_gradient
from posenc.kernels.rotation.torch_operator import TYPES

if TYPE_CHECKING:
    from posenc.frequencies import Frequencies
    from posenc.positions import Positions

MOST = 64  # tokens of all rows; for more, tables that all layers share are worth their memory

_pack = struct.Struct("35q").pack  # struct FewTokens


@functools.cache
def kernel() -> Callable[[bytes], None] | None:
    """Takes one packed call; None where the C++ kernels are not built."""
    return kernels.function("posenc_rotate_few")


def serves(frequencies: Frequencies) -> bool:
    """Whether cos and sin of these can be computed within: of one axis, in fp64, not scaled."""
    return frequencies.arithmetic == "float64" and not frequencies.axes and frequencies.cos_sin_scale == 1


def within(at: Positions, *tokens: Tensor) -> bool:
    """Whether tokens at these positions are turned so: few, consecutive, in eager code on the CPU."""
    coords = at.coords
    if at.consecutive_in != "row" or not plain_on_cpu(coords, *tokens):  # first: no graph depends on a length
        return False
    return coords.ndim == 2 and coords.dtype == torch.int64 and 0 < coords.numel() <= MOST and kernel() is not None


def both_turned_at(
    q: Tensor, k: Tensor, at: Positions, frequencies: tuple[float, ...], start: int, half_in: bool, half_out: bool
) -> tuple[Tensor, Tensor] | None:
    """q and k [b, h, t, d] turned at the same positions; None for calls that are not served, or wrong.

    Served are few tokens at consecutive positions, in eager code on the CPU without a gradient.
    """
    of_q, of_k = q.shape, k.shape
    if len(of_k) != 4 or k.dtype != q.dtype or len(of_q) != 4:
        return None
    if of_q[0] != of_k[0] or of_q[2] != of_k[2] or of_q[3] != of_k[3] or not _served(q, k, at, len(frequencies), start):
        return None
    turned_q, turned_k = torch.empty_like(q), torch.empty_like(k)
    _call(q, k, turned_q, turned_k, of_k[1], at, frequencies, start, half_in, half_out)
    return turned_q, turned_k


def turned_at(
    x: Tensor, at: Positions, frequencies: tuple[float, ...], start: int, half_in: bool, half_out: bool
) -> Tensor | None:
    """The same for x alone."""
    if len(x.shape) != 4 or not _served(x, x, at, len(frequencies), start):
        return None
    turned = torch.empty_like(x)
    _call(x, x, turned, turned, 0, at, frequencies, start, half_in, half_out)
    return turned


def _served(q: Tensor, k: Tensor, at: Positions, pairs: int, start: int) -> bool:
    if not within(at, q, k) or wants_gradient(q, k):
        return False
    (rows, tokens), of_q = at.coords.shape, q.shape
    return q.dtype in TYPES and of_q[2] == tokens and rows in (1, of_q[0]) and start + 2 * pairs <= of_q[3]


def _call(
    q: Tensor,
    k: Tensor,
    turned_q: Tensor,
    turned_k: Tensor,
    heads_of_k: int,
    at: Positions,
    frequencies: tuple[float, ...],
    start: int,
    half_in: bool,
    half_out: bool,
) -> None:
    coords = at.coords
    step, (numbers, address) = coords.stride(0), _numbers(frequencies)
    native: Any = kernel()
    native(
        _pack(
            *(coords.data_ptr(), step, coords.shape[0] if step else 1, address, len(numbers)),
            *(start, TYPES[q.dtype], half_in, half_out, torch.get_num_threads(), heads_of_k),
            *q.shape,
            *(q.data_ptr(), k.data_ptr(), turned_q.data_ptr(), turned_k.data_ptr()),
            *q.stride(),
            *k.stride(),
            *turned_q.stride(),
            *turned_k.stride(),
        )
    )


@functools.lru_cache(256)
def _numbers(frequencies: tuple[float, ...]) -> tuple[Any, int]:
    """The numbers as a C array, and its address."""
    numbers = (ctypes.c_double * len(frequencies))(*frequencies)
    return numbers, ctypes.addressof(numbers)
