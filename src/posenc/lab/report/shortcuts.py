"""What answers get that need no position, for tasks that say so: chance is the best of them."""

from __future__ import annotations

from collections.abc import Iterator

from posenc.lab.report.block import Block
from posenc.lab.report.cells import Findings
from posenc.lab.report.words import of, phrase, same
from posenc.lab.say import say
from posenc.lab.tasks.shortcuts import AT_MOST, WITHOUT_POSITION

NAMES = {
    "those that occur": say("drawn from those that occur"),
    "most frequent": say("most frequent"),
    "nearest": say("nearest to the question"),
    "first": say("first of the row"),
}


def blocks(findings: Findings) -> Iterator[Block]:
    """A row for each shortcut: rows right in order at every length, and the right tokens in any order at the longest."""
    for task in findings["tasks"]:
        if found := task["shortcuts"]:
            lengths = list(found)
            counted = max(shares[name][0] for shares in found.values() for name in WITHOUT_POSITION)
            text = phrase("shortcuts text", task=of(task["title"]), most=f"{100 * counted:.0f}")
            if counted > AT_MOST:
                text = phrase("shortcuts refused", text=text, limit=round(100 * AT_MOST))
            head = [phrase("shortcut"), *map(same, lengths), phrase("retrieved", far=lengths[-1])]
            rows = [
                [
                    NAMES[name],
                    *(same(f"{100 * found[length][name][0]:.0f}%") for length in lengths),
                    same(f"{100 * found[lengths[-1]][name][1]:.0f}%"),
                ]
                for name in NAMES
            ]
            yield Block(text, head, rows)
