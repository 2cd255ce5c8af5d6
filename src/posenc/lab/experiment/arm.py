"""One contender: an encoding by name, with the tokens' positions 0, 1, 2, … or others.

    rope              positions 0, 1, 2, …
    mine.py:Mine      a user's own class, from the text of its file
    rope+randomized   a sorted random subset of 0 … M-1, in training and when scored; M is `spread` times the longest length
    learned+abacus    digits counted within their number, from 1, in training from a random start; other tokens have 0
    rope+dropped      RoPE for the first 7/8 of the steps, no positions from there on, with a warmup of its own

Random positions: Ruoss et al. 2023, arXiv 2305.16843, section 3, who draw them in training and when scoring.
Abacus: McLeish et al. 2024, arXiv 2405.17399, section 3.
Dropped: Gelberg et al. 2025 (DroPE), arXiv 2512.12167: the position encoding is removed and training goes on for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from posenc.catalogue import lookup
from posenc.encoding import PositionalEncoding
from posenc.encodings.positions.abacus import abacus
from posenc.lab.experiment import user_encoding
from posenc.lab.tasks.task import Task
from posenc.positions import Positions
from posenc.support.checks import shown

if TYPE_CHECKING:
    from posenc.support.shapes import Int

RANDOMIZED, ABACUS, DROPPED = "+randomized", "+abacus", "+dropped"
Numbering = Callable[[Tensor], Positions]  # the positions of rows, by their tokens
KEPT = 7 / 8  # share of the steps before positions are dropped
TABLE_STD = "table_std"  # an option of the lab: standard deviation of the initial rows of a learned table
WINDOW = "window"  # an option of the lab: keys that a query sees, itself among them, in layers with an encoding
OF_THE_LAB = (TABLE_STD, WINDOW)


@cache
def trainable() -> tuple[str, ...]:
    """The names that a trial can train: they read one coordinate, which is all that tasks give, and keep the heads."""
    entries = (lookup.BY_NAME[name] for name in lookup.names())
    ones = (entry for entry in entries if entry.axes == 1 and not entry.of_pairs)
    return tuple(entry.name for entry in ones if "wide_output" not in entry.needs)


def meant(word: str) -> str:
    """`; did you mean rope+randomized?` for a word that is nearly an arm, or what the catalogue says of it."""
    name, plus, _ = word.partition("+")
    if (entry := lookup.entry_of(name)) is None or entry.kind == "positions":
        return lookup.hint(word)
    if plus:
        return f"; expected {entry.name}, {entry.name}{RANDOMIZED} or {entry.name}{ABACUS}"
    return f"; did you mean {entry.name}?"


def encoding_of(word: str) -> str:
    """The encoding alone: rope, of rope+randomized."""
    ends = (suffix for suffix in (RANDOMIZED, ABACUS, DROPPED) if word.endswith(suffix))
    return word.removesuffix(next(ends, ""))


def tuned_as(word: str, words: Container[str]) -> str:
    """The encoding whose tries choose the settings of this one: of rope+dropped, those of rope where it takes part.

    It is trained as RoPE for the first 7/8 of the steps, and the short tries of tuning leave too few steps after that.
    """
    kept = encoding_of(word)
    return kept if word.endswith(DROPPED) and kept in words else word


@dataclass(frozen=True)
class Arm:
    """`Arm.parse("rope+randomized")`; `source` is the text of the file where the encoding is a user's own.

    options   settings of the encoding in place of its defaults: (("base", 500.0),)
    spread    of random positions: how many there are over the longest scored length
    """

    encoding: str
    randomized: bool = False
    source: str | None = None
    options: tuple[tuple[str, float], ...] = ()
    dropped: bool = False
    spread: int = 1
    abacus: bool = False

    @classmethod
    def parse(
        cls, word: str, source: str | None = None, options: tuple[tuple[str, float], ...] = (), spread: int = 1
    ) -> Arm:
        """Raises ValueError for an unknown name or option, pointing to the right one."""
        randomized, dropped, counted = (word.endswith(suffix) for suffix in (RANDOMIZED, DROPPED, ABACUS))
        arm = cls(encoding_of(word), randomized, source, options, dropped, spread, counted)
        if dropped and arm.encoding != "rope":
            got = shown(word)
            raise ValueError(f"{DROPPED}: expected rope{DROPPED}, got {got}; DroPE removes RoPE from a trained model")
        if source is None and arm.encoding in lookup.position_names():
            raise ValueError(
                f"{arm.encoding} numbers tokens and is no encoding; two such ways train: NAME{RANDOMIZED}, NAME{ABACUS}"
            )
        if source is None and arm.encoding not in lookup.names():
            message = f"unknown encoding {shown(arm.encoding)}{meant(arm.encoding)}"
            raise ValueError(f"{message}{' See' if message.endswith('?') else '; see'} posenc list")
        if source is None and arm.encoding not in trainable():
            axes = lookup.BY_NAME[arm.encoding].axes
            if lookup.BY_NAME[arm.encoding].of_pairs:
                raise ValueError(f"{arm.encoding} reads a value of each pair of tokens; the tokens of every task have none")
            if axes == 1:
                raise ValueError(f"{arm.encoding} needs a wider output projection than the lab's model has")
            raise ValueError(f"{arm.encoding} reads {axes} coordinates of a token; the tokens of every task have one")
        return arm

    def __str__(self) -> str:
        return self.encoding + RANDOMIZED * self.randomized + ABACUS * self.abacus + DROPPED * self.dropped

    def create(self, *, d_model: int, n_heads: int, n_layers: int, positions: int, causal: bool = True) -> nn.ModuleList:
        """One module, or one per layer as in its paper. Learned tables have the positions 0 … positions-1."""

        def create_one() -> PositionalEncoding:
            sizes = {"d_model": d_model, "n_heads": n_heads, "n_layers": n_layers, "max_positions": positions}
            if self.source is not None:
                return user_encoding.create(self.encoding, self.source, sizes)
            options: dict[str, Any] = {name: value for name, value in self.options if name not in OF_THE_LAB}
            return lookup.create(self.encoding, **sizes, **lookup.directed(self.encoding, causal), **options)

        per_layer = self.source is None and lookup.BY_NAME[self.encoding].per_layer
        return nn.ModuleList(create_one() for _ in range(n_layers if per_layer else 1))

    def table_std(self, default: float) -> float:
        """The standard deviation of the initial rows of a learned table."""
        return dict(self.options).get(TABLE_STD, default)

    @property
    def window(self) -> int | None:
        """How many keys a query sees in the layers with an encoding; None: all."""
        window = dict(self.options).get(WINDOW)
        return None if window is None else int(window)

    def largest(self, longest: int) -> int:
        """How many positions there are to draw from; `longest` is the longest scored length in tokens."""
        return self.spread * longest if self.randomized else longest

    def positions(self, task: Task, length: int) -> int:
        """How many positions rows of that length need, without random ones."""
        return 1 + task.digits_of_a_number(length) if self.abacus else task.tokens(length)

    def trained_positions(self, task: Task) -> int:
        """How many positions are seen in training, which is how many a learned table has."""
        if self.randomized:
            return self.largest(task.tokens(max(task.lengths)))
        return self.positions(task, max(task.lengths) if self.abacus else task.length)

    def training_positions(self, task: Task, tokens: Int[Tensor, "b t"], random: torch.Generator) -> Positions:
        """Positions of a training step: of every row, or one row for the whole batch; `random` if they are random."""
        if self.abacus:
            start = task.digits_of_a_number(max(task.lengths)) - task.digits_of_a_number(task.length)
            return abacus(task.is_digit(tokens), max_shift=start, generator=random)
        return self.drawn_positions(tokens.shape[1], task.tokens(max(task.lengths)), random)

    def numbering(self, task: Task) -> Numbering | None:
        """The positions of scored rows, by their tokens; None for 0, 1, 2, …"""
        return (lambda tokens: abacus(task.is_digit(tokens))) if self.abacus else None

    def drawn_positions(self, length: int, longest: int, random: torch.Generator) -> Positions:
        """One row of positions for a training step or a draw; `random` only for random positions."""
        if self.randomized:
            return Positions.randomized(1, length, self.largest(longest), generator=random)
        return Positions.arange(1, length)

    def phases(self, steps: int) -> list[tuple[int, int]]:
        """First step and end of every stretch of training that has a warmup of its own; positions are dropped between."""
        kept = round(KEPT * steps)
        return [(0, kept), (kept, steps)] if self.dropped and 0 < kept < steps else [(0, steps)]
