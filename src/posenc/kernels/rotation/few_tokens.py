"""Queries and keys of a few tokens turned in one call of the C++ kernels, with cos and sin computed within.

FEW tokens of all rows at most: for more, tables that all layers share are worth their memory. For one decoded token, tables
cost as much as the rotation: two tensors, a call, and checks. Here the kernels of tables and of rotations run one after the
other in memory of their own (few_tokens.cpp), so that the results are the same bits.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc import kernels
from posenc.kernels.eager import plain_on_cpu, wants_gradient
from posenc.kernels.rotation import TYPES
from posenc.support.tensors import FEW

if TYPE_CHECKING:
    from posenc.frequencies import Frequencies
    from posenc.positions import Positions

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
    return coords.ndim == 2 and coords.dtype == torch.int64 and 0 < coords.numel() <= FEW and kernel() is not None


def turned_at(
    tokens: tuple[Tensor, ...], at: Positions, frequencies: Frequencies, start: int, half_in: bool, half_out: bool
) -> list[Tensor] | None:
    """Queries, or queries and keys, [b, h, t, d], turned at the same positions; None for calls not served, or wrong.

    Served are few tokens at consecutive positions, in eager code on the CPU without a gradient.
    """
    q, k, coords = tokens[0], tokens[-1], at.coords
    size, of_k, kind = q.shape, k.shape, TYPES.get(q.dtype)
    if kind is None or k.dtype != q.dtype or len(size) != 4 or len(of_k) != 4:
        return None
    if not within(at, *tokens) or wants_gradient(*tokens):
        return None
    (rows, length), (step, _), (address, pairs) = coords.shape, coords.stride(), frequencies.in_memory.buffer_info()
    if (size[0], length, size[3]) != (of_k[0], of_k[2], of_k[3]) or size[2] != length or rows not in (1, size[0]):
        return None
    if start + 2 * pairs > size[3]:
        return None
    turned = [torch.empty_like(x) for x in tokens]
    native: Any = kernel()
    native(
        _pack(
            *(coords.data_ptr(), step, rows if step else 1, address, pairs),
            *(start, kind, half_in, half_out, torch.get_num_threads(), of_k[1] if len(tokens) > 1 else 0),
            *size,
            *(q.data_ptr(), k.data_ptr(), turned[0].data_ptr(), turned[-1].data_ptr()),
            *q.stride(),
            *k.stride(),
            *turned[0].stride(),
            *turned[-1].stride(),
        )
    )
    return turned
