"""Retrieval by depth as rows of text, for the page and for Markdown."""

from __future__ import annotations

from posenc.lab.findings.titles import title
from posenc.lab.report.cells import Task, value
from posenc.lab.report.words import same
from posenc.support.languages import Words

QUARTERS = ("0–¼", "¼–½", "½–¾", "¾–1")


def has_depth(task: Task) -> bool:
    return "by_depth" in task


def head(task: Task) -> list[str]:
    """A column for each length and quarter."""
    return [f"{length}: {quarter}" for length in task["by_depth"]["lengths"] for quarter in QUARTERS]


def rows(task: Task) -> list[list[Words]]:
    """An encoding's title, then its share in each column."""
    depth = task["by_depth"]
    return [
        [title(name), *(same("–" if x is None else value(task, x)) for n in depth["lengths"] for x in by[str(n)])]
        for name, by in depth["arms"].items()
    ]
