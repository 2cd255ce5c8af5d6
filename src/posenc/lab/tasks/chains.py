"""Predict the next symbol of a Markov chain that each row draws anew: the transitions have to be counted in the context.

    tokens    [ d  a  c  a  c  b  a ]       row i of the transition matrix ~ Dirichlet(a, …, a), for each sequence anew
    targets   [ .  .  .  .  b  a  c ]       the last `targets` symbols

The best prediction counts (Pólya's urn): after symbol i, symbol j has the probability (n_ij + a) / (n_i + V·a), where n_ij
counts the transitions from i to j so far, n_i those from i, and V the symbols. Its loss is the floor at every length. It
falls with the length, and a model reaches it only if it uses the whole context.

Legend: b rows, t tokens, v symbols.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from posenc.lab.say import say
from posenc.lab.tasks.task import IGNORE, Batch, Task
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.lab.text.corpus import Corpus
    from posenc.support.shapes import Float, Int

SCORED_SEED = 20261126


class Chains(Task):
    """A row of a length is the beginning of a longer one, so all lengths are scored on the same chains.

    symbols        V, up to 256, tokens are 0 … V-1; the first of a row is uniform
    concentration  a: small values make chains that are easy to predict once their transitions are known
    targets        the last symbols of a row, which are scored; in training all are
    """

    name: Literal["chains"] = "chains"
    length: int = Field(default=128, ge=1)
    lengths: tuple[int, ...] = (128, 256, 512, 1024, 2048)
    symbols: int = Field(default=16, ge=2, le=256)
    concentration: float = Field(default=0.2, gt=0, allow_inf_nan=False)
    targets: int = Field(default=64, ge=1)

    scoring: ClassVar[frozenset[str]] = Task.scoring | {"targets"}
    title: ClassVar[Words] = say("Random Markov chains")
    unit: ClassVar[Words] = say("symbols of context")
    measure: ClassVar[Literal["bits", "exact"]] = "bits"
    follows_far: ClassVar[bool] = True
    sees: ClassVar[Words] = say("counts symbols without their order")

    @model_validator(mode="after")
    def _targets_fit(self) -> Chains:
        if self.targets > self.lengths[0]:
            raise ValueError(f"targets: expected at most the shortest length, {self.lengths[0]}, got {self.targets}")
        return self

    @property
    def vocabulary(self) -> int:
        return self.symbols

    def tokens(self, length: int) -> int:
        return length

    def draw(self, rows: int, length: int, random: torch.Generator) -> Int[Tensor, "b t"]:
        """Random sequences of that many symbols, each of a chain of its own."""
        shape = np.random.default_rng(int(torch.randint(2**62, (), generator=random)))  # torch's gamma takes no generator
        weights = torch.from_numpy(shape.standard_gamma(self.concentration, (rows, self.symbols, self.symbols)))
        # a row of tiny weights may round to zeros; it goes to one symbol, as it would in the limit
        weights[..., 0] += (weights.sum(-1) == 0).double()
        ends = (weights / weights.sum(-1, keepdim=True)).cumsum(-1)
        ends[..., -1] = 1.0
        chance = torch.rand(length, rows, dtype=torch.float64, generator=random)
        drawn, every = [torch.randint(self.symbols, (rows,), generator=random)], torch.arange(rows)
        for share in chance[1:]:
            drawn.append((share[:, None] >= ends[every, drawn[-1]]).sum(-1))
        return torch.stack(drawn, dim=1)

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None = None) -> Batch:
        drawn = self.draw(rows, self.length + 1, random)
        return Batch(drawn[:, :-1], drawn[:, 1:])

    def scored(self, length: int, text: Corpus | None = None) -> Batch:
        window = self._held_out()[:, : length + 1]
        targets = window[:, 1:].clone()
        targets[:, : -self.targets] = IGNORE
        return Batch(window[:, :-1], targets, item=torch.arange(self.held_out))

    def all_targets(self, batch: Batch) -> Int[Tensor, "b t"]:
        """Every symbol but the first, for the loss by position."""
        return torch.cat([batch.tokens[:, 1:], batch.targets[:, -1:]], dim=1)

    def chance(self, length: int) -> float:
        """Chance: uniform over symbols."""
        return float(np.log2(self.symbols))

    def baseline(self, text: Corpus | None = None) -> float:
        """The loss at the trained length of a model that counts the symbols so far, without their order."""
        return self._scored_mean(self.counted(0), self.length)

    def floor(self, length: int) -> float:
        """The loss of the best prediction on the scored symbols."""
        return self._scored_mean(self.counted(1), length)

    def floor_by_position(self) -> list[float]:
        """Its mean loss at each position of the longest rows."""
        losses: list[float] = self.counted(1).mean(0).tolist()
        return losses

    def grams(self, length: int) -> dict[int, float]:
        """The loss of counting what followed the last k symbols, by k; k = 1 is the floor."""
        return {k: self._scored_mean(self.counted(k), length) for k in (0, 1, 2)}

    def counted(self, k: int) -> Float[Tensor, "b t"]:
        """Bits of every target of the longest held-out rows, by Pólya counts of what followed the last k symbols."""
        return _held_out_bits(self, k)

    def _scored_mean(self, bits: Float[Tensor, "b t"], length: int) -> float:
        return bits[:, length - self.targets : length].mean().item()

    def _held_out(self) -> Int[Tensor, "b t"]:
        return _held_out_rows(self)


@lru_cache(maxsize=8)
def _held_out_rows(task: Chains) -> Int[Tensor, "b t"]:
    random = torch.Generator().manual_seed(SCORED_SEED)
    return task.draw(task.held_out, task.lengths[-1] + 1, random)


@lru_cache(maxsize=16)
def _held_out_bits(task: Chains, k: int) -> Float[Tensor, "b t"]:
    return polya_bits(_held_out_rows(task), task.symbols, task.concentration, k)


def polya_bits(rows: Int[Tensor, "b t"], symbols: int, concentration: float, k: int) -> Float[Tensor, "b t"]:
    """Bits of each symbol but the first: -log2 of (n_cj + a) / (n_c + V·a), with counts n by context c of k symbols.

    Symbols that have fewer than k before them have a uniform probability. [b, t] for rows of t + 1 symbols.
    """
    counts = torch.full((len(rows), symbols**k, symbols), concentration, dtype=torch.float64)
    every, context = torch.arange(len(rows)), torch.zeros(len(rows), dtype=torch.int64)
    bits = torch.full((len(rows), rows.shape[1] - 1), float(np.log2(symbols)), dtype=torch.float64)
    for t, symbol in enumerate(rows.T):
        if t >= k:
            seen = counts[every, context]
            if t > 0:
                bits[:, t - 1] = -torch.log2(seen[every, symbol] / seen.sum(-1))
            counts[every, context, symbol] += 1
        context = (context * symbols + symbol) % symbols**k
    return bits
