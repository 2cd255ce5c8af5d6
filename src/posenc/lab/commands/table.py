"""The findings as tables in the terminal: properties and cost, one table per task, then the conclusions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from posenc.lab.commands import properties_table as lab_properties_table
from posenc.lab.findings import criteria
from posenc.lab.findings.wording import bounds, counted_seeds, seeds_to_rank, trained_seeds
from posenc.lab.say import say
from posenc.support.languages import Language, Words, clauses
from posenc.terminal.wrapped import Wrapped

if TYPE_CHECKING:
    from rich.console import Console

COLOURS = {"flat": "green", "fades": "yellow", "breaks": "red"}
ENCODING, KEPT_TO = say("encoding"), say("kept to")
NOT_LEARNT, MISSING, CANNOT, FAILED = (say("not learnt"), say("missing"), say("cannot"), say("failed"))
UNIT = {"bits": say("bits per target, lower is better"), "exact": say("share of rows entirely correct")}
CHANGED = say("RoPE, frequencies changed after training")
UNCHANGED = say("as trained")
NEED = say("→ {need}: {pick} ({why})")
FIRST = 15  # width of the names, as long as rope+randomized


def show(findings: Mapping[str, Any], console: Console, language: Language) -> None:
    lab_properties_table.show(findings, console, language)
    for task in findings["tasks"]:
        console.print(Text(task["title"][language], style="bold"))
        console.print(Wrapped(caption(task, findings, language), "dim"))
        console.print(_of_task(task, len(findings["seeds"]), language, console.width))
        for line in (*reasons(task), *legend(task, language)):
            console.print(Wrapped(line, "dim"))
        if task["after"]:
            console.print(_after(task, language, console.width))
        console.print()
    console.print(Text(seeds_to_rank(findings).in_language(language), style="dim"))
    for sentence in findings["summary"]:
        console.print(Wrapped("· " + sentence[language]))
    for need in findings["needs"]:
        words = {part: words[language] for part, words in need.items()}
        console.print(Wrapped(NEED.in_language(language).format(**words)))


def caption(task: Mapping[str, Any], findings: Mapping[str, Any], language: Language) -> str:
    """The caption: the measure, the training settings and the score at chance."""
    trained, unit, steps = task["length"], Words(**task["unit"]), task["training"]["steps"]
    parts = [UNIT[task["measure"]]]
    parts.append(say("trained {steps} steps at {length} {unit}", steps=steps, length=trained, unit=unit))
    if max(trained_seeds(findings), default=0) > 1:
        parts.append(say("mean of {seeds}", seeds=counted_seeds(findings)))
    if (chance := task["chance"].get(str(trained))) is not None:
        parts.append(say("chance {chance:.3g}", chance=chance))
    return clauses(*parts).in_language(language)


def reasons(task: Mapping[str, Any]) -> Iterator[str]:
    """Reasons for missing numbers, other than that the task was not learnt."""
    for arm in task["arms"]:
        states = [arm["state"], *(cell["state"] for cell in arm["cells"].values())]
        for state in dict.fromkeys(states):
            if state and state.startswith(("cannot", "failed")):
                yield f"{arm['name']} {state}"
                break


def legend(task: Mapping[str, Any], language: Language) -> Iterator[str]:
    """The meaning of the colours, and the criterion for a learnt task."""
    if any(arm["behaviour"] for arm in task["arms"]):
        flat, broken = bounds(task)
        yield say("green: {flat}; red: {broken}", flat=flat, broken=broken).in_language(language)
    if any(arm["state"] == criteria.NOT_LEARNT for arm in task["arms"]):
        yield say("learnt: {rule}", rule=Words(**task["gate"]["rule"])).in_language(language)


def _of_task(task: Mapping[str, Any], seeds: int, language: Language, room: int) -> Table:
    """The table of one task. Seeds are printed beside the mean if the width allows it."""
    lengths = [str(length) for length in task["lengths"]]
    wide = 4 + 5 * seeds + 1
    with_seeds = seeds > 1 and FIRST + len(lengths) * (wide + 1) + 8 <= room
    widths = [wide] * len(lengths) if with_seeds else _widths([*lengths, KEPT_TO.in_language(language)], room)[:-1]
    headings = [f"{length}\n{int(length) / task['length']:.3g}×" for length in lengths]
    table = _table(ENCODING.in_language(language), headings, [*widths], language)
    for arm in task["arms"]:
        cells = [_of_arm(arm, length, task["length"], language, with_seeds) for length in task["lengths"]]
        table.add_row(arm["name"], *cells, factor(arm["factor"]))
    return table


def _of_arm(arm: Mapping[str, Any], length: int, trained: int, language: Language, with_seeds: bool) -> Text:
    cell = arm["cells"].get(str(length), {})
    if length == trained and cell.get("mean") is not None and not arm["learnt"]:
        return _number(cell, "dim", with_seeds)  # shown although it was not learnt
    return _cell(arm["state"], cell, arm["behaviour"], language, with_seeds)


def _after(task: Mapping[str, Any], language: Language, room: int) -> Table:
    lengths = [str(length) for length in task["lengths"]]
    table = _table(CHANGED.in_language(language), lengths, _widths(lengths, room), None)
    for changed in task["after"]:
        cells = [_cell(None, changed["cells"].get(str(length), {}), None, language) for length in task["lengths"]]
        table.add_row(changed["change"] or UNCHANGED.in_language(language), *cells)
    return table


def _widths(headings: Sequence[str], room: int) -> list[int]:
    """Column widths. In a narrow terminal words wrap; numbers do not."""
    widths = [max(10, len(heading)) for heading in headings]
    if FIRST + sum(widths) + len(widths) > room:
        widths = [max(6, len(heading)) for heading in headings]
    return widths


def _table(first: str, headings: Sequence[str], widths: Sequence[int], language: Language | None) -> Table:
    """An empty table; with a language, a last column for the factor."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0), header_style="bold")
    table.add_column(first, min_width=FIRST, overflow="fold")
    for heading, width in zip(headings, widths, strict=True):
        table.add_column(heading, justify="right", width=width)
    if language is not None:
        table.add_column(KEPT_TO.in_language(language), justify="right", width=8)
    return table


