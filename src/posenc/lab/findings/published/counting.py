"""How many claims have each verdict: those of papers, and the statements of the project's founding notes, apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NOTES = "notes"  # a source that begins so is the founding notes, which are not published
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


def _counts(rows: Rows) -> dict[str, int]:
    return {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS}
