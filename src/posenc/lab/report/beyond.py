"""What encodings gain from context beyond the trained length, beside predictors whose use of far context is known.

last window   the score with exactly the trained length before each target
gained        the score of the longest length against it, on the same targets
share         gained / what the optimum gains on the same rows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from posenc.lab.findings.titles import title
from posenc.lab.report.cells import Findings, Task, far, is_bits, learnt, remark, value
from posenc.lab.report.document import Block, tabled
from posenc.lab.report.words import change_name, of, phrase, same
from posenc.lab.say import say
from posenc.lab.tasks.task import CUT, FROZEN, MAJORITY, OPTIMUM
from posenc.support.languages import Words, joined

PREDICTORS = {
    OPTIMUM: say("optimum"),
    CUT: say("optimum, cut to the last window"),
    MAJORITY: say("most frequent"),
    FROZEN: say("optimum of the first tokens, then frozen"),
}


def blocks(findings: Findings) -> Iterator[Block]:
    """Tasks whose last window was scored."""
    for task in findings["tasks"]:
        if table := rows(task):
            longer = [length for length in task["lengths"] if length > task["length"]]
            head = [phrase("encoding"), phrase("last window"), *map(same, longer), phrase("gained"), phrase("share")]
            yield from tabled(_text(task), head, table)


def _text(task: Task) -> Words:
    text = phrase("beyond text", task=of(task["title"]), home=task["length"], far=far(task))
    controls = task["controls"]
    if controls and controls["refused"]:
        return joined([text, phrase("beyond refused", why=same(controls["refused"]))], " ", "")
    if controls and controls["chains"]:
        drawn = controls["chains"]
        text = joined([text, phrase("beyond chains", **drawn)], " ", "")
    return text


def rows(task: Task) -> list[list[Words]]:
    """The known predictors, then the encodings that learnt the task and RoPE's changes, those that gain most first."""
    measured = sorted(_measured(task), key=lambda row: -row[2][far(task)]["mean"])
    if not measured:
        return []
    controls = task["controls"] or {"predictors": {}}
    table = [_known(task, name, known) for name, known in controls["predictors"].items()]
    for name, cells, gained in measured:
        found, longer = gained[far(task)], [str(length) for length in task["lengths"] if length > task["length"]]
        each = [same("–" if (mean := cells[length]["mean"]) is None else value(task, mean)) for length in longer]
        near = cells["last window"]["mean"]
        table.append([name, same(value(task, near)), *each, _bits(task, found), _share(found)])
    return table


def _measured(task: Task) -> Iterator[tuple[Words, Mapping[str, Any], Mapping[str, Any]]]:
    """Name, cells with the last window, and gains, of what was scored at the longest length."""
    for arm in learnt(task):
        if far(task) in arm["gained"]:
            short = remark(arm)
            name = joined([title(arm["name"]), say(" ({why})", why=short) if short.en else Words("")], "", "")
            yield name, {**arm["cells"], "last window": arm["last_window"]}, arm["gained"]
    for changed in task["after"]:
        if changed["change"] and far(task) in changed["gained"] and any(arm["name"] == "rope" for arm in learnt(task)):
            name = say("RoPE + {change}", change=change_name(changed["change"]))
            yield name, {**changed["cells"], "last window": changed["last_window"]}, changed["gained"]


def _known(task: Task, name: str, known: Mapping[str, Any]) -> list[Words]:
    longer = [value(task, bits) for length, bits in known["lengths"].items() if int(length) > task["length"]]
    gained = same(_number(task, known["gained"]))
    if name == OPTIMUM:
        gained = _bits(task, task["controls"]["optimum"])
    return [
        PREDICTORS[name],
        *map(same, [value(task, known["last_window"]), *longer]),
        gained,
        same(_percent(known["share"])),
    ]


def _bits(task: Task, found: Mapping[str, Any]) -> Words:
    """+0.24 (0.23 – 0.25)."""
    low, high = (_number(task, end) for end in found["interval"])
    return same(f"{_number(task, found['mean'])} ({low} – {high})")


def _number(task: Task, gained: float) -> str:
    return f"{gained:+z.3f}" if is_bits(task) else f"{100 * gained:+z.1f}"


def _share(found: Mapping[str, Any]) -> Words:
    """85% (83 – 87); – where the optimum is not known or the measure is refused."""
    if found["share"] is None:
        return same("–")
    low, high = (f"{100 * end:z.0f}" for end in found["share_interval"])
    return same(f"{_percent(found['share'])} ({low} – {high})")


def _percent(share: float) -> str:
    return f"{100 * share:z.0f}%"
