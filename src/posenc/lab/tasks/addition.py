"""Add two numbers with the same number of digits, units first, so that each carry is known when it is needed.

    47 + 85 = 132
    tokens    [ ^  7  4  +  5  8  =  2  3  1 ]
    targets   [ .  .  .  .  .  .  2  3  1  $ ]

Operands may have leading zeros; the sum always has one digit more than the operands. Lee et al. 2023, arXiv 2307.03381,
reverse the answer only; McLeish et al. 2024, arXiv 2405.17399, reverse operands and answer, as here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from posenc.lab.say import say
from posenc.lab.tasks.drawn import Drawn, answered, column
from posenc.lab.tasks.task import Batch
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Int

BEGIN, PLUS, EQUALS, END = 10, 11, 12, 13  # tokens after the digits


class Addition(Drawn):
    name: Literal["addition"] = "addition"
    length: int = Field(default=8, ge=1)
    lengths: tuple[int, ...] = (8, 10, 12, 16, 32)

    title: ClassVar[Words] = say("Addition")
    unit: ClassVar[Words] = say("digits of each number")

    @property
    def vocabulary(self) -> int:
        return 14

    def tokens(self, length: int) -> int:
        return 3 * length + 4

    def digits_of_a_number(self, length: int) -> int:
        return length + 1  # of the sum

    def is_digit(self, tokens: Int[Tensor, "b t"]) -> Bool[Tensor, "b t"]:
        return tokens < BEGIN

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        a, b = torch.randint(10, (2, rows, length), generator=random)
        begin, plus, equals, end = (column(rows, token) for token in (BEGIN, PLUS, EQUALS, END))
        return answered(torch.cat([begin, a, plus, b, equals], dim=1), torch.cat([added(a, b), end], dim=1))

    def different(self, length: int) -> int:
        return int(100**length)

    def chance(self, length: int) -> float:
        """Chance: uniform over digits, except the last digit, which is 0 or 1; the end token is known."""
        return 0.5 * 10.0**-length


def added(a: Int[Tensor, "b n"], b: Int[Tensor, "b n"]) -> Int[Tensor, "b m"]:
    """The sum, digit by digit with the carry; m = n + 1."""
    carry, digits = torch.zeros_like(a[:, 0]), []
    for column_sum in (a + b).unbind(1):
        digits.append((column_sum + carry) % 10)
        carry = (column_sum + carry) // 10
    return torch.stack([*digits, carry], dim=1)
