"""The sections of a report, made of blocks from the findings.

answer (chart, table, three sentences) ─ all sentences ─ measured table ─ curves ─ heat ─ changes ─ cost ─ cost and length ─
gained beyond ─ above the best prediction ─ what the text holds ─ by position ─ depth ─ properties ─ tuning ─ how
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from posenc.lab.findings.criteria import ENOUGH
from posenc.lab.findings.titles import main_task, title
from posenc.lab.findings.wording import counted_seeds, seeds_to_rank, trained_seeds
from posenc.lab.records.files import named
from posenc.lab.report import beyond, ceiling, charts, costs, depth, floor, properties, provenance, shortcuts, tuning
from posenc.lab.report.best_change import best_change, how_changed
from posenc.lab.report.cells import (
    Arm,
    Findings,
    Task,
    along,
    arms_by_positions,
    arms_of,
    cell,
    factor,
    fold,
    has_window,
    in_order,
    is_bits,
    learnt,
    remark,
    stretch,
    top,
    unit,
    value,
    window,
)
from posenc.lab.report.document import (
    Article,
    Block,
    Card,
    Cards,
    Cell,
    Fold,
    Items,
    Picture,
    Section,
    Side,
    Table,
    Text,
    cells,
)
from posenc.lab.report.summary_table import introduction, stars
from posenc.lab.report.words import change_name, listed, measured_in, of, phrase, same
from posenc.lab.say import say
from posenc.support.languages import Words, clauses

Blocks = Iterator[Block]


def sections(findings: Findings, names: Sequence[str] = ()) -> list[Section]:
    """The sections that have content: all, or those of `names`."""
    made = ((name, list(PARTS[name](findings))) for name in names or PARTS)
    return [Section(name, phrase(name), blocks) for name, blocks in made if blocks]


def lead(findings: Findings) -> Words:
    """What was compared, before the first section."""
    return phrase(
        "lead" if len(findings["tasks"]) > 1 else "lead one",
        arms=len(arms_of(findings)),
        tasks=len(findings["tasks"]),
        seeds=counted_seeds(findings),
        name=findings["name"],
        about=of(findings["about"]),
    )


def _answer(findings: Findings) -> Blocks:
    """The chart of the main task, a row for each encoding, and what this can tell, cannot tell, and asks for next."""
    main, answer = main_task(findings), findings["answer"]
    home = main["lengths"].index(main["length"])
    yield Text(seeds_to_rank(findings), "small")
    chart = charts.opening(findings, main) if len(main["lengths"]) > 1 else None
    drawn = [Picture(chart, _file(main)), *_not_drawn(main)] if chart else _dots(main)
    rows = [
        [
            Cell(of(row["name"]), arm=row["change"] or row["arm"]),
            Cell(_number(main, row["means"][home])),
            Cell(_number(main, row["means"][-1]), same("–".join(value(main, end) for end in row["interval"] or ()))),
            Cell(of(row["word"]), kind=f"word {row['word']['en'].replace(' ', '-')}"),
        ]
        for row in answer["rows"]
    ]
    head = cells([phrase("encoding"), same(main["length"]), same(main["lengths"][-1]), phrase("word")])
    caption = phrase("answer caption", unit=unit(main), of=of(main["unit"]), seeds=seeds_to_rank(findings))
    told = (Text(of(answer[name]), "told") for name in ("can", "cannot", "next"))
    yield Article(of(main["title"]), [*drawn, Table(head, rows, "plain answer", caption), *told], "")


def _said(findings: Findings) -> Blocks:
    yield Text(phrase("answer text"))
    if needs := findings["needs"]:
        yield Cards([Card(*(of(need[part]) for part in ("need", "pick", "why"))) for need in needs])
    if findings["summary"]:
        yield Items(list(map(of, findings["summary"])), "said")


def _stars(findings: Findings) -> Blocks:
    cost = findings["cost"]
    yield Text(introduction(findings))
    device = (cost or {}).get("device") or findings["provenance"].get("device", "")
    yield Text(phrase("stars cost", device=device, rounds=cost["rounds"]) if cost else phrase("no cost"))
    head, rows = stars(findings)
    yield Table([Cell(phrase("encoding")), *head], [[_name(name), *row] for name, row in rows], "stars")


def _curves(findings: Findings) -> Blocks:
    """The charts of the other tasks; that of the main task opens the page."""
    main = main_task(findings)
    yield Text(phrase("curves text"))
    if any(arm["oracle"] for task in findings["tasks"] for arm in task["arms"]):
        yield Text(phrase("rings"))
    yield from _learning(main)
    yield from _side(
        [task for task in findings["tasks"] if task is not main], lambda task: [*_curve(findings, task), *_learning(task)]
    )


def _curve(findings: Findings, task: Task) -> Blocks:
    if len(task["lengths"]) == 1 or not learnt(task):
        yield from _dots(task)
    elif chart := charts.curves(findings, task):
        yield Picture(chart, _file(task))
        yield from _not_drawn(task)


def _not_drawn(task: Task) -> Blocks:
    if missing := charts.not_drawn(task):
        yield Text(missing, "small")


def _dots(task: Task) -> Blocks:
    """The chart of a task with one length, or that no encoding learnt: the trained length alone."""
    if chart := charts.strips(task):
        yield Picture(chart, _file(task))
    yield Text(phrase("hollow" if learnt(task) else "nobody"), "small")


def _learning(task: Task) -> Blocks:
    if chart := charts.learning(task):
        yield Fold(phrase("learning"), [Picture(chart)])


def _heat(findings: Findings) -> Blocks:
    yield Text(phrase("heat intervals" if len(findings["seeds"]) >= ENOUGH else "heat text"))
    yield from _per_task(findings["tasks"], main_task(findings), lambda task: _heat_of(findings, task))


def _heat_of(findings: Findings, task: Task) -> list[Block]:
    share, cut, longer = shares(task), has_window(task), top(task) > 1

    def scored(arm: Arm, length: int) -> Cell:
        score = cell(task, arm, length)
        if score.number is None:
            return Cell(score.words, kind=f"none {score.kind.replace(' ', '-')}")
        interval = arm["cells"][str(length)].get("interval")
        if len(score.seeds) >= ENOUGH and interval:
            below = "–".join(value(task, bound) for bound in interval)
        else:
            below = " ".join(value(task, seed) for seed in score.seeds)
        if score.kind == "number":
            return Cell(score.words, detail=same(below), shade=share(score.number))
        return Cell(score.words, detail=same(below), kind=f"none {score.kind.replace(' ', '-')}")

    head = [Cell(phrase("encoding")), *_lengths(task)]
    head += [Cell(phrase("last window"))] * cut + [Cell(phrase("factor"))] * longer
    rows = [
        [
            _name(arm["name"])._replace(small=clauses(*(words for words in (same(at), remark(arm)) if words.en))),
            *(scored(arm, length) for length in task["lengths"]),
            *[Cell(window(task, arm))] * cut,
            *[Cell(same(factor(arm["factor"], top(task))))] * longer,
        ]
        for arm, at in arms_by_positions(task)
    ]
    table = Table(head, rows, "heat reach" if longer else "heat", of(task["title"]))
    return [Text(_measured(findings, task), "small"), table, *_side_by_side(task)]


def _measured(findings: Findings, task: Task) -> Words:
    """The measure, the training and the score at chance."""
    trained, steps = task["length"], task["training"]["steps"]
    parts = [measured_in(task["measure"])]
    parts.append(say("trained {steps} steps at {length} {unit}", steps=steps, length=trained, unit=of(task["unit"])))
    if max(trained_seeds(findings), default=0) > 1:
        parts.append(say("mean of {seeds}", seeds=counted_seeds(findings)))
    if (chance := task["chance"].get(str(trained))) is not None:
        parts.append(say("chance {chance:.3g}", chance=chance))
    return clauses(*parts)


def _side_by_side(task: Task) -> Blocks:
    """The table of scores over non-overlapping windows, whose targets differ between lengths."""
    arms = [arm for arm in in_order(task) if arm["learnt"] and arm["non_overlapping"]]
    if arms:
        means = [[(arm["non_overlapping"].get(str(n)) or {}).get("mean") for n in task["lengths"]] for arm in arms]
        rows = [cells([title(arm["name"]), *(_number(task, x) for x in row)]) for arm, row in zip(arms, means, strict=True)]
        head = cells([phrase("encoding"), *map(same, task["lengths"])])
        yield Fold(phrase("side by side"), [Text(phrase("side text"), "small"), Table(head, rows)])


def shares(task: Task) -> Callable[[float], float]:
    """The shade of a cell: bits from 0 (best) to 1 (worst) of the learnt scores, exact match from all to none."""
    if not is_bits(task):
        return lambda number: 1 - number
    scores = (cell(task, arm, length).number for arm in learnt(task) for length in task["lengths"])
    means = [number for number in scores if number is not None]
    low, high = min(means, default=0.0), max(means, default=1.0)
    return lambda number: (number - low) / max(high - low, 0.5)


def _after(findings: Findings) -> Blocks:
    tasks = [task for task in findings["tasks"] if charts.after(task)]
    if tasks:
        yield Text(how_changed(tasks))
        yield from (Text(words, "told") for words in map(best_change, tasks) if words.en)
        main = main_task({"name": findings["name"], "tasks": tasks})
        yield from _per_task(tasks, main, _changes)


def _changes(task: Task) -> list[Block]:
    share, chart, cut = shares(task), charts.after(task), has_window(task)
    assert chart is not None

    def scored(data: Mapping[str, Any]) -> Cell:
        if data.get("mean") is None:
            return Cell(phrase("missing"), kind="none missing")
        seeds = same(" ".join(value(task, seed) for seed in data["seeds"].values()))
        return Cell(same(value(task, data["mean"])), detail=seeds, shade=share(data["mean"]))

    rows = [
        [
            Cell(change_name(changed["change"])),
            *(scored(changed["cells"].get(str(length)) or {}) for length in task["lengths"]),
            *[Cell(window(task, changed))] * cut,
        ]
        for changed in task["after"]
    ]
    head = [Cell(phrase("change")), *_lengths(task), *[Cell(phrase("last window"))] * cut]
    return [Picture(chart), Table(head, rows, "heat", of(task["title"]))]


def _pareto(findings: Findings) -> Blocks:
    drawn = {over: found for over in ("factor", "area") if (found := charts.pareto(findings, over))}
    if drawn:
        yield Text(phrase("pareto text", task=of(main_task(findings)["title"])))
        yield from (Picture(chart, f"pareto-{over}") for over, chart in drawn.items())
        fronts = [(chart.y, listed([one.name for one in chart.series if not one.kind])) for chart in drawn.values()]
        yield Items(
            [say("{words}: {phrase}", words=words, phrase=phrase("pareto front", rows=rows)) for words, rows in fronts],
            "small",
        )


def _by_position(findings: Findings) -> Blocks:
    drawn = [(task, chart) for task in findings["tasks"] if (chart := charts.by_position(task))]
    for task, chart in drawn:
        arms = [arm for arm in learnt(task) if arm["by_position"]]
        longest = max(arm["by_position"]["length"] for arm in arms)
        curves = {arm["name"]: dict(along(task, arm)) for arm in arms}
        positions = sorted({position for bits in curves.values() for position in bits})
        rows = [
            [_name(name), *cells(same(f"{bits[position]:.2f}" if position in bits else "–") for position in positions)]
            for name, bits in curves.items()
        ]
        head = cells([phrase("encoding"), *(same(f"{position:g}") for position in positions)])
        blocks: list[Block] = [
            Text(phrase("positions text", length=longest, width=stretch(task))),
            Picture(chart),
            Fold(phrase("numbers"), [Table(head, rows)]),
        ]
        yield from [Article(of(task["title"]), blocks, "")] if len(drawn) > 1 else blocks


# Pieces ---------------------------------------------------------------------------------------------------------------


def _per_task(tasks: Sequence[Task], main: Task, blocks: Callable[[Task], Sequence[Block]]) -> Blocks:
    """The main task over the whole width, the others side by side."""
    yield _article(main, blocks(main))
    yield from _side([task for task in tasks if task is not main], blocks)


def _side(tasks: Sequence[Task], blocks: Callable[[Task], Sequence[Block]]) -> Blocks:
    if tasks:
        yield Side([_article(task, blocks(task)) for task in tasks])


def _article(task: Task, blocks: Sequence[Block]) -> Article:
    return Article(of(task["title"]), blocks, "task long" if len(task["lengths"]) > 3 else "task")


def _file(task: Task) -> str:
    return f"curves-{named(task['name'])}"


def _lengths(task: Task) -> list[Cell]:
    return [Cell(same(length), same(fold(length / task["length"]))) for length in task["lengths"]]


def _number(task: Task, mean: float | None) -> Words:
    return same("–" if mean is None else value(task, mean))


def _name(arm: str) -> Cell:
    """A name with its colour."""
    return Cell(title(arm), arm=arm)


PARTS: dict[str, Callable[[Findings], Blocks]] = {
    "answer": _answer,
    "said": _said,
    "stars": _stars,
    "curves": _curves,
    "heat": _heat,
    "after": _after,
    "cost": costs.blocks,
    "pareto": _pareto,
    "beyond": beyond.blocks,
    "floors": floor.blocks,
    "ceiling": ceiling.blocks,
    "positions": _by_position,
    "shortcuts": shortcuts.blocks,
    "depth": depth.blocks,
    "properties": properties.blocks,
    "tuning": tuning.blocks,
    "how": provenance.blocks,
}
