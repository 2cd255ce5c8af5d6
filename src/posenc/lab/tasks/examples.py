"""A task from a file of JSON lines: a prompt and its answer each, as bytes. `posenc.lab.tasks.load("rows.jsonl", text)`.

    {"prompt": "2+3", "answer": "5"}
    {"prompt": "12+9", "answer": "2+9=11, so 21", "scored": "21"}

    tokens    [ ^  2  +  3  =  5  ]      the bytes of the prompt, "=", the bytes of the answer
    targets   [ .  .  .  .  5  $  ]      $ ends the answer

Trained on the whole answer. Scored on the whole answer and its end, or on `scored`, a piece that occurs in it once.

The length of an example is the number of bytes of its prompt. Training reads examples up to the trained length. The
scored length n has the examples longer than the scored length before it, up to n; longer ones than the last are not read.
One example in eight, by a hash of its prompt, is held out for scoring, at every length. Shorter rows are filled at the end,
where no target is.

Legend: b rows, t tokens.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import torch
from pydantic import model_validator

from posenc.lab.say import say
from posenc.lab.tasks.drawn import HELD_OUT
from posenc.lab.tasks.task import IGNORE, Batch, Task
from posenc.support import strict_json
from posenc.support.languages import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from posenc.lab.text.corpus import Corpus

BEGIN, EQUALS, END = 256, 257, 258  # tokens after the bytes
MOST, LONGEST = 100_000, 65_536  # examples; bytes of a prompt, and of an answer
NEEDED, OPTIONAL = ("prompt", "answer"), "scored"


class Example(NamedTuple):
    """Bytes of the prompt and of the answer; the part of the answer that is scored, `end` counts as its last byte + 1."""

    prompt: bytes
    answer: bytes
    first: int
    end: int

    @property
    def tokens(self) -> list[int]:
        return [BEGIN, *self.prompt, EQUALS, *self.answer]

    def targets(self, first: int, end: int) -> list[int]:
        """The part of the answer with its end from `first` up to `end`, after what is no target."""
        said = [*self.answer, END]
        return [IGNORE] * (len(self.prompt) + 1) + [one if first <= n < end else IGNORE for n, one in enumerate(said)]

    @property
    def is_held_out(self) -> bool:
        return hashlib.sha256(self.prompt).digest()[0] % HELD_OUT == 0


class Examples(Task):
    """`name` is that of the file and `source` its text. Raises ValueError that names the line which is no example."""

    length: int
    lengths: tuple[int, ...]

    unit: ClassVar[Words] = say("bytes of the prompt")
    measure: ClassVar[Literal["bits", "exact"]] = "exact"

    @model_validator(mode="after")
    def _every_length_has_examples(self) -> Examples:
        self._known()
        if not self._trained():
            raise ValueError(f"length: {self.name} has no example to train on with a prompt of up to {self.length} bytes")
        for length in self.lengths:
            if not self._scored(length):
                counts = Counter(len(one.prompt) for one in self._known())
                sizes = f"one in {HELD_OUT} is held out; prompts have {min(counts)} to {max(counts)} bytes"
                raise ValueError(f"lengths: {self.name} has no example to score at {length}; {sizes}")
        return self

    @property
    def vocabulary(self) -> int:
        return END + 1

    def tokens(self, length: int) -> int:
        return max(len(one.tokens) for one in self._known() if len(one.prompt) <= length)

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None = None) -> Batch:
        known = self._trained()
        drawn = [known[n] for n in torch.randint(len(known), (rows,), generator=random).tolist()]
        return _batch(drawn, [one.targets(0, len(one.answer) + 1) for one in drawn])

    def scored(self, length: int, text: Corpus | None = None) -> Batch:
        found = self._scored(length)[: self.held_out]
        batch = _batch(found, [one.targets(one.first, one.end) for one in found])
        return Batch(batch.tokens, batch.targets, item=torch.arange(len(found)))

    def chance(self, length: int) -> float:
        """Chance: the answer that is most frequent in training, whatever the prompt."""
        said = Counter(_asked(one) for one in self._trained()).most_common(1)[0][0]
        found = [_asked(one) == said for one in self._scored(length)[: self.held_out]]
        return sum(found) / len(found)

    def _known(self) -> tuple[Example, ...]:
        return examples(self.source or "", self.name)

    def _trained(self) -> tuple[Example, ...]:
        return _trained(self.source or "", self.name, self.length)

    def _scored(self, length: int) -> list[Example]:
        ends = (0, *self.lengths)
        after = next((begin for begin, end in pairwise(ends) if end == length), None)
        if after is None:
            raise ValueError(f"length: expected one of {self.lengths}, got {length}")
        return [one for one in self._known() if after < len(one.prompt) <= length and one.is_held_out]


def _batch(drawn: Sequence[Example], targets: Sequence[list[int]]) -> Batch:
    """Rows filled at the end to the longest one."""
    longest = max(len(one.tokens) for one in drawn)
    tokens = [one.tokens + [END] * (longest - len(one.tokens)) for one in drawn]
    return Batch(torch.tensor(tokens), torch.tensor([one + [IGNORE] * (longest - len(one)) for one in targets]))


def _asked(one: Example) -> bytes:
    return one.answer[one.first : one.end]


@lru_cache(maxsize=8)
def _trained(source: str, name: str, length: int) -> tuple[Example, ...]:
    return tuple(one for one in examples(source, name) if len(one.prompt) <= length and not one.is_held_out)


@lru_cache(maxsize=8)
def examples(source: str, name: str) -> tuple[Example, ...]:
    """Every line as an example; blank lines do not count. Raises ValueError that names the file and the line."""
    lines = [(n, line) for n, line in enumerate(source.split("\n"), start=1) if line.strip()]
    if not lines:
        raise ValueError(f"{name}: expected a line of JSON for each example, got none")
    if len(lines) > MOST:
        raise ValueError(f"{name}: expected at most {MOST:,} examples, got {len(lines):,}")
    found = list[Example]()
    for n, line in lines:
        try:
            found.append(_example(strict_json.loads(line.encode())))
        except ValueError as error:
            raise ValueError(f"{name}, line {n}: {error}") from None
    return tuple(found)


def _example(given: object) -> Example:
    if not isinstance(given, dict) or not set(NEEDED) <= given.keys() <= {*NEEDED, OPTIONAL}:
        raise ValueError('expected {"prompt": …, "answer": …} and maybe "scored", got ' + f"{str(given)[:60]}")
    for key, value in given.items():
        if not isinstance(value, str) or not 1 <= len(value.encode()) <= LONGEST:
            raise ValueError(f"{key}: expected text of 1 to {LONGEST:,} bytes, got {str(value)[:60]!r}")
    prompt, answer = (given[key].encode() for key in NEEDED)
    if OPTIONAL not in given:
        return Example(prompt, answer, 0, len(answer) + 1)
    scored = given[OPTIONAL].encode()
    if answer.count(scored) != 1:
        raise ValueError(f"scored: expected a piece that occurs once in the answer, got {given[OPTIONAL][:60]!r}")
    return Example(prompt, answer, first := answer.index(scored), first + len(scored))
