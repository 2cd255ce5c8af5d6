"""Which tokens a context-parallel rank holds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.support import checks
from posenc.support.checked import INT64, checked_on_failure
from posenc.support.checks import shown
from posenc.support.tensors import ends_of

if TYPE_CHECKING:
    from posenc.support.shapes import Int


@checked_on_failure
def shard_index(
    length: int, rank: int, size: int, *, zigzag: bool = False, cu_seqlens: Sequence[int] | None = None
) -> Int[Tensor, "n"]:
    """Which of `length` tokens rank `rank` of `size` holds; x[:, index] and at.take(index) belong together.

    contiguous   0 0 1 1 2 2 3 3          zigzag (balances causal work)   0 1 2 3 3 2 1 0
    With `cu_seqlens` every document is cut by itself: ends [0, 4, 8], rank 0 of 2, zigzag gives [0, 3, 4, 7].
    """
    checks.whole(length=length, size=size)
    if zigzag is not True and zigzag is not False:
        raise TypeError(f"zigzag: expected True or False, got {shown(zigzag)}")
    if length > INT64:
        raise ValueError(f"length: expected a length of int64, got {length}")
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < size:
        raise ValueError(f"rank: expected 0 … {size - 1}, got {rank!r}")
    ends = [0, length] if cu_seqlens is None else ends_of(cu_seqlens)
    if len(ends) < 2 or ends[0] != 0 or ends[-1] != length or any(b <= a for a, b in itertools.pairwise(ends)):
        raise ValueError(f"cu_seqlens: expected ends from 0 to {length} that grow, got {ends}")
    chunks = 2 * size if zigzag else size
    parts = (rank, 2 * size - 1 - rank) if zigzag else (rank,)
    index: list[int] = []
    for begin, end in itertools.pairwise(ends):
        if (end - begin) % chunks:
            raise ValueError(
                f"length: {end - begin} tokens cannot be cut into {chunks} equal chunks; pad them, or change size or zigzag"
            )
        chunk = (end - begin) // chunks
        for part in parts:
            index.extend(range(begin + part * chunk, begin + (part + 1) * chunk))
    return torch.tensor(index, dtype=torch.int64)
