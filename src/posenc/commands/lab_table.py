"""The findings as tables in the terminal, one a task, and the sentences below them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from posenc.bilingual import Language, Words
from posenc.wrapped import Wrapped

if TYPE_CHECKING:
    from rich.console import Console

COLOURS = {"flat": "green", "fades": "yellow", "breaks": "red"}
ENCODING, SCORED = Words("encoding", "编码"), Words("holds to", "保持到")
NOT_LEARNT, MISSING, CANNOT, FAILED = (
    Words("not learnt", "未学会"),
    Words("missing", "缺失"),
    Words("cannot", "不能"),
    Words("failed", "失败"),
)
UNIT = {
    "bits": Words("bits a target, less is better", "每个目标的比特数，越低越好"),
    "exact": Words("share of rows all right", "整行全对的比例"),
}
CHANGED = Words("RoPE, frequencies changed after training", "RoPE，训练后改变频率")
UNCHANGED = Words("as trained", "不改")
EXPLORATORY = Words("fewer than five seeds: exploratory", "种子少于五个：仅供探索")


def show(found: Mapping[str, Any], console: Console, language: Language) -> None:
    for task in found["tasks"]:
        console.print(Text(task["title"][language], style="bold"))
        console.print(Wrapped(caption(task, language), "dim"))
        console.print(_of_task(task, language, console.width))
        if task["after"]:
            console.print(_after(task, language, console.width))
        console.print()
    if found["exploratory"]:
        console.print(Text(EXPLORATORY.read(language), style="dim"))
    for sentence in found["summary"]:
        console.print(Wrapped("· " + sentence[language]))
    for need in found["needs"]:
        said = {part: words[language] for part, words in need.items()}
        console.print(Wrapped(f"→ {said['need']}: {said['pick']} ({said['why']})"))


def caption(task: Mapping[str, Any], language: Language) -> str:
    """What the numbers are, what was trained, what knowing nothing scores."""
    parts = [UNIT[task["measure"]].read(language)]
    trained, unit = task["length"], task["unit"][language]
    parts.append({"en": f"trained at {trained} {unit}", "zh": f"训练长度 {trained}（{unit}）"}[language])
    if (chance := task["chance"].get(str(trained))) is not None:
        parts.append({"en": f"chance {chance:.3g}", "zh": f"随机水平 {chance:.3g}"}[language])
    return "; ".join(parts) if language == "en" else "；".join(parts)


def _of_task(task: Mapping[str, Any], language: Language, room: int) -> Table:
    table = _table(ENCODING.read(language), [*map(str, task["lengths"]), SCORED.read(language)], room)
    for arm in task["arms"]:
        cells = [_of_arm(arm, length, task["length"], language) for length in task["lengths"]]
        table.add_row(arm["name"], *cells, factor(arm["factor"]))
    return table


def _of_arm(arm: Mapping[str, Any], length: int, trained: int, language: Language) -> Text:
    cell = arm["cells"].get(str(length), {})
    if length == trained and cell.get("mean") is not None and not arm["learnt"]:
        return Text(f"{cell['mean']:.2f}", style="dim")  # how far it was from having learnt it
    return _cell(arm["state"], cell, arm["behaviour"], language)


def _after(task: Mapping[str, Any], language: Language, room: int) -> Table:
    table = _table(CHANGED.read(language), [str(length) for length in task["lengths"]], room)
    for one in task["after"]:
        cells = [_cell(None, one["cells"].get(str(length), {}), None, language) for length in task["lengths"]]
        table.add_row(one["change"] or UNCHANGED.read(language), *cells)
    return table


def _table(first: str, others: list[str], room: int) -> Table:
    """In a narrow terminal the words of a cell stand below one another; numbers always stand in a line."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0), header_style="bold")
    table.add_column(first, min_width=15, overflow="fold")
    widths = [max(10, len(heading)) for heading in others]
    if 15 + sum(widths) + len(widths) > room:
        widths = [max(6, len(heading)) for heading in others]
    for heading, width in zip(others, widths, strict=True):
        table.add_column(heading, justify="right", width=width)
    return table


def _cell(state: str | None, cell: Mapping[str, Any], behaviour: str | None, language: Language) -> Text:
    """The mean over seeds, or why there is none."""
    if word := word_for(state or cell.get("state"), language):
        return Text(word, style="dim" if word == NOT_LEARNT.read(language) else "red")
    if cell.get("mean") is None:
        return Text("")
    return Text(f"{cell['mean']:.2f}", style=COLOURS.get(behaviour or "", ""))


def word_for(state: str | None, language: Language) -> str | None:
    """One word for a state; the report says the rest."""
    for start, words in (("not learnt", NOT_LEARNT), ("cannot", CANNOT), ("failed", FAILED), ("missing", MISSING)):
        if (state or "").startswith(start):
            return words.read(language)
    return state


def factor(found: Mapping[str, Any] | None) -> str:
    """2× or, where it held to the longest length that was scored, >8×."""
    return "–" if found is None else f"{'>' * found['censored']}{found['value']:.3g}×"


def missing(found: Mapping[str, Any], language: Language) -> Iterator[str]:
    """A line each for the trials that are not there."""
    for one in found["missing"]:
        yield f"{one['task']} {one['arm']} seed {one['seed']}: {one['why'] or MISSING.read(language)}"
