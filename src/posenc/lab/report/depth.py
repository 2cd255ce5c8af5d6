"""Retrieval by depth: a column for each length and quarter of the window."""

from __future__ import annotations

from collections.abc import Iterator

from posenc.lab.findings.titles import title
from posenc.lab.report.cells import Findings, Task, value
from posenc.lab.report.document import Block, tabled
from posenc.lab.report.words import of, phrase, same
from posenc.support.languages import Words

QUARTERS = ("0–¼", "¼–½", "½–¾", "¾–1")


def blocks(findings: Findings) -> Iterator[Block]:
    for task in findings["tasks"]:
        if "by_depth" in task:
            quarters = [same(f"{length}: {quarter}") for length in task["by_depth"]["lengths"] for quarter in QUARTERS]
            yield from tabled(phrase("depth text", task=of(task["title"])), [phrase("encoding"), *quarters], rows(task))


def rows(task: Task) -> list[list[Words]]:
    """An encoding's title, then its share in each column."""
    depth = task["by_depth"]
    return [
        [title(name), *(same("–" if x is None else value(task, x)) for n in depth["lengths"] for x in by[str(n)])]
        for name, by in depth["arms"].items()
    ]
