"""What the computation of a claim gives: the verdict, the value that decides it, and the numbers behind.

The inputs of a claim default to those of the note; other inputs may give another verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    """The verdict and the numbers behind it.

    shown   what else the value says, beside the numbers
    value   the value that decides, in words; of most claims the ledger has the sentence
    """

    verdict: Verdict
    numbers: Mapping[str, Any]
    shown: Mapping[str, Any] = field(default_factory=dict)
    value: Words = field(default_factory=lambda: Words(""))

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


def verdict(holds: bool, otherwise: Verdict = Verdict.FALSE) -> Verdict:
    return Verdict.TRUE if holds else otherwise
