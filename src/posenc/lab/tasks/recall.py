"""Multi-query associative recall: pairs of key and value, then some of the keys again, in another order.

    length 3, queries 2
    tokens    [ ^  A  4  B  3  C  6  B  3  A ]      no key repeats among the pairs, nor among the queries
    targets   [ .  .  .  .  .  .  .  3  .  4 ]      the value that followed the key

    length 3, queries 1, loose 0.67
    tokens    [ ^  A  4  7  D  B  3  2  E  C  6  B ]      values and keys of no pair stand between the pairs
    targets   [ .  .  .  .  .  .  .  .  .  .  .  3 ]

Arora et al. 2023, arXiv 2312.04927. Longer rows have more pairs to choose from and as many queries. Keys are
the same set at every length, so it must hold as many as the longest row has pairs.

With few values the most frequent one is the answer in a third of the rows or more (`shortcuts`), whatever the positions:
loose values, and more values than pairs, leave nothing to count.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from posenc.lab.say import say
from posenc.lab.tasks.drawn import Drawn, column
from posenc.lab.tasks.shortcuts import Share, shortcuts
from posenc.lab.tasks.task import IGNORE, Batch
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Int


class Recall(Drawn):
    """Values are 0 … values-1, then the keys, then ^.

    loose    so many times the number of pairs there are a value and a key that belong to no pair
    """

    name: Literal["recall"] = "recall"
    length: int = Field(default=8, ge=1)
    lengths: tuple[int, ...] = (8, 10, 12, 16, 32)
    keys: int = Field(default=32, ge=1)
    values: int = Field(default=8, ge=2)
    queries: int = Field(default=4, ge=1)  # or the number of pairs, if that is smaller
    loose: float = Field(default=0.0, ge=0, le=64)

    title: ClassVar[Words] = say("Associative recall")
    unit: ClassVar[Words] = say("pairs to remember")

    @model_validator(mode="after")
    def _keys_suffice(self) -> Recall:
        if self.keys < (fewest := self.lengths[-1] + (self.loose > 0)):
            more = ", and one for loose keys" if self.loose else ""
            raise ValueError(
                f"keys: expected at least {fewest}, as many as the longest row has pairs{more}; got {self.keys}"
            )
        return self

    def unwritten(self) -> set[str]:
        return super().unwritten() | ({"loose"} if not self.loose else set())

    @property
    def vocabulary(self) -> int:
        return self.values + self.keys + 1

    def tokens(self, length: int) -> int:
        return 2 * (length + self._loose(length)) + 2 * self._queries(length)

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        if length > self.keys:
            raise ValueError(f"length: expected at most {self.keys} pairs, of which there are keys; got {length}")
        # Sorting random numbers draws without replacement.
        drawn = torch.rand(rows, self.keys, generator=random).argsort(dim=1) + self.values
        keys = drawn[:, :length]
        values = torch.randint(self.values, (rows, length), generator=random)
        chosen = torch.rand(rows, length, generator=random).argsort(dim=1)[:, : self._queries(length)]
        answers = values.gather(1, chosen)
        pairs, queries = (torch.stack(two, dim=2).flatten(1) for two in ((keys, values), (keys.gather(1, chosen), answers)))
        if self.loose:
            pairs = self._among_loose(pairs, drawn[:, length:], random)
        tokens = torch.cat([column(rows, self.values + self.keys), pairs, queries[:, :-1]], dim=1)
        targets = torch.full_like(tokens, IGNORE)
        targets[:, 1 + pairs.shape[1] :: 2] = answers
        return Batch(tokens, targets)

    def _among_loose(self, pairs: Int[Tensor, "b t"], other: Int[Tensor, "b k"], random: torch.Generator) -> Tensor:
        """The pairs, and between them a value and one of the other keys, of no pair, as often as `loose` says."""
        rows, length = len(pairs), pairs.shape[1] // 2
        count = self._loose(length)
        values = torch.randint(self.values, (rows, count), generator=random)
        keys = other.gather(1, torch.randint(other.shape[1], (rows, count), generator=random))
        every = torch.cat([pairs.unflatten(1, (length, 2)), torch.stack([values, keys], dim=2)], dim=1)
        order = torch.rand(rows, length + count, generator=random).argsort(dim=1)
        return every.gather(1, order[..., None].expand(-1, -1, 2)).flatten(1)

    def different(self, length: int) -> int:
        return int(math.perm(self.keys, length) * self.values**length * math.perm(length, self._queries(length)))

    def chance(self, length: int) -> float:
        """Chance: uniform over values."""
        return float(self.values) ** -self._queries(length)

    def shortcuts(self, length: int) -> dict[str, Share] | None:
        return shortcuts(self.scored(length), self.values) if self.queries == 1 else None

    def _loose(self, length: int) -> int:
        return round(self.loose * length)

    def _queries(self, length: int) -> int:
        return min(self.queries, length)
