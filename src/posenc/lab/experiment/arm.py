"""One contender: an encoding by name, with plain or with randomised positions in training.

    rope              positions 0, 1, 2, …
    mine.py:Mine      a user's own class, from the text of its file
    rope+randomized   a sorted random subset of 0 … M-1 at every training step, plain positions when scored

Ruoss et al. 2023, arXiv 2305.16843, section 3: so that the model has seen every position that it is scored on.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from posenc import catalogue
from posenc.encoding import PositionalEncoding
from posenc.lab.experiment import user_encoding
from posenc.positions import Positions

RANDOMIZED = "+randomized"


def trainable() -> tuple[str, ...]:
    """The names that a trial can train: they read one coordinate, as every task's tokens have, and keep the heads."""
    entries = (catalogue.BY_NAME[name] for name in catalogue.names())
    return tuple(entry.name for entry in entries if entry.axes == 1 and "wide_output" not in entry.needs)


@dataclass(frozen=True)
class Arm:
    """`Arm.parse("rope+randomized")`; `source` is the text of the file where the encoding is a user's own."""

    encoding: str
    randomized: bool = False
    source: str | None = None

    @classmethod
    def parse(cls, word: str, source: str | None = None) -> Arm:
        """Raises ValueError for an unknown name, pointing to the right one."""
        arm = cls(word.removesuffix(RANDOMIZED), word.endswith(RANDOMIZED), source)
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
        return self.encoding + RANDOMIZED * self.randomized

    def create(self, *, d_model: int, n_heads: int, n_layers: int, positions: int, causal: bool = True) -> nn.ModuleList:
        """One module, or one per layer as in its paper. Learned tables have the positions 0 … positions-1."""

        def one() -> PositionalEncoding:
            sizes = {"d_model": d_model, "n_heads": n_heads, "n_layers": n_layers, "max_positions": positions}
            if self.source is not None:
                return user_encoding.create(self.encoding, self.source, sizes)
            return catalogue.create(self.encoding, **sizes, **catalogue.directed(self.encoding, causal))

        per_layer = self.source is None and catalogue.BY_NAME[self.encoding].per_layer
        return nn.ModuleList(one() for _ in range(n_layers if per_layer else 1))

    def training_positions(self, length: int, most: int, random: torch.Generator) -> Positions:
        """Positions of one training step, one row for the whole batch; `random` is used only for random positions."""
        if self.randomized:
            return Positions.randomized(1, length, most, generator=random)
        return Positions.arange(1, length)
