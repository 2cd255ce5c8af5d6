"""Predict the next byte of real text. Trained on windows of one length, scored on the same last bytes at every length.

    tokens    [ d  e  f   _  f  ]          held-out window   ……………………………………………………│ targets │
    targets   [ e  f  _   f  o  ]          context 1×                        ├──────┼─────────┤
                                           context 8×    ├──────────────────────────┼─────────┤

A longer context does not change the scored bytes; it only adds text before them. In the last window each of them is read
with exactly the trained length before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field, model_validator

from posenc.lab.say import say
from posenc.lab.tasks.task import IGNORE, Batch, Task, last_windows
from posenc.lab.tasks.text import BYTES, HeldOut, held_out_windows, pair_bits, required, training_windows
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.lab.text.corpus import Corpus


class LanguageModel(Task):
    """An item is a held-out document. `held_out` windows are of as many documents as there are; `targets` are the last half
    of the trained length, so that each has half of it or more before it.

    cut_up    the lengths that windows are cut into for non-overlapping evaluation
    """

    name: Literal["language_model"] = "language_model"
    length: int = Field(default=64, ge=1)
    lengths: tuple[int, ...] = (64, 72, 96, 128, 256, 512)
    held_out: int = Field(default=256, ge=1)
    targets: int = Field(default=32, ge=1)
    cut_up: Literal["every length", "longest"] = "every length"

    scoring: ClassVar[frozenset[str]] = Task.scoring | {"targets", "cut_up"}
    title: ClassVar[Words] = say("Language model on bytes")
    unit: ClassVar[Words] = say("bytes of context")
    measure: ClassVar[Literal["bits", "exact"]] = "bits"
    reads_text: ClassVar[bool] = True
    shows_attention: ClassVar[bool] = True

    @model_validator(mode="after")
    def _targets_fit(self) -> LanguageModel:
        if self.targets > self.lengths[0]:
            raise ValueError(f"targets: expected at most the shortest length, {self.lengths[0]}, got {self.targets}")
        return self

    @property
    def vocabulary(self) -> int:
        return BYTES

    def tokens(self, length: int) -> int:
        return length

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None) -> Batch:
        windows = training_windows(required(text), self.length + 1)
        drawn = windows.take(torch.randint(windows.count, (rows,), generator=random))
        return Batch(drawn[:, :-1], drawn[:, 1:])

    def scored(self, length: int, text: Corpus | None) -> Batch:
        windows, document = self._held_out(text)
        window = windows[:, -length - 1 :]
        targets = window[:, 1:].clone()
        targets[:, : -self.targets] = IGNORE
        return Batch(window[:, :-1], targets, document)

    def last_window(self, text: Corpus | None) -> Batch | None:
        windows, document = self._held_out(text)
        if self.lengths[-1] == self.length or windows.shape[1] < self.length + self.targets:
            return None
        return last_windows(windows, self.length, self.targets, document)

    def side_by_side(self, length: int, text: Corpus | None) -> Batch:
        """The windows cut into as many rows of `length` as fit, every byte a target: non-overlapping evaluation.

        At the longest length, bits by position follow from it.
        """
        windows, document = self._held_out(text)
        parts = self.lengths[-1] // length
        window = windows[:, -parts * length - 1 :]
        tokens, targets = window[:, :-1].reshape(-1, length), window[:, 1:].reshape(-1, length)
        return Batch(tokens, targets, document.repeat_interleave(parts))

    def chance(self, length: int) -> float:
        return 8.0

    def baseline(self, text: Corpus | None) -> float:
        """The baseline: bits by a table of byte pairs, which uses only the byte before."""
        last = self._held_out(text).windows[:, -self.targets - 1 :]
        return pair_bits(required(text).train)[last[:, :-1], last[:, 1:]].mean().item()

    def _held_out(self, text: Corpus | None) -> HeldOut:
        return held_out_windows(required(text), self.lengths[-1] + 1, self.held_out)
