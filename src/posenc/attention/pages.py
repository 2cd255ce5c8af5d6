"""A table of blocks: which slots of one store are a row's, as vLLM and FlexAttention number them.

    slot of the token of order n = table[row, n // size] · size + n % size

Legend: b rows, n blocks of a row, t tokens.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from posenc.support.shapes import Int


def slots(table: Int[Tensor, "b n"], order: Int[Tensor, "b t"], size: int) -> Int[Tensor, "b t"]:
    """The slot of each token, -1 where its row has no block for it and for an order below 0."""
    table = torch.nn.functional.pad(table, (0, 1), value=-1)
    place = (order // size).clamp(max=table.shape[1] - 1)
    block = table.gather(1, place.where(place >= 0, table.shape[1] - 1))
    return torch.where(block < 0, -1, block * size + order % size)


def with_blocks(table: Int[Tensor, "b n"], lengths: Int[Tensor, "b"], size: int, blocks: int) -> Int[Tensor, "b n"]:
    """The table with blocks for so many tokens of every row, taken from those that no row has. Raises ValueError where too
    few are free."""
    rows = [[block for block in row if block >= 0] for row in table.tolist()]
    used = {block for row in rows for block in row}
    missing = [max(-(-length // size) - len(row), 0) for row, length in zip(rows, lengths.tolist(), strict=True)]
    if not any(missing):
        return table
    if sum(missing) > blocks - len(used):
        more = f"{sum(missing)} more of {size} tokens are needed"
        raise ValueError(f"blocks: {more}, and {blocks - len(used)} of {blocks} are free")
    free = (block for block in range(blocks) if block not in used)
    for row, count in zip(rows, missing, strict=True):
        row += islice(free, count)
    width = max(map(len, rows))
    return table.new_tensor([row + [-1] * (width - len(row)) for row in rows])
