"""Predict masked bytes of real text with bidirectional attention. Trained with masks all over the row, scored on the same
masked bytes in its middle, while the context grows on both sides.

    tokens    [ d  ▒  f  _  f  ▒  o ]      held-out window   …………………………│ targets │…………………………
    targets   [ .  e  .  .  .  o  . ]      context 1×                 ├───┼─────────┼───┤
                                           context 4×    ├────────────────┼─────────┼────────────────┤

A hidden byte is always the token ▒ (BERT leaves a fifth of them readable, which is for fine-tuning and not needed here).
Without positions every ▒ of a row gets the same prediction, little better than the byte frequencies (the baseline).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field, model_validator

from posenc.lab.say import say
from posenc.lab.tasks.task import IGNORE, Batch, Task
from posenc.lab.tasks.text import BYTES, HeldOut, byte_bits, held_out_windows, required, training_windows
from posenc.support.languages import Words

if TYPE_CHECKING:
    from torch import Tensor

    from posenc.lab.text.corpus import Corpus
    from posenc.support.shapes import Bool

MASK = BYTES


class MaskedLanguageModel(Task):
    """An item is a held-out document. `hidden` is a share of its bytes; those in the middle `targets` bytes are asked."""

    name: Literal["masked_language_model"] = "masked_language_model"
    length: int = Field(default=64, ge=1)
    lengths: tuple[int, ...] = (64, 72, 96, 128, 256)
    held_out: int = Field(default=128, ge=1)
    targets: int = Field(default=32, ge=1)
    hidden: float = Field(default=0.15, gt=0, lt=1)

    scoring: ClassVar[frozenset[str]] = Task.scoring | {"targets"}
    sees: ClassVar[Words] = say("ignores the context")
    title: ClassVar[Words] = say("Masked language model on bytes")
    unit: ClassVar[Words] = say("bytes of context")
    measure: ClassVar[Literal["bits", "exact"]] = "bits"
    causal: ClassVar[bool] = False
    reads_text: ClassVar[bool] = True
    shows_attention: ClassVar[bool] = True

    @model_validator(mode="after")
    def _targets_fit(self) -> MaskedLanguageModel:
        if self.targets > self.lengths[0]:
            raise ValueError(f"targets: expected at most the shortest length, {self.lengths[0]}, got {self.targets}")
        return self

    @property
    def vocabulary(self) -> int:
        return BYTES + 1

    def tokens(self, length: int) -> int:
        return length

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None) -> Batch:
        windows = training_windows(required(text), self.length)
        drawn = windows.take(torch.randint(windows.count, (rows,), generator=random))
        hidden = _places(rows, self.length, self.hidden, random)
        return Batch(drawn.masked_fill(hidden, MASK), drawn.masked_fill(~hidden, IGNORE))

    def scored(self, length: int, text: Corpus | None) -> Batch:
        (window, document), hidden, scored = self._held_out(text)
        start = (self.lengths[-1] - length) // 2
        tokens, targets = window.masked_fill(hidden, MASK), window.masked_fill(~scored, IGNORE)
        return Batch(tokens[:, start : start + length], targets[:, start : start + length], document)

    def chance(self, length: int) -> float:
        return 8.0

    def baseline(self, text: Corpus | None) -> float | None:
        """The baseline: bits by the frequency of each byte."""
        held_out, _, scored = self._held_out(text)
        return byte_bits(required(text).train)[held_out.windows[scored]].mean().item()

    def _held_out(self, text: Corpus | None) -> tuple[HeldOut, Bool[Tensor, "n w"], Bool[Tensor, "n w"]]:
        """Windows, their masked positions, and the scored ones among those: in the middle, equally many in each row."""
        longest = self.lengths[-1]
        held_out = held_out_windows(required(text), longest, self.held_out)
        random = torch.Generator().manual_seed(int(hashlib.sha256(b"hidden places").hexdigest()[:8], 16))
        left = (longest - self.targets) // 2
        widths = (left, self.targets, longest - self.targets - left)
        parts = [_places(len(held_out.windows), width, self.hidden, random) for width in widths]
        scored = torch.cat([parts[0] & False, parts[1], parts[2] & False], dim=1)
        return held_out, torch.cat(parts, dim=1), scored


def _places(rows: int, width: int, share: float, random: torch.Generator) -> Bool[Tensor, "rows width"]:
    """True at that share of the positions of every row, and at one at least."""
    order = torch.rand(rows, width, generator=random).argsort(dim=1)
    return order < max(1, round(share * width))
