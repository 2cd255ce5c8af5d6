"""The interface of a task: rows to train on, rows to score, and the score of guessing.

    tokens    [ a  b  c  =  a  b  c ]      what the model reads
    targets   [ .  .  .  a  b  c  . ]      what it has to predict; "." is IGNORE: no target

Legend: b rows, t tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from torch import Tensor

from posenc.lab.say import say
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.lab.tasks.shortcuts import Share
    from posenc.lab.text.corpus import Corpus
    from posenc.support.shapes import Bool, Float, Int

IGNORE = -100
OPTIMUM, CUT, MAJORITY, FROZEN = "optimum", "optimum cut to the trained length", "majority", "frozen at the trained length"


@dataclass(frozen=True)
class Link:
    """A pair of positions in a row whose attention probability is recorded, from `query` to `key`."""

    name: str  # such as "无聊→电影"
    row: int
    query: int
    key: int


@dataclass(frozen=True)
class Batch:
    """Rows of one length. `item` numbers the held-out unit (document or example) of each row; arms are paired by it."""

    tokens: Int[Tensor, "b t"]
    targets: Int[Tensor, "b t"]
    item: Int[Tensor, "b"] | None = None
    links: tuple[Link, ...] = field(default=())


class Task(BaseModel, ABC):
    """The base class. Its fields are the settings of the task; with the seed and the text they determine every row.

    length    the longest length in training, in the unit of the task
    lengths   the scored lengths, ascending; `length` is among them, and larger ones are extrapolation
    held_out  rows scored at each length
    source    the text of the file that the task comes from; None for the tasks of posenc
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    length: int = Field(ge=1)
    lengths: tuple[int, ...]
    held_out: int = Field(default=256, ge=1)
    source: str | None = Field(default=None, repr=False)

    scoring: ClassVar[frozenset[str]] = frozenset({"lengths", "held_out"})  # settings that do not affect training
    title: ClassVar[Words]
    unit: ClassVar[Words] = say("length")  # the unit of lengths: "bytes of context"
    measure: ClassVar[Literal["bits", "exact"]]  # bits per target, lower is better; or the share of rows entirely right
    causal: ClassVar[bool] = True
    reads_text: ClassVar[bool] = False
    shows_attention: ClassVar[bool] = False  # whether attention by distance is recorded during training
    retrieves: ClassVar[bool] = False  # whether a row's answer is also scored in any order, apart from the order
    follows_far: ClassVar[bool] = False  # whether the loss at the longest length is recorded in the last fifth of training
    sees: ClassVar[Words] = say("sees only the byte before")  # what the model of the baseline does

    @model_validator(mode="after")
    def _lengths_are_in_order(self) -> Task:
        if list(self.lengths) != sorted(set(self.lengths)) or self.length not in self.lengths:
            raise ValueError(f"lengths: expected ascending ones with length={self.length} among them, got {self.lengths}")
        return self

    @model_serializer(mode="wrap")
    def _written(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unset = self.unwritten()
        return {name: value for name, value in serialize(self).items() if name not in unset}

    def unwritten(self) -> set[str]:
        """Settings that say nothing and are not written, so that the keys of older results stay."""
        return {"source"} if self.source is None else set()

    @property
    @abstractmethod
    def vocabulary(self) -> int:
        """Tokens are 0 … vocabulary-1."""

    @abstractmethod
    def tokens(self, length: int) -> int:
        """The largest number of tokens in a row of that length, and so the number of positions needed."""

    @abstractmethod
    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None) -> Batch:
        """Rows of one length up to the trained one; all random numbers come from `random`."""

    @abstractmethod
    def scored(self, length: int, text: Corpus | None) -> Batch:
        """The held-out rows at a length: always the same, and never trained on where enough different rows exist."""

    def last_window(self, text: Corpus | None) -> Batch | None:
        """The targets of `scored` at longer lengths, each with the trained length before it; None for a task without.

        What a model gains beyond the trained length is its score on these rows against its score on the longer ones.
        """
        return None

    def controls(self, length: int | None) -> dict[str, Float[Tensor, "b"]] | None:
        """Scores of predictors whose use of far context is known, by item; None where they are not known.

        `length` is that of the context; None: the last window. The predictors are OPTIMUM, CUT, MAJORITY and FROZEN: the
        best prediction, the same from the trained length before each target, the most frequent, and the best prediction
        from the first tokens, as many as the trained length.
        """
        return None

    def gain(self) -> tuple[float, float, int] | None:
        """What the optimum gains at the longest length over the last window, its standard error, and the rows drawn for it;
        None for a task whose rows cannot be drawn until it is known."""
        return None

    def shortcuts(self, length: int) -> dict[str, Share] | None:
        """What answers that need no position get on the held-out rows, by name; None for a task without."""
        return None

    @abstractmethod
    def chance(self, length: int) -> float:
        """The score of guessing, in `measure`."""

    def digits_of_a_number(self, length: int) -> int:
        """How many digits the longest number in a row of that length has; 0 for a task without numbers."""
        return 0

    def is_digit(self, tokens: Int[Tensor, "b t"]) -> Bool[Tensor, "b t"]:
        """True where a token is a digit of a number."""
        return torch.zeros_like(tokens, dtype=torch.bool)

    def all_targets(self, batch: Batch) -> Int[Tensor, "b t"]:
        """The targets of the loss by position: those that are scored, where a task has no others."""
        return batch.targets

    def floor(self, length: int) -> float | None:
        """The score of the best prediction on the held-out rows; None where it is not known."""
        return None

    def baseline(self, text: Corpus | None) -> float | None:
        """The score at the trained length of a model that ignores the context; None if chance says as much."""
        return None


def last_windows(rows: Int[Tensor, "b t"], length: int, targets: int, item: Int[Tensor, "b"]) -> Batch:
    """A row of exactly `length` tokens for each of the last `targets` tokens of `rows`, which is its only target."""
    windows = rows.unfold(1, length + 1, 1)[:, -targets:].flatten(0, 1)
    only = torch.full_like(windows[:, 1:], IGNORE)
    only[:, -1] = windows[:, -1]
    return Batch(windows[:, :-1].contiguous(), only, item.repeat_interleave(targets))
