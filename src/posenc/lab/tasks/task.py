"""The contract of a task: draw rows to train on, give the rows that are scored, say what knowing nothing is worth.

    tokens    [ a  b  c  =  a  b  c ]      what the model reads
    targets   [ .  .  .  a  b  c  . ]      what it has to say there; "." is IGNORE: nothing is asked

Legend: b rows, t tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor

from posenc.bilingual import Words

if TYPE_CHECKING:
    from jaxtyping import Int

    from posenc.lab.experiment.corpus import Corpus

IGNORE = -100


@dataclass(frozen=True)
class Link:
    """A pair of places in a row whose attention is worth measuring: does `query` look at `key`?"""

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
    """Fields are the task's settings and decide, with seed and text, every row that it draws.

    length    the longest one trained on, in the task's own unit
    lengths   those scored, ascending; `length` is among them and nothing below it is extrapolation
    held_out  rows scored at each length
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    length: int = Field(ge=1)
    lengths: tuple[int, ...]
    held_out: int = Field(default=256, ge=1)

    title: ClassVar[Words]
    unit: ClassVar[Words]  # what a length counts: "bytes of context"
    measure: ClassVar[Literal["bits", "exact"]]  # bits a target, less is better; or the share of rows all right
    causal: ClassVar[bool] = True
    reads_text: ClassVar[bool] = False
    shows_attention: ClassVar[bool] = False  # attention by distance is recorded while it trains

    @model_validator(mode="after")
    def _lengths_are_in_order(self) -> Task:
        if list(self.lengths) != sorted(set(self.lengths)) or self.length not in self.lengths:
            raise ValueError(f"lengths: expected ascending ones with length={self.length} among them, got {self.lengths}")
        return self

    @property
    @abstractmethod
    def vocabulary(self) -> int:
        """Tokens are 0 … vocabulary-1."""

    @abstractmethod
    def tokens(self, length: int) -> int:
        """How many tokens a row of that length has, at most: so far do positions reach."""

    @abstractmethod
    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None) -> Batch:
        """Rows of one length, up to the trained one; every draw is from `random`."""

    @abstractmethod
    def scored(self, length: int, text: Corpus | None) -> Batch:
        """The held-out rows at a length: always the same, none of them ever trained on where that can be."""

    @abstractmethod
    def chance(self, length: int) -> float:
        """What knowing nothing scores, in `measure`."""

    def baseline(self, text: Corpus | None) -> float | None:
        """What a model without context would score at the trained length, where that says more than chance."""
        return None
