"""Is the number of ones odd? A negative control: no positional encoding is expected to help a Transformer here.

    tokens    [ ^  1  0  1  1  = ]
    targets   [ .  .  .  .  .  1 ]      1 odd, 0 even

Hahn 2020, arXiv 1906.06755, gives the reason; Kazemnejad et al. 2023, arXiv 2305.19466, use it as a task.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from posenc.lab.say import say
from posenc.lab.tasks.drawn import Drawn, answered, column
from posenc.lab.tasks.task import Batch
from posenc.support.languages import Words

BEGIN, EQUALS = 2, 3  # tokens after the bits


class Parity(Drawn):
    name: Literal["parity"] = "parity"
    length: int = Field(default=12, ge=1)
    lengths: tuple[int, ...] = (12, 16, 20, 24, 48)

    title: ClassVar[Words] = say("Parity")
    unit: ClassVar[Words] = say("bits", context="unit")

    @property
    def vocabulary(self) -> int:
        return 4

    def tokens(self, length: int) -> int:
        return length + 2

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        bits = torch.randint(2, (rows, length), generator=random)
        prompt = torch.cat([column(rows, BEGIN), bits, column(rows, EQUALS)], dim=1)
        return answered(prompt, bits.sum(dim=1, keepdim=True) % 2)

    def different(self, length: int) -> int:
        return int(2**length)

    def chance(self, length: int) -> float:
        """Chance: one random bit."""
        return 0.5
