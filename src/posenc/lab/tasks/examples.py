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
        tokens = [*self.answer, END]
        return [IGNORE] * (len(self.prompt) + 1) + [token if first <= n < end else IGNORE for n, token in enumerate(tokens)]

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
                counts = Counter(len(example.prompt) for example in self._known())
                sizes = f"one in {HELD_OUT} is held out; prompts have {min(counts)} to {max(counts)} bytes"
                raise ValueError(f"lengths: {self.name} has no example to score at {length}; {sizes}")
        return self

    @property
    def vocabulary(self) -> int:
        return END + 1

    def tokens(self, length: int) -> int:
        return max(len(example.tokens) for example in self._known() if len(example.prompt) <= length)

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None = None) -> Batch:
        known = self._trained()
        drawn = [known[n] for n in torch.randint(len(known), (rows,), generator=random).tolist()]
        return _batch(drawn, [example.targets(0, len(example.answer) + 1) for example in drawn])

    def scored(self, length: int, text: Corpus | None = None) -> Batch:
        examples = self._scored(length)[: self.held_out]
        batch = _batch(examples, [example.targets(example.first, example.end) for example in examples])
        return Batch(batch.tokens, batch.targets, item=torch.arange(len(examples)))

    def chance(self, length: int) -> float:
        """Chance: the answer that is most frequent in training, whatever the prompt."""
        usual = Counter(_asked(example) for example in self._trained()).most_common(1)[0][0]
        right = [_asked(example) == usual for example in self._scored(length)[: self.held_out]]
        return sum(right) / len(right)

    def _known(self) -> tuple[Example, ...]:
        return examples(self.source or "", self.name)

    def _trained(self) -> tuple[Example, ...]:
        return _trained(self.source or "", self.name, self.length)

    def _scored(self, length: int) -> list[Example]:
        ends = (0, *self.lengths)
        after = next((begin for begin, end in pairwise(ends) if end == length), None)
        if after is None:
            raise ValueError(f"length: expected one of {self.lengths}, got {length}")
        return [example for example in self._known() if after < len(example.prompt) <= length and example.is_held_out]


def _batch(drawn: Sequence[Example], targets: Sequence[list[int]]) -> Batch:
    """Rows filled at the end to the longest one."""
    longest = max(len(example.tokens) for example in drawn)
    tokens = [example.tokens + [END] * (longest - len(example.tokens)) for example in drawn]
    return Batch(torch.tensor(tokens), torch.tensor([row + [IGNORE] * (longest - len(row)) for row in targets]))


def _asked(example: Example) -> bytes:
    return example.answer[example.first : example.end]


@lru_cache(maxsize=8)
def _trained(source: str, name: str, length: int) -> tuple[Example, ...]:
    return tuple(example for example in examples(source, name) if len(example.prompt) <= length and not example.is_held_out)


@lru_cache(maxsize=8)
def examples(source: str, name: str) -> tuple[Example, ...]:
    """Every line as an example; blank lines do not count. Raises ValueError that names the file and the line."""
    lines = [(n, line) for n, line in enumerate(source.split("\n"), start=1) if line.strip()]
    if not lines:
        raise ValueError(f"{name}: expected a line of JSON for each example, got none")
    if len(lines) > MOST:
        raise ValueError(f"{name}: expected at most {MOST:,} examples, got {len(lines):,}")
    parsed = list[Example]()
    for n, line in lines:
        try:
            parsed.append(_example(strict_json.loads(line.encode())))
        except ValueError as error:
            raise ValueError(f"{name}, line {n}: {error}") from None
    return tuple(parsed)


def _example(fields: object) -> Example:
    if not isinstance(fields, dict) or not set(NEEDED) <= fields.keys() <= {*NEEDED, OPTIONAL}:
        raise ValueError('expected {"prompt": …, "answer": …} and maybe "scored", got ' + f"{str(fields)[:60]}")
    for key, value in fields.items():
        if not isinstance(value, str) or not 1 <= len(value.encode()) <= LONGEST:
            raise ValueError(f"{key}: expected text of 1 to {LONGEST:,} bytes, got {str(value)[:60]!r}")
    prompt, answer = (fields[key].encode() for key in NEEDED)
    if OPTIONAL not in fields:
        return Example(prompt, answer, 0, len(answer) + 1)
    scored = fields[OPTIONAL].encode()
    if answer.count(scored) != 1:
        raise ValueError(f"scored: expected a piece that occurs once in the answer, got {fields[OPTIONAL][:60]!r}")
    return Example(prompt, answer, first := answer.index(scored), first + len(scored))
