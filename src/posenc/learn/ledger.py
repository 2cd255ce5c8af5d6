"""The ledger of the founding notes: what they describe, in 21 rows S1 to S21, each with worked examples and claims.

    ROWS["S13"].says                   what is so, in both languages
    EXAMPLES["rope"].steps()           a worked example, matrix by matrix
    CLAIMS["denominators"].check()     the verdict on a claim and the value that decides it, computed now

Its words are in ledger.toml. `posenc walk`, `posenc claims` and the explorer show it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from posenc.learn import walk
from posenc.learn.claims import attention, length, table
from posenc.learn.claims.evidence import Evidence
from posenc.learn.say import say
from posenc.learn.walk import Step
from posenc.support.data_files import beside
from posenc.support.languages import Words

_COMPUTED = vars(attention) | vars(length) | vars(table)  # the function of a claim has its name


@dataclass(frozen=True)
class Claim:
    """A claim in our words, and the sentence that its numbers fill; the defaults of `compute` are the note's inputs."""

    id: str
    row: str
    words: Words
    notes: tuple[str, ...]
    value: Words
    compute: Callable[..., Evidence]

    def check(self, **inputs: Any) -> Evidence:
        """Computes it, by default with the note's inputs."""
        found = self.compute(**inputs)
        return found if found.value.en else replace(found, value=self.value.filled(**found.numbers, **found.shown))


@dataclass(frozen=True)
class Example:
    """A worked example; `steps()` computes it."""

    name: str
    title: Words
    notes: tuple[str, ...]
    steps: Callable[[], tuple[Step, ...]]


@dataclass(frozen=True)
class Row:
    """One row of what the notes describe.

    notes     the numbers of the notes that it is from
    says      the notes' example, and what of it is so
    command   what shows it in the terminal, beside `posenc walk NAME`
    view      what follows #/ in the explorer's address
    """

    name: str
    title: Words
    notes: tuple[str, ...]
    says: Words
    command: str
    view: str
    examples: tuple[Example, ...]
    claims: tuple[Claim, ...]


def _row(name: str, entry: Mapping[str, Any]) -> Row:
    examples = tuple(
        Example(example, about["title"], tuple(about["notes"].split()), getattr(walk, f"{example}_steps"))
        for example, about in entry.get("examples", {}).items()
    )
    claims = tuple(
        Claim(
            claim,
            name,
            about["says"],
            tuple(about["notes"].split()),
            about.get("value", Words("")),
            _COMPUTED[claim.replace("-", "_")],
        )
        for claim, about in entry.get("claims", {}).items()
    )
    notes = tuple(entry["notes"].split())
    return Row(name, entry["title"], notes, entry["says"], entry["command"], entry["view"], examples, claims)


ROWS = {name: _row(name, entry) for name, entry in beside(__file__, say).items()}
EXAMPLES = {example.name: example for row in ROWS.values() for example in row.examples}
CLAIMS = {claim.id: claim for row in ROWS.values() for claim in row.claims}
