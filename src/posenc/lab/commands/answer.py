"""The answer on one screen of 24 lines and 80 columns: a row for each encoding, then what it can and cannot tell.

RoPE + YaRN              █████   100.0  99.8  99.4–100.0     stays
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from posenc.lab.commands.table import reasons
from posenc.lab.findings.titles import main_task
from posenc.lab.findings.wording import seeds_to_rank
from posenc.lab.report.cells import value
from posenc.lab.report.screen import COLOURS
from posenc.lab.say import say
from posenc.support.languages import Language, Words
from posenc.terminal.sparkline import sparkline
from posenc.terminal.wrapped import Wrapped

if TYPE_CHECKING:
    from rich.console import Console

MOST = 12  # rows of one screen
TITLE = say("{task}: trained at {home} {of}, {seeds}; {unit}")
UNITS = {"exact": say("% entirely right"), "bits": say("bits, lower is better")}
INTERVAL, MORE = say("95 % interval"), say("and {more} more, in the report")
ANY_ORDER = say("any order")  # the share at the longest length of answers that were found, in any order


def show(findings: Mapping[str, Any], console: Console, language: Language) -> None:
    task, verdict = main_task(findings), findings["answer"]
    rows = verdict["rows"]
    values = [mean for row in rows for mean in row["means"] if mean is not None]
    low, high = (0.0, 1.0) if task["measure"] == "exact" else (min(values, default=0.0), max(values, default=1.0))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("", f"{task['lengths'][0]}–{task['lengths'][-1]}", f"{task['length']}", f"{task['lengths'][-1]}"):
        table.add_column(heading, justify="right" if heading.isdigit() else "left", no_wrap=True)
    table.add_column(INTERVAL.in_language(language), no_wrap=True)
    if found := any(row["retrieved"] is not None for row in rows):
        table.add_column(ANY_ORDER.in_language(language), justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    home = task["lengths"].index(task["length"])

    def written(mean: float | None) -> str:
        return "" if mean is None else value(task, mean)

    for row in rows[:MOST]:
        word = Text(row["word"][language], COLOURS.get(row["word"]["en"], "dim"))
        near, far = (written(row["means"][n]) for n in (home, -1))
        between = "–".join(written(end) for end in row["interval"] or ())
        in_any_order = [written(row["retrieved"])] if found else []
        table.add_row(row["name"][language], sparkline(row["means"], low, high), near, far, between, *in_any_order, word)
    console.print(Wrapped(caption(findings, task).in_language(language), "bold"))
    console.print(Group(table, *(Text(line, "dim") for line in _below(task, rows, language))))
    console.print()
    for sentence in ("can", "cannot", "next"):
        console.print(Wrapped(verdict[sentence][language]))


def _below(task: Mapping[str, Any], rows: Sequence[Any], language: Language) -> list[str]:
    more = [MORE.filled(more=len(rows) - MOST).in_language(language)] if len(rows) > MOST else []
    return [*more, *reasons(task)]


def caption(findings: Mapping[str, Any], task: Mapping[str, Any]) -> Words:
    """What was measured: the task, the unit of the scores, the lengths and the seeds."""
    return TITLE.filled(
        task=Words(**task["title"]),
        unit=UNITS[task["measure"]],
        home=task["length"],
        of=Words(**task["unit"]),
        seeds=seeds_to_rank(findings),
    )
