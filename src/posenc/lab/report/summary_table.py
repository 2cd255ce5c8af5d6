"""The table of measured values, one row for each encoding, in place of the star ratings of the founding notes.

quality at the trained length · length factor · area · cost · parameters and tables · tasks scored by exact match
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from posenc.lab.findings.titles import main_task
from posenc.lab.findings.wording import seeds_to_rank
from posenc.lab.report.cells import (
    Arm,
    Findings,
    Score,
    Task,
    against,
    arms_of,
    cell,
    decimals,
    factor,
    find,
    home,
    in_order,
    times,
    top,
    unit,
    value,
)
from posenc.lab.report.document import Cell, cells
from posenc.lab.report.words import of, phrase, same
from posenc.support.languages import Words, clauses, joined

TIMES = ("training", "prefill", "decode")


class Stars(NamedTuple):
    head: list[Cell]
    rows: list[tuple[str, list[Cell]]]


NOTHING = Cell(Words("–"))


def stars(findings: Findings) -> Stars:
    main = main_task(findings)
    others = [task for task in findings["tasks"] if task is not main]
    head = [
        Cell(phrase("quality"), unit(main)),
        Cell(phrase("factor")),
        Cell(phrase("area"), unit(main)),
        Cell(phrase("rank")),
    ]
    if findings["cost"]:
        head += cells(map(phrase, (*TIMES, "parameters", "memory")))
    head += [Cell(of(task["title"]), unit(task)) for task in others]
    names = [arm["name"] for arm in in_order(main)]
    names += [name for name in arms_of(findings) if name not in names]
    return Stars(head, [(name, _row(findings, main, others, name)) for name in names])


def introduction(findings: Findings) -> Words:
    """The meaning of the columns."""
    main = main_task(findings)
    parts = [phrase("stars text", task=of(main["title"]), home=home(main), against=against(main))]
    if main["rank_seeds"]:
        parts.append(phrase("stars rank", seeds=", ".join(map(str, main["rank_seeds"])), of=seeds_to_rank(findings)))
    return joined(parts, " ", "")


def _row(findings: Findings, main: Task, others: list[Task], name: str) -> list[Cell]:
    row = _main(main, find(main, name))
    if findings["cost"]:
        row += _cost(findings["cost"]["rows"].get(name))
    return row + [_other(task, find(task, name)) for task in others]


def _main(task: Task, arm: Arm | None) -> list[Cell]:
    if arm is None:
        return [Cell(phrase("not asked"), kind="none")] * 4
    at_home = cell(task, arm, task["length"])
    quality = _quality(task, arm, at_home)
    if at_home.kind != "number":
        silent = at_home.words if at_home.number is None else phrase("not learnt short")
        return [quality, *[Cell(silent, kind="none")] * 3]
    became = phrase(f"behaviour {arm['behaviour']}") if arm["behaviour"] else Words("")
    area = NOTHING if arm["area"] is None else Cell(same(value(task, arm["area"])))
    rank = NOTHING if arm["rank"] is None else Cell(same(f"{arm['rank']:.1f}"))
    return [quality, Cell(same(factor(arm["factor"], top(task))), became), area, rank]


def _quality(task: Task, arm: Arm, at_home: Score) -> Cell:
    if at_home.number is None:
        return Cell(at_home.words, kind="none")
    interval = arm["cells"][home(task)].get("interval")
    numbers = interval if interval else at_home.seeds
    digits = decimals(task, task["length"])
    small = ("–" if interval else " ").join(value(task, number, digits) for number in numbers)
    told = [same(small), *[phrase("improving short")] * (arm["converged"] is False)]
    return Cell(at_home.words, clauses(*told), kind="" if at_home.kind == "number" else "unlearnt")


def _cost(cost: Mapping[str, Any] | None) -> list[Cell]:
    if cost is None:
        return [NOTHING] * 5
    row = []
    for kind in TIMES:
        time = cost.get(kind)
        row.append(
            Cell(same(times(time["median"])), same(f"{times(time['low'])}–{times(time['high'])}")) if time else NOTHING
        )
    for kind in ("parameters", "table_bytes_per_token"):
        row.append(NOTHING if cost.get(kind) is None else Cell(same(f"{cost[kind]:,.0f}")))
    return row


def _other(task: Task, arm: Arm | None) -> Cell:
    """Quality at the trained length, and the length factor if longer lengths were scored."""
    if arm is None:
        return Cell(phrase("not asked"), kind="none")
    at_home = cell(task, arm, task["length"])
    entry = _quality(task, arm, at_home)
    if at_home.number is not None and at_home.kind != "number":
        return entry._replace(small=phrase("not learnt short"))
    if at_home.number is None or arm["factor"] is None or top(task) <= 1:
        return entry
    return entry._replace(small=same(factor(arm["factor"], top(task))))
