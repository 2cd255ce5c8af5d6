"""Tasks whose rows are words by a grammar: a prompt, "=" and its answer. Rows of one length differ in their tokens.

    tokens    [ ^  walk  twice  =  W  W  $ ]      rows are filled with $ at the end, where no target is
    targets   [ .  .     .      W  W  $  . ]

Legend: b rows, t tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import torch

from posenc.lab.tasks.drawn import FEWEST, Drawn, is_held_out
from posenc.lab.tasks.task import IGNORE, Batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    T = TypeVar("T")

BEGIN, EQUALS, END = "^", "=", "$"
AT_ONCE = 256


class Example(NamedTuple):
    prompt: list[str]
    answer: list[str]


class Numbers:
    """Random choices from a generator of torch; the same on every machine and for every version of Python."""

    def __init__(self, random: torch.Generator) -> None:
        self.random, self.left = random, list[int]()

    def below(self, n: int) -> int:
        """One of 0 … n-1."""
        if not self.left:
            self.left = torch.randint(2**53, (AT_ONCE,), generator=self.random).tolist()
        return self.left.pop() % n

    def of(self, some: Sequence[T]) -> T:
        return some[self.below(len(some))]


class Worded(Drawn):
    """Subclasses give the words and an example of a length; `different` counts the examples."""

    words: ClassVar[tuple[str, ...]]  # of prompts and answers

    @abstractmethod
    def example(self, length: int, numbers: Numbers) -> Example:
        """A random one of that length."""

    @property
    def vocabulary(self) -> int:
        return len(self.words) + 3

    @cached_property
    def token(self) -> dict[str, int]:
        return {word: n for n, word in enumerate((*self.words, BEGIN, EQUALS, END))}

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        numbers = Numbers(random)
        return self._batch([self._row(self.example(length, numbers)) for _ in range(rows)])

    def _part(self, rows: int, length: int, random: torch.Generator, held_out: bool) -> Batch:
        if rows < 1:
            raise ValueError(f"rows: expected at least 1, got {rows}")
        numbers, divided = Numbers(random), self.different(length) >= FEWEST
        drawn = list[tuple[list[int], list[int]]]()
        while len(drawn) < rows:
            tokens, targets = self._row(self.example(length, numbers))
            if not divided or bool(is_held_out(torch.tensor([tokens]))) == held_out:
                drawn.append((tokens, targets))
        return self._batch(drawn)

    def _row(self, example: Example) -> tuple[list[int], list[int]]:
        prompt = [self.token[word] for word in (BEGIN, *example.prompt, EQUALS)]
        answer = [self.token[word] for word in (*example.answer, END)]
        return prompt + answer[:-1], [IGNORE] * (len(prompt) - 1) + answer

    def _batch(self, rows: list[tuple[list[int], list[int]]]) -> Batch:
        """Rows filled at the end to the longest one."""
        longest, end = max(len(tokens) for tokens, _ in rows), self.token[END]
        tokens = [row + [end] * (longest - len(row)) for row, _ in rows]
        return Batch(torch.tensor(tokens), torch.tensor([row + [IGNORE] * (longest - len(row)) for _, row in rows]))
