"""What answers get that need no position, for tasks that say so, beside the models: chance is the best of them."""

from __future__ import annotations

from collections.abc import Iterator

from posenc.lab.findings.titles import changed_title, title
from posenc.lab.report.cells import Findings, Task
from posenc.lab.report.document import Block, tabled
from posenc.lab.report.words import of, phrase, same
from posenc.lab.say import say
from posenc.lab.tasks.shortcuts import AT_MOST, WITHOUT_POSITION
from posenc.support.languages import Words

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
                [NAMES[name], *(_share(found[length][name][0]) for length in lengths), _share(found[lengths[-1]][name][1])]
                for name in NAMES
            ]
            yield from tabled(text, head, [*rows, *_of_models(task, lengths)])


def _of_models(task: Task, lengths: list[str]) -> Iterator[list[Words]]:
    """The same columns of every model for which it was recorded whether its answers were found in any order."""
    arms = {arm["name"]: arm["cells"] for arm in task["arms"]}
    after = {changed["change"]: changed["cells"] for changed in task["after"]}
    for name, changes in task.get("retrieved", {}).items():
        for change, found in changes.items():
            cells = after[change] if change else arms[name]
            shown = changed_title(change) if change else title(name)
            in_order = [cells[length]["mean"] for length in lengths]
            yield [shown, *map(_share, in_order), _share(found.get(lengths[-1]))]


def _share(share: float | None) -> Words:
    return same("–" if share is None else f"{100 * share:.0f}%")
