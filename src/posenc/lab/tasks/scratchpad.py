"""Add two numbers in written steps: units first, each with the carry it leaves, and then the sum.

    47 + 85 = 7 5 2 1  4 8 3 1 ; 132
    tokens    [ ^  4  7  +  8  5  =  7  5  2  1  4  8  3  1  ;  1  3  2 ]
    targets   [ .  .  .  .  .  .  7  5  2  1  4  8  3  1  ;  1  3  2  $ ]

    a step    digit of the first, digit of the second, last digit of their sum with the carry before, carry 0 or 1

Numbers are written as people write them, so each step has to find its two digits: task `addition` spares that by writing
units first, and has no steps. A row counts if its steps and its sum are right. Operands may have leading zeros; the sum
has one digit more. Scratchpads are of Nye et al. 2021, arXiv 2112.00114.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from posenc.lab.say import say
from posenc.lab.tasks.drawn import Drawn, answered, column
from posenc.lab.tasks.task import Batch
from posenc.support.languages import Words

BEGIN, PLUS, EQUALS, DONE, END = 10, 11, 12, 13, 14  # tokens after the digits


class Scratchpad(Drawn):
    name: Literal["scratchpad"] = "scratchpad"
    length: int = Field(default=6, ge=1)
    lengths: tuple[int, ...] = (6, 8, 12, 24)

    title: ClassVar[Words] = say("Addition in written steps")
    unit: ClassVar[Words] = say("digits of each number")

    @property
    def vocabulary(self) -> int:
        return 15

    def tokens(self, length: int) -> int:
        return 7 * length + 5

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        a, b = torch.randint(10, (2, rows, length), generator=random)
        carry, steps, digits = torch.zeros_like(a[:, 0]), [], []
        for x, y in zip(a.flip(1).T, b.flip(1).T, strict=True):
            carry, digit = (x + y + carry) // 10, (x + y + carry) % 10
            digits.append(digit)
            steps += [x, y, digit, carry]
        total = torch.stack([carry, *reversed(digits)], dim=1)
        begin, plus, equals, done, end = (column(rows, token) for token in (BEGIN, PLUS, EQUALS, DONE, END))
        prompt = torch.cat([begin, a, plus, b, equals], dim=1)
        return answered(prompt, torch.cat([torch.stack(steps, dim=1), done, total, end], dim=1))

    def different(self, length: int) -> int:
        return int(100**length)

    def chance(self, length: int) -> float:
        """Chance: uniform over digits in the steps, whose carries are 0 or 1; the sum repeats them."""
        return 2000.0**-length
