"""Rows drawn by a rule, without text; one row in eight is kept for scoring and never trained on.

    rows of a length    │ held out │            trained on             │      by a hash of the tokens that the model reads

A length with fewer than 4096 different rows is not divided: the model may train on all of them, and then the score at that
length says that they were learnt, not that they were understood. Longer rows can never be met in training.

Legend: b rows, t tokens, p tokens of the prompt, a tokens of the answer.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import model_validator
from torch import Tensor

from posenc.lab.tasks.task import IGNORE, Batch, Task

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

    from posenc.lab.experiment.corpus import Corpus

HELD_OUT = 8  # one row in so many
FEWEST = 4096  # different rows of a length that is divided
HASH_SEED = 20230530
MIXER = 0x2545F4914F6CDD1D  # Vigna 2016, arXiv 1402.6246


class Drawn(Task):
    """A task says how rows are drawn, and of how many different ones; the division follows."""

    measure = "exact"
    shortest: ClassVar[int] = 1

    @model_validator(mode="after")
    def _rows_exist(self) -> Drawn:
        if self.lengths[0] < self.shortest:
            raise ValueError(f"lengths: expected none below {self.shortest}, got {self.lengths}")
        return self

    @abstractmethod
    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        """Any rows of that length."""

    @abstractmethod
    def different(self, length: int) -> int:
        """How many different rows of that length there are."""

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None = None) -> Batch:
        """The length is drawn evenly, from the shortest to the trained one."""
        length = int(torch.randint(self.shortest, self.length + 1, (), generator=random))
        return self._part(rows, length, random, held_out=False)

    def scored(self, length: int, text: Corpus | None = None) -> Batch:
        if length < self.shortest:
            raise ValueError(f"length: expected at least {self.shortest}, got {length}")
        random = torch.Generator().manual_seed(length)  # the length's own, whatever the seed of training
        batch = self._part(self.held_out, length, random, held_out=True)
        return Batch(batch.tokens, batch.targets, item=torch.arange(self.held_out))

    def _part(self, rows: int, length: int, random: torch.Generator, held_out: bool) -> Batch:
        if rows < 1:
            raise ValueError(f"rows: expected at least 1, got {rows}")
        if self.different(length) < FEWEST:
            return self.draw(rows, length, random)
        attempts = HELD_OUT * rows if held_out else rows + rows // 4 + 8  # nearly always enough at once
        tokens, targets = list[Tensor](), list[Tensor]()
        while sum(map(len, tokens)) < rows:
            batch = self.draw(attempts, length, random)
            kept = is_held_out(batch.tokens) == held_out
            tokens.append(batch.tokens[kept])
            targets.append(batch.targets[kept])
        return Batch(torch.cat(tokens)[:rows], torch.cat(targets)[:rows])


def answered(prompt: Int[Tensor, "b p"], answer: Int[Tensor, "b a"]) -> Batch:
    """The answer is read as it is said; its last token is said only.

    tokens    [ p1 p2 p3 a1 a2 ]
    targets   [ .  .  a1 a2 a3 ]
    """
    nothing = prompt.new_full((len(prompt), prompt.shape[1] - 1), IGNORE)
    return Batch(torch.cat([prompt, answer[:, :-1]], dim=1), torch.cat([nothing, answer], dim=1))


def column(rows: int, token: int) -> Int[Tensor, "b 1"]:
    """The same token in every row."""
    return torch.full((rows, 1), token)


def is_held_out(tokens: Int[Tensor, "b t"]) -> Bool[Tensor, "b"]:
    """Σ odd number · (token + 1), which wraps at 64 bits, mixed so that no token leans to either side."""
    mixed = ((tokens + 1) * _multipliers(tokens.shape[1])).sum(dim=1)
    for _ in range(2):
        mixed = (mixed ^ (mixed >> 32)) * MIXER
    return (mixed >> 40) % HELD_OUT == 0


@lru_cache(maxsize=1024)
def _multipliers(count: int) -> Int[Tensor, "t"]:
    random = torch.Generator().manual_seed(HASH_SEED)
    return torch.randint(-(2**62), 2**62, (count,), generator=random) * 2 + 1
