"""A claim of the notes, and what computing it finds.

    claim = LEDGER["denominators"];  claim.check().verdict  ->  Verdict.TRUE

`check` computes with posenc and decides from the numbers; other inputs than the note's can be given, and then it may
decide otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from posenc.bilingual import Words


class Verdict(StrEnum):
    """What the numbers say about a claim."""

    TRUE = "true"  # holds as printed
    FALSE = "false"  # does not hold
    PARTLY = "partly"  # one half of it holds, or one special case
    TRUNCATED = "truncated"  # the digits are right but cut off instead of rounded
    LIMIT = "limit"  # approached, never reached
    CONVENTION = "convention"  # right in one notation, wrong in the other
    CONTRADICTION = "contradiction"  # the notes say both, and cannot both be right
    OPINION = "opinion"  # no formula decides it

    @property
    def words(self) -> Words:
        return Words(self.value, _CHINESE[self.value])


_CHINESE = {
    "true": "成立",
    "false": "不成立",
    "partly": "部分成立",
    "truncated": "截断",
    "limit": "达不到",
    "convention": "记法不同",
    "contradiction": "自相矛盾",
    "opinion": "观点",
}


@dataclass(frozen=True)
class Evidence:
    """The verdict, the computed value in words, and the numbers behind it."""

    verdict: Verdict
    value: Words
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """What the notes say, in our words; `notes` are their numbers; `compute` has the note's inputs as defaults."""

    id: str
    words: Words
    notes: tuple[str, ...]
    compute: Callable[..., Evidence]

    def check(self, **inputs: Any) -> Evidence:
        """Compute it, with the note's inputs unless others are given."""
        return self.compute(**inputs)


def claim(id: str, notes: str, en: str, zh: str) -> Callable[[Callable[..., Evidence]], Claim]:
    """Makes a claim of the function that computes it; `notes` are numbers with spaces between."""
    return lambda compute: Claim(id, Words(en, zh), tuple(notes.split()), compute)


def verdict(holds: bool, otherwise: Verdict = Verdict.FALSE) -> Verdict:
    return Verdict.TRUE if holds else otherwise
