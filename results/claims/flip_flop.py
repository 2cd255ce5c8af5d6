"""One bit of memory: write, read and ignore instructions, each with a bit; a read gives the bit last written.

    length 4
    tokens    [ w  1  i  0  r  1  r ]       the first writes, the last reads, ignored bits are random
    targets   [ .  .  .  .  1  .  1 ]       reads only: nothing else can be predicted

Liu et al. 2023, arXiv 2306.00946, ignore a fixed share of the instructions and find errors in the sparse tail, where writes
are far from reads. Here, on average `acting` instructions between the first and the last write or read, at every length, so
longer rows are sparser. With 3, 79 % are ignored at length 16 and 98 % at 128, like FFL(.8) and FFL(.98).

A task of this study's own: cope.yaml names it flip_flop.py:FlipFlop. The text of this file is part of every trial, so after
any change its twenty trials run again.
"""

from __future__ import annotations

import torch
from pydantic import Field

from posenc.lab.tasks.drawn import Drawn
from posenc.lab.tasks.task import IGNORE, Batch
from posenc.support.languages import Words

WRITE, READ, SKIP = 2, 3, 4  # tokens after the bits


class FlipFlop(Drawn):
    length: int = Field(default=16, ge=2)
    lengths: tuple[int, ...] = (16, 20, 24, 32, 64, 128)
    acting: float = Field(default=3, gt=0)  # writes and reads are equally likely

    title = Words("Flip-flop memory", "触发器记忆")
    unit = Words("instructions", "指令数")
    shortest = 2

    @property
    def vocabulary(self) -> int:
        return 5

    def tokens(self, length: int) -> int:
        return 2 * length - 1

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        acts = torch.rand(rows, length, generator=random) < self._acts(length)
        bits, kinds = torch.randint(2, (2, rows, length), generator=random)
        instructions = torch.where(acts, WRITE + kinds, SKIP)
        instructions[:, 0], instructions[:, -1] = WRITE, READ
        position = torch.arange(length).expand(rows, -1)
        written = position.where(instructions == WRITE, 0).cummax(dim=1).values  # the index of the last write so far
        reads = instructions == READ
        bits = torch.where(reads, bits.gather(1, written), bits)
        targets = torch.stack([bits.where(reads, IGNORE), torch.full_like(bits, IGNORE)], dim=2)
        return Batch(torch.stack([instructions, bits], dim=2).flatten(1)[:, :-1], targets.flatten(1)[:, :-1])

    def different(self, length: int) -> int:
        each = 5 if self._acts(length) < 1 else 3  # two bits to write, one to read, two to ignore
        return int(2 * each ** (length - 2))

    def chance(self, length: int) -> float:
        """Chance with a random bit at every read: ½ for the last, and a factor ½ for each read in the middle."""
        read = self._acts(length) / 2
        return 0.5 * (1 - read / 2) ** (length - 2)

    def _acts(self, length: int) -> float:
        """The probability that an instruction in the middle writes or reads."""
        return min(1.0, self.acting / max(1, length - 2))
