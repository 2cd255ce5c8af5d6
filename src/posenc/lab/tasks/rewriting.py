"""A string of symbols, a separator, and the string rewritten by a rule, as in the task copy.

    tokens    [ ^  c  a  c  =  x  y  z ]      ^ begins the row: a reference for a model without positions
    targets   [ .  .  .  .  x  y  z  $ ]      $ ends the answer: the model must also predict the end

The alphabet is smaller than the strings are long, so symbols repeat and do not identify their positions.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from posenc.lab.say import say
from posenc.lab.tasks.drawn import Drawn, answered, column
from posenc.lab.tasks.task import Batch
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Int


class Rewriting(Drawn):
    """Symbols are 0 … alphabet-1, then ^, = and $."""

    length: int = Field(default=10, ge=1)
    lengths: tuple[int, ...] = (10, 12, 15, 20, 40)
    alphabet: int = Field(default=8, ge=2)

    unit: ClassVar[Words] = say("symbols to rewrite")

    @abstractmethod
    def rewritten(self, symbols: Int[Tensor, "b n"]) -> Int[Tensor, "b n"]:
        """The answer for a string."""

    @property
    def vocabulary(self) -> int:
        return self.alphabet + 3

    def tokens(self, length: int) -> int:
        return 2 * length + 2

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        symbols = torch.randint(self.alphabet, (rows, length), generator=random)
        begin, equals, end = (column(rows, self.alphabet + n) for n in range(3))
        prompt = torch.cat([begin, symbols, equals], dim=1)
        return answered(prompt, torch.cat([self.rewritten(symbols), end], dim=1))

    def different(self, length: int) -> int:
        return int(self.alphabet**length)

    def chance(self, length: int) -> float:
        """Chance: uniform over the alphabet; the end token is known."""
        return float(self.alphabet) ** -length
