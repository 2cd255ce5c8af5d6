"""Predict the next symbol of a Markov chain that each row draws anew: the transitions have to be counted in the context.

    tokens    [ d  a  c  a  c  b  a ]       row i of the transition matrix ~ Dirichlet(a, …, a), for each sequence anew
    targets   [ .  .  .  .  b  a  c ]       the last `targets` symbols

The best prediction counts (Pólya's urn): after symbol i, symbol j has the probability (n_ij + a) / (n_i + V·a), where n_ij
counts the transitions from i to j so far, n_i those from i, and V the symbols. Its loss is the floor at every length. It
falls with the length, and a model reaches it only if it uses the whole context.

The same symbols are scored at every length: the last of the longest rows, with as much context as the length says.

    last window   each target with exactly the trained length before it, one window for each
    optimum       counts the transitions in the context that it is given

Legend: b rows, t tokens, n targets, v symbols.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import fmean, stdev
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from posenc.lab.say import say
from posenc.lab.tasks.task import CUT, FROZEN, IGNORE, MAJORITY, OPTIMUM, Batch, Task, last_windows
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.lab.text.corpus import Corpus
    from posenc.support.shapes import Float, Int

SCORED_SEED = 20261126


class Chains(Task):
    """A row of a length is the end of the longest one, so all lengths are scored on the same symbols.

    symbols         V, up to 256, tokens are 0 … V-1; the first of a row is uniform
    concentration   a: small values make chains that are easy to predict once their transitions are known
    targets         the last symbols of a row, which are scored; in training all are
    held_out        rows that models are scored on, and the optimum too, for comparison
    standard_error  of what the optimum gains beyond the trained length: chains are drawn until it is below this, in bits.
                    .001 takes 25 times as many as .005. With one length nothing is gained, and this is not written
    """

    name: Literal["chains"] = "chains"
    length: int = Field(default=128, ge=1)
    lengths: tuple[int, ...] = (128, 256, 512, 1024, 2048)
    symbols: int = Field(default=16, ge=2, le=256)
    concentration: float = Field(default=0.2, gt=0, allow_inf_nan=False)
    targets: int = Field(default=64, ge=1)
    standard_error: float = Field(default=0.005, ge=0.001, allow_inf_nan=False)

    scoring: ClassVar[frozenset[str]] = Task.scoring | {"targets", "standard_error"}
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

    def unwritten(self) -> set[str]:
        return super().unwritten() | (set() if self.reaches_beyond else {"standard_error"})

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
        window = self._held_out()[:, -length - 1 :]
        targets = window[:, 1:].clone()
        targets[:, : -self.targets] = IGNORE
        return Batch(window[:, :-1], targets, item=torch.arange(len(window)))

    def last_window(self, text: Corpus | None = None) -> Batch | None:
        rows = self._held_out()
        return last_windows(rows, self.length, self.targets, torch.arange(len(rows))) if self.reaches_beyond else None

    def all_targets(self, batch: Batch) -> Int[Tensor, "b t"]:
        """Every symbol but the first, for the loss by position."""
        return torch.cat([batch.tokens[:, 1:], batch.targets[:, -1:]], dim=1)

    def chance(self, length: int) -> float:
        """Chance: uniform over symbols."""
        return float(np.log2(self.symbols))

    def baseline(self, text: Corpus | None = None) -> float:
        """The loss at the trained length of a model that counts the symbols so far, without their order."""
        return self.counted(0, self.length).mean().item()

    def floor(self, length: int) -> float:
        """The loss of the best prediction on the scored symbols."""
        return self.counted(1, length).mean().item()

    def floor_by_position(self) -> list[float]:
        """Its mean loss at each position of the longest rows."""
        losses: list[float] = _bits_by_position(self).mean(0).tolist()
        return losses

    def grams(self, length: int) -> dict[int, float]:
        """The loss of counting what followed the last k symbols, by k; k = 1 is the floor."""
        return {k: self.counted(k, length).mean().item() for k in (0, 1, 2)}

    def counted(self, k: int, length: int | None) -> Float[Tensor, "b n"]:
        """Bits of the scored symbols, by Pólya counts of what followed the last k symbols in a context of that length.

        None: in the last window, exactly the trained length.
        """
        return _counted(self, k, length)

    def frozen(self, length: int | None) -> Float[Tensor, "b n"]:
        """The same of a prediction that counts only the first symbols of its context, as many as the trained length."""
        if length is None or length <= self.length:
            return self.counted(1, length)
        rows, n = self._held_out()[:, -length - 1 :], self.length
        counts = transitions(rows[:, :n], self.symbols) + self.concentration
        before, after = rows[:, -self.targets - 1 : -1], rows[:, -self.targets :]
        seen = counts[torch.arange(len(rows))[:, None], before]
        return -torch.log2(seen.gather(2, after[..., None])[..., 0] / seen.sum(-1))

    def controls(self, length: int | None) -> dict[str, Float[Tensor, "b"]]:
        near = None if length is None or length > self.length else length
        bits = {
            OPTIMUM: self.counted(1, length),
            CUT: self.counted(1, near),
            MAJORITY: self.counted(0, length),
            FROZEN: self.frozen(length),
        }
        return {name: of.mean(1) for name, of in bits.items()}

    @property
    def reaches_beyond(self) -> bool:
        """Whether the longest rows hold the last window of every target, beyond the trained length."""
        return self.lengths[-1] > self.length and self.lengths[-1] >= self.length + self.targets - 1

    def gain(self) -> tuple[float, float, int]:
        return _gain(self)

    def _held_out(self) -> Int[Tensor, "b t"]:
        return _held_out_rows(self)


@lru_cache(maxsize=8)
def _held_out_rows(task: Chains) -> Int[Tensor, "b t"]:
    return task.draw(task.held_out, task.lengths[-1] + 1, torch.Generator().manual_seed(SCORED_SEED))


@lru_cache(maxsize=8)
def _gain(task: Chains) -> tuple[float, float, int]:
    random, gained = torch.Generator().manual_seed(SCORED_SEED), list[float]()
    while True:
        rows = task.draw(task.held_out, task.lengths[-1] + 1, random)  # the first are those that models are scored on
        near, far = (_bits(task, rows, 1, length) for length in (None, task.lengths[-1]))
        gained += (near - far).mean(1).tolist()
        if len(gained) > 1 and (error := stdev(gained) / len(gained) ** 0.5) < task.standard_error:
            return fmean(gained), error, len(gained)


@lru_cache(maxsize=32)
def _counted(task: Chains, k: int, length: int | None) -> Float[Tensor, "b n"]:
    return _bits(task, _held_out_rows(task), k, length)


def _bits(task: Chains, rows: Int[Tensor, "b t"], k: int, length: int | None) -> Float[Tensor, "b n"]:
    if length is None:
        windows = rows.unfold(1, task.length + 1, 1)[:, -task.targets :]
        bits = polya_bits(windows.flatten(0, 1), task.symbols, task.concentration, k)[:, -1]
        return bits.reshape(windows.shape[:2])
    return polya_bits(rows[:, -length - 1 :], task.symbols, task.concentration, k)[:, -task.targets :]


@lru_cache(maxsize=8)
def _bits_by_position(task: Chains) -> Float[Tensor, "b t"]:
    return polya_bits(_held_out_rows(task), task.symbols, task.concentration, 1)


def transitions(rows: Int[Tensor, "b t"], symbols: int) -> Float[Tensor, "b v v"]:
    """How often each symbol followed each other one."""
    pairs = rows[:, :-1] * symbols + rows[:, 1:]
    counts = torch.zeros(len(rows), symbols**2, dtype=torch.float64)
    counts.scatter_add_(1, pairs, torch.ones_like(pairs, dtype=torch.float64))
    return counts.reshape(-1, symbols, symbols)


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
