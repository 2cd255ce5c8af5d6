"""One contender: an encoding by name, with plain or with randomised positions in training.

    rope              positions 0, 1, 2, …
    mine.py:Mine      a user's own class, from the text of its file
    rope+randomized   a sorted random subset of 0 … M-1, in training and when scored; M is `spread` times the longest length
    rope+dropped      RoPE for the first 7/8 of the steps, no positions from there on, with a warmup of its own

Random positions: Ruoss et al. 2023, arXiv 2305.16843, section 3, who draw them in training and when scoring.
Dropped: Gelberg et al. 2025 (DroPE), arXiv 2512.12167: the position encoding is removed and training goes on for a while.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from posenc import catalogue
from posenc.encoding import PositionalEncoding
from posenc.lab.experiment import user_encoding
from posenc.positions import Positions

RANDOMIZED, DROPPED = "+randomized", "+dropped"
KEPT = 7 / 8  # share of the steps before positions are dropped
TABLE_STD = "table_std"  # an option of the lab: standard deviation of the initial rows of a learned table


def trainable() -> tuple[str, ...]:
    """The names that a trial can train: they read one coordinate, as every task's tokens have, and keep the heads."""
    entries = (catalogue.BY_NAME[name] for name in catalogue.names())
    return tuple(entry.name for entry in entries if entry.axes == 1 and "wide_output" not in entry.needs)


@dataclass(frozen=True)
class Arm:
    """`Arm.parse("rope+randomized")`; `source` is the text of the file where the encoding is a user's own.

    options   settings that differ from those of the encoding's paper: (("base", 500.0),)
    spread    of random positions: how many there are over the longest scored length
    """

    encoding: str
    randomized: bool = False
    source: str | None = None
    options: tuple[tuple[str, float], ...] = ()
    dropped: bool = False
    spread: int = 1

    @classmethod
    def parse(
        cls, word: str, source: str | None = None, options: tuple[tuple[str, float], ...] = (), spread: int = 1
    ) -> Arm:
        """Raises ValueError for an unknown name or option, pointing to the right one."""
        randomized, dropped = word.endswith(RANDOMIZED), word.endswith(DROPPED)
        arm = cls(word.removesuffix(RANDOMIZED).removesuffix(DROPPED), randomized, source, options, dropped, spread)
        if dropped and arm.encoding != "rope":
            raise ValueError(f"{DROPPED}: expected rope{DROPPED}, got {word!r}; DroPE removes RoPE from a trained model")
        if source is None and arm.encoding in catalogue.position_names():
            raise ValueError(f"{arm.encoding} numbers tokens and is no encoding; one such way trains: NAME{RANDOMIZED}")
        if source is None and arm.encoding not in catalogue.names():
            raise ValueError(
                f"unknown encoding {arm.encoding!r}{catalogue.hint(arm.encoding)}; known: "
                f"{', '.join(trainable())}, each also with {RANDOMIZED}"
            )
        if source is None and arm.encoding not in trainable():
            axes = catalogue.BY_NAME[arm.encoding].axes
            if axes == 1:
                raise ValueError(f"{arm.encoding} needs a wider output projection than the lab's model has")
            raise ValueError(f"{arm.encoding} reads {axes} coordinates of a token; the tokens of every task have one")
        return arm

    def __str__(self) -> str:
        return self.encoding + RANDOMIZED * self.randomized + DROPPED * self.dropped

    def create(self, *, d_model: int, n_heads: int, n_layers: int, positions: int, causal: bool = True) -> nn.ModuleList:
        """One module, or one per layer as in its paper. Learned tables have the positions 0 … positions-1."""

        def one() -> PositionalEncoding:
            sizes = {"d_model": d_model, "n_heads": n_heads, "n_layers": n_layers, "max_positions": positions}
            if self.source is not None:
                return user_encoding.create(self.encoding, self.source, sizes)
            options: dict[str, Any] = {name: value for name, value in self.options if name != TABLE_STD}
            return catalogue.create(self.encoding, **sizes, **catalogue.directed(self.encoding, causal), **options)

        per_layer = self.source is None and catalogue.BY_NAME[self.encoding].per_layer
        return nn.ModuleList(one() for _ in range(n_layers if per_layer else 1))

    def table_std(self, default: float) -> float:
        """The standard deviation of the initial rows of a learned table."""
        return dict(self.options).get(TABLE_STD, default)

    def largest(self, longest: int) -> int:
        """How many positions there are to draw from; `longest` is the longest scored length in tokens."""
        return self.spread * longest if self.randomized else longest

    def drawn_positions(self, length: int, longest: int, random: torch.Generator) -> Positions:
        """Positions of a training step or of a draw, one row for the whole batch; `random` only for random positions."""
        if self.randomized:
            return Positions.randomized(1, length, self.largest(longest), generator=random)
        return Positions.arange(1, length)

    def phases(self, steps: int) -> list[tuple[int, int]]:
        """First step and end of every stretch of training that has a warmup of its own; positions are dropped between."""
        kept = round(KEPT * steps)
        return [(0, kept), (kept, steps)] if self.dropped and 0 < kept < steps else [(0, steps)]
