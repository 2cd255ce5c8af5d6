"""Retrieve a key of digits that stands somewhere in filler text.

    length 5, digits 2
    tokens    [ ^  x  z  !  4  7  y  z  x  ?  4 ]       ! announces the key, ? asks for it
    targets   [ .  .  .  .  .  .  .  .  .  4  7 ]

    length 5, digits 2, needles 2, loose digits
    tokens    [ ^  x  3  !  B  4  7  y  !  A  8  2  5  x  ?  B  4 ]    each key has a name, ? asks for one by its name
    targets   [ .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  4  7 ]

Mohtashami and Jaggi 2023, arXiv 2305.16300. The depth is uniform. Their filler repeats a few sentences; here it
is random, so that it contains no information about its position.

With one key and no loose digits, the digits that occur are the key: counting them gets half of the rows right
(`shortcuts`), so that the score is as much one of the order of two neighbours as of finding them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from posenc.lab.say import say
from posenc.lab.tasks.drawn import Drawn, answered, column
from posenc.lab.tasks.shortcuts import Share, shortcuts
from posenc.lab.tasks.task import Batch
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Int


class Passkey(Drawn):
    """The ten digits, then the filler's words, then ^, ! and ?, then the names of the keys.

    needles  keys in a row; several have names
    loose    the share of the filler that is digits, which belong to no key
    """

    name: Literal["passkey"] = "passkey"
    length: int = Field(default=64, ge=1)
    lengths: tuple[int, ...] = (64, 96, 128, 256, 512)
    digits: int = Field(default=4, ge=1)
    filler: int = Field(default=8, ge=1)
    needles: int = Field(default=1, ge=1)
    loose: float = Field(default=0.0, ge=0, lt=1)

    title: ClassVar[Words] = say("Passkey")
    unit: ClassVar[Words] = say("words of filler")
    retrieves: ClassVar[bool] = True

    def unwritten(self) -> set[str]:
        none = {"needles": 1, "loose": 0}
        return super().unwritten() | {name for name in none if getattr(self, name) == none[name]}

    @property
    def vocabulary(self) -> int:
        return 10 + self.filler + 3 + self._names

    @property
    def announces(self) -> int:
        """The token !."""
        return 10 + self.filler + 1

    def tokens(self, length: int) -> int:
        return length + self.needles * self._needle + (self.needles > 1) + self.digits + 1

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        begin, announce, ask = (column(rows, 10 + self.filler + n) for n in range(3))
        keys = torch.randint(10, (rows, self.needles, self.digits), generator=random)
        filler = torch.randint(10, 10 + self.filler, (rows, length), generator=random)
        depth = torch.randint(length + 1, (rows, self.needles), generator=random)
        needles = torch.cat([announce[:, None].expand(rows, self.needles, 1), keys], dim=2)
        key, asked = keys[:, 0], ask
        if self.loose:
            digits = torch.randint(10, (rows, length), generator=random)
            filler = digits.where(torch.rand(rows, length, generator=random) < self.loose, filler)
        if self.needles > 1:
            name = torch.arange(self.needles).expand(rows, -1)[..., None] + 10 + self.filler + 3
            needles = torch.cat([needles[..., :1], name, keys], dim=2)
            one = torch.randint(self.needles, (rows, 1), generator=random)
            key = keys.gather(1, one[..., None].expand(-1, 1, self.digits))[:, 0]
            asked = torch.cat([ask, name[..., 0].gather(1, one)], dim=1)
        hay = torch.cat([filler, needles.flatten(1)], dim=1).gather(1, self._places(depth, length))
        return answered(torch.cat([begin, hay, asked], dim=1), key)

    def _places(self, depth: Int[Tensor, "b k"], length: int) -> Int[Tensor, "b t"]:
        """Which token of filler and needles, side by side, stands where: a needle is before the word at its depth."""
        rows, size = len(depth), self._needle
        words = torch.arange(length).mul(2).add(1).expand(rows, -1)
        parts = (depth * 2)[..., None].expand(-1, -1, size).flatten(1)
        return torch.cat([words, parts], dim=1).argsort(dim=1, stable=True)

    def depths(self, batch: Batch) -> Int[Tensor, "b"]:
        """Words of filler before the key that is asked for."""
        tokens, places = batch.tokens, torch.arange(batch.tokens.shape[1] - 1)
        announced = tokens[:, :-1] == self.announces
        if self.needles > 1:
            name = tokens[:, -self.digits :][:, :1]
            asked = announced & (tokens[:, 1:] == name)
        else:
            asked = announced
        at = asked.int().argmax(dim=1)
        before = (announced & (places < at[:, None])).sum(1)
        return at - 1 - before * self._needle

    def shortcuts(self, length: int) -> dict[str, Share]:
        return shortcuts(self.scored(length), 10)

    def different(self, length: int) -> int:
        return int((length + 1) * 10**self.digits * self.filler**length)

    def chance(self, length: int) -> float:
        """Chance: uniform over digits. `shortcuts` says what counting digits gets."""
        return 10.0**-self.digits

    @property
    def _names(self) -> int:
        return self.needles if self.needles > 1 else 0

    @property
    def _needle(self) -> int:
        """Tokens of a needle: !, its name and its digits."""
        return self.digits + (2 if self.needles > 1 else 1)
