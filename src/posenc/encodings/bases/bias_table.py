"""A learned bias for every head and row of a table, where the distance says the row: T5's buckets, clipped distances.

    logits += table[row(i - j), h]

Legend: b batch, t tokens, h query heads, i query, j key, n distances, R rows.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from posenc.encoding import DistanceBias
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.tensors import carried_by_few, check_distances, distances_of_few, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int


class BiasTable(DistanceBias):
    """A class says the row of a distance, and makes `table`."""

    table: nn.Parameter  # [R, h]

    @abstractmethod
    def row(self, delta: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        """The row of i - j = `delta`. Raises TypeError for distances that are not integers."""

    def at_distance(self, delta: Int[Tensor, "n"]) -> Float[Tensor, "h n"]:
        check_distances(delta)
        return self.table.T.index_select(1, self.row(delta))

    @checked
    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """Of few tokens the row of every pair, [b, t, n]."""
        back = distances_of_few(at)
        return () if back is None else (self.row(back).expand(at.batch, -1, -1),)

    def _of_few(self, q: Float[Tensor, "b h i d"], at: Positions) -> Float[Tensor, "#b h i j"] | None:
        """The rows of the table; None where a gradient goes to it, for which a vector by distance takes less time."""
        row, table = carried_by_few(self, at), self.table
        if row is None or table.shape[1] != q.shape[1] or (torch.is_grad_enabled() and table.requires_grad):
            return None
        bias = table.T.index_select(1, row[0].view(-1)).view(1, q.shape[1], *row.shape[1:])
        return bias.to(working_dtype(q.dtype))

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> Self:
        part = type(self)(**{**self.configuration, "n_heads": stop - start}).to(self.table)
        part.table.copy_(self.table[:, start:stop])
        return part
