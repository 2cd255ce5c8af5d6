"""Retrieve a key of digits that stands somewhere in filler text.

    length 5, digits 2
    tokens    [ ^  x  z  !  4  7  y  z  x  ?  4 ]       ! announces the key, ? asks for it
    targets   [ .  .  .  .  .  .  .  .  .  4  7 ]

Mohtashami and Jaggi 2023, arXiv 2305.16300. The depth is uniform. Their filler repeats a few sentences; here it
is random, so that it contains no information about its position.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from posenc.lab.say import say
from posenc.lab.tasks.drawn import Drawn, answered, column
from posenc.lab.tasks.task import Batch
from posenc.support.languages import Words


class Passkey(Drawn):
    """The ten digits, then the filler's words, then ^, ! and ?."""

    name: Literal["passkey"] = "passkey"
    length: int = Field(default=64, ge=1)
    lengths: tuple[int, ...] = (64, 96, 128, 256, 512)
    digits: int = Field(default=4, ge=1)
    filler: int = Field(default=8, ge=1)

    title: ClassVar[Words] = say("Passkey")
    unit: ClassVar[Words] = say("words of filler")

    @property
    def vocabulary(self) -> int:
        return 10 + self.filler + 3

    def tokens(self, length: int) -> int:
        return length + 2 * self.digits + 2

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        begin, announce, ask = (column(rows, 10 + self.filler + n) for n in range(3))
        key = torch.randint(10, (rows, self.digits), generator=random)
        filler = torch.randint(10, 10 + self.filler, (rows, length), generator=random)
        depth = torch.randint(length + 1, (rows, 1), generator=random)

        # filler and key side by side; `hay` holds the index that each position takes
        position, taken = torch.arange(length + self.digits + 1), self.digits + 1
        before, after = position < depth, position >= depth + taken
        source = torch.where(before, position, torch.where(after, position - taken, length + position - depth))
        hay = torch.cat([filler, announce, key], dim=1).gather(1, source)
        return answered(torch.cat([begin, hay, ask], dim=1), key)

    def different(self, length: int) -> int:
        return int((length + 1) * 10**self.digits * self.filler**length)

    def chance(self, length: int) -> float:
        """Chance: uniform over digits."""
        return 10.0**-self.digits
