"""How many claims have each verdict: those of papers, and the statements of the project's founding notes, apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NOTES = "notes"  # a source that begins so is the founding notes, which are not published
OURS = ("standard", "full", "study", "study-code", "study-tasks")
"""Experiments that posenc's claims are held against, beside those that are made for a paper (claims-…)."""
VERDICTS = ("agree", "disagree", "undecided", "not tested")
Rows = Sequence[Mapping[str, Any]]


def from_notes(source: str) -> bool:
    return source.startswith(NOTES)


def of_papers(rows: Rows) -> dict[str, int]:
    """The number of published claims by verdict."""
    return _counts([row for row in rows if not from_notes(row["source"])])


def of_notes(rows: Rows) -> dict[str, int]:
    """The number of statements of the notes by verdict."""
    return _counts([row for row in rows if from_notes(row["source"])])


def tested(counts: Mapping[str, int]) -> int:
    """How many of them these results could test."""
    return sum(number for verdict, number in counts.items() if verdict != "not tested")


def holds_claims(name: str) -> bool:
    """Whether an experiment of this name is posenc's own: the report of a user's experiment has no claims."""
    return name in OURS or name.startswith("claims-")


def worth_telling(rows: Rows) -> list[Any]:
    """The rows of papers and those of the notes, of each only where at least one could be tested."""
    shown = {True: bool(tested(of_notes(rows))), False: bool(tested(of_papers(rows)))}
    return [row for row in rows if shown[from_notes(row["source"])]]


def _counts(rows: Rows) -> dict[str, int]:
    return {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS}
