"""A claim of the notes and the evidence that its computation gives.

    claim = LEDGER["denominators"];  claim.check().verdict  ->  Verdict.TRUE

`check` computes with posenc and decides from the numbers. Its inputs default to those of the note; other inputs may give
another verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from posenc.learn.say import say
from posenc.support.languages import Words


class Verdict(StrEnum):
    """The verdict on a claim."""

    TRUE = "true"  # holds as printed
    FALSE = "false"  # does not hold
    PARTLY = "partly"  # holds in part, or in a special case
    TRUNCATED = "truncated"  # the digits are right but cut off instead of rounded
    LIMIT = "limit"  # approached, never reached
    CONVENTION = "convention"  # right in one notation, wrong in the other
    CONTRADICTION = "contradiction"  # the notes contradict themselves
    OPINION = "opinion"  # no computation can decide it

    @property
    def words(self) -> Words:
        return _WORDS[self.value]


_WORDS = {
    "true": say("true"),
    "false": say("false"),
    "partly": say("partly"),
    "truncated": say("truncated"),
    "limit": say("limit"),
    "convention": say("convention"),
    "contradiction": say("contradiction"),
    "opinion": say("opinion"),
}


@dataclass(frozen=True)
class Evidence:
    """The verdict, the computed value in words, and the numbers behind it."""

    verdict: Verdict
    value: Words
    numbers: Mapping[str, Any]

    def flat(self) -> list[float]:
        """Every number of `numbers` in order, without their names; texts are left out."""
        return list(_flat(self.numbers))


def _flat(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        value = list(value.values())
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        for element in value:
            yield from _flat(element)
    elif isinstance(value, int | float):
        yield float(value)


@dataclass(frozen=True)
class Claim:
    """A statement of the notes in our words. `row` is what of `posenc walk` it is about, `notes` are the notes' numbers;
    the defaults of `compute` are the note's inputs."""

    id: str
    row: str
    words: Words
    notes: tuple[str, ...]
    compute: Callable[..., Evidence]

    def check(self, **inputs: Any) -> Evidence:
        """Computes it, by default with the note's inputs."""
        return self.compute(**inputs)


def claim(id: str, row: str, notes: str, words: Words) -> Callable[[Callable[..., Evidence]], Claim]:
    """Decorates the function that computes a claim; `notes` are the notes' numbers, separated by spaces."""
    return lambda compute: Claim(id, row, words, tuple(notes.split()), compute)


def verdict(holds: bool, otherwise: Verdict = Verdict.FALSE) -> Verdict:
    return Verdict.TRUE if holds else otherwise
