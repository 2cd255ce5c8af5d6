"""Count the increments of a variable since it was last set to zero; other instructions do nothing.

    length 6
    tokens    [ ^  +  .  0  +  .  +  ? ]      0 sets to zero, + adds one, . does nothing, ? asks
    targets   [ .  .  .  .  .  .  .  2 ]

After Golovneva et al. 2024 (CoPE), arXiv 2405.18719, section 5.2, with one variable. The answer is uniform over 0 … 9
(fewer in rows shorter than ten), so that longer rows do not have larger answers.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from posenc.lab.say import say
from posenc.lab.tasks.drawn import Drawn, answered, column
from posenc.lab.tasks.task import Batch
from posenc.support.languages import Words

ANSWERS = 10
BEGIN, NOTHING, ADD, ZERO, ASK = range(ANSWERS, ANSWERS + 5)  # tokens after the answers


class Counting(Drawn):
    name: Literal["counting"] = "counting"
    length: int = Field(default=24, ge=1)
    lengths: tuple[int, ...] = (24, 32, 48, 96)

    title: ClassVar[Words] = say("Counting")
    unit: ClassVar[Words] = say("instructions")

    @property
    def vocabulary(self) -> int:
        return ASK + 1

    def tokens(self, length: int) -> int:
        return length + 2

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        """An answer, a position of the last zero that leaves room for it, and as many increments at random positions."""
        answer = torch.randint(self._answers(length), (rows, 1), generator=random)
        room = length - answer  # of positions for the last zero
        zero = (torch.rand(rows, 1, generator=random) * room).long()
        position = torch.arange(length)
        order = torch.rand(rows, length, generator=random).masked_fill(position <= zero, 2.0).argsort(dim=1).argsort(dim=1)
        before = torch.randint(NOTHING, ZERO + 1, (rows, length), generator=random)
        after = torch.where(order < answer, ADD, NOTHING)
        steps = torch.where(position < zero, before, torch.where(position == zero, ZERO, after))
        return answered(torch.cat([column(rows, BEGIN), steps, column(rows, ASK)], dim=1), answer)

    def different(self, length: int) -> int:
        return int(3 ** (length - 1))

    def chance(self, length: int) -> float:
        """Chance: uniform over the answers."""
        return 1 / self._answers(length)

    def _answers(self, length: int) -> int:
        return min(ANSWERS, length)