def _cell(
    state: str | None, cell: Mapping[str, Any], behaviour: str | None, language: Language, with_seeds: bool = False
) -> Text:
    """The mean over seeds, or the reason why there is none."""
    if word := word_for(state or cell.get("state"), language):
        return Text(word, style="dim" if word == NOT_LEARNT.in_language(language) else "red")
    if cell.get("mean") is None:
        return Text("")
    return _number(cell, COLOURS.get(behaviour or "", ""), with_seeds)


def _number(cell: Mapping[str, Any], style: str, with_seeds: bool) -> Text:
    mean = (f"{cell['mean']:.2f}", style)
    return Text.assemble(mean, *((f" {seed:.2f}", "dim") for seed in cell["seeds"].values() if with_seeds))


def word_for(state: str | None, language: Language) -> str | None:
    """A short word for a state; the report gives details."""
    for start, words in (("not learnt", NOT_LEARNT), ("cannot", CANNOT), ("failed", FAILED), ("missing", MISSING)):
        if (state or "").startswith(start):
            return words.in_language(language)
    return state


def factor(factor_found: Mapping[str, Any] | None) -> str:
    """2× or, where it was still kept at the longest scored length, >8×."""
    return "–" if factor_found is None else f"{'>' * factor_found['censored']}{factor_found['value']:.3g}×"


def missing(findings: Mapping[str, Any], language: Language) -> Iterator[str]:
    """One line per missing trial."""
    for trial in findings["missing"]:
        yield f"{trial['task']} {trial['arm']} seed {trial['seed']}: {trial['why'] or MISSING.in_language(language)}"
