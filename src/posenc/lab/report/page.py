"""The report as one HTML file that loads nothing from the network: inline pictures, light and dark, both languages.

answer (chart, table, three sentences) ─ all sentences ─ measured table ─ curves ─ heat ─ changes ─ cost ─ cost and length ─
gained beyond ─ above the best prediction ─ what the text holds ─ by position ─ depth ─ properties ─ tuning ─ how
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files

from posenc.lab.findings.criteria import ENOUGH
from posenc.lab.findings.titles import main_task, title
from posenc.lab.findings.wording import counted_seeds, seeds_to_rank
from posenc.lab.report import beyond, ceiling, charts, depth, floor, shortcuts, svg, tuning
from posenc.lab.report.best_change import best_change, how_changed
from posenc.lab.report.block import Block
from posenc.lab.report.cells import (
    Arm,
    Cell,
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
from posenc.lab.report.costs import costs
from posenc.lab.report.html import both, document, header, heat, section, span, table, tag
from posenc.lab.report.properties import properties
from posenc.lab.report.provenance import how
from posenc.lab.report.style import Look, look, sheet
from posenc.lab.report.summary_table import Entry, introduction, stars
from posenc.lab.report.words import change_name, listed, of, phrase, same
from posenc.lab.say import say
from posenc.support.languages import Words

BRAND = "posenc lab"
PARTS = (
    "answer",
    "said",
    "stars",
    "curves",
    "heat",
    "after",
    "cost",
    "pareto",
    "beyond",
    "floors",
    "ceiling",
    "positions",
    "shortcuts",
    "depth",
    "properties",
    "tuning",
    "how",
)


def page(findings: Findings) -> str:
    """The whole file."""
    styles, scripts = [_read("charts.css"), _read("report.css"), sheet()], [_read("report.js")]
    builders: dict[str, Callable[[Findings], str]] = {
        "answer": _answer,
        "said": _said,
        "stars": _stars,
        "curves": _curves,
        "heat": _heat,
        "after": _after,
        "cost": costs,
        "pareto": _pareto,
        "beyond": _blocks(beyond.blocks),
        "floors": _blocks(floor.blocks),
        "ceiling": _blocks(ceiling.blocks),
        "positions": _by_position,
        "shortcuts": _blocks(shortcuts.blocks),
        "depth": _blocks(depth.blocks),
        "properties": properties,
        "tuning": _blocks(tuning.blocks),
        "how": how,
    }
    sections = {name: content for name in PARTS if (content := builders[name](findings))}
    body = "".join(section(phrase(name), content, name) for name, content in sections.items())
    return document(
        f"{BRAND}: {findings['name']}", _header(findings) + _contents(sections) + body, styles=styles, scripts=scripts
    )


def _read(name: str) -> str:
    return files("posenc.lab.report").joinpath(name).read_text("utf-8")


def _header(findings: Findings) -> str:
    kind = "lead" if len(findings["tasks"]) > 1 else "lead one"
    lead = phrase(
        kind,
        arms=len(arms_of(findings)),
        tasks=len(findings["tasks"]),
        seeds=counted_seeds(findings),
        name=findings["name"],
        about=of(findings["about"]),
    )
    return header(BRAND, phrase("title"), lead)


def _contents(names: Iterable[str]) -> str:
    links = "".join(f'<li><a href="#{name}">{span(phrase(name))}</a></li>' for name in names)
    label = html.escape(" ".join(phrase("contents").both()))
    return f'<nav class="contents" aria-label="{label}"><ol>{links}</ol></nav>\n'


# Sections -------------------------------------------------------------------------------------------------------------


def _answer(findings: Findings) -> str:
    """The chart of the main task, a row for each encoding, and what this can tell, cannot tell, and asks for next."""
    main, answer = main_task(findings), findings["answer"]
    names, home = arms_of(findings), main["lengths"].index(main["length"])

    def td(mean: float | None, interval: list[float] | None = None) -> str:
        small = "–".join(value(main, end) for end in interval or ())
        return f"<td>{'–' if mean is None else value(main, mean)}{f'<small>{small}</small>' if small else ''}</td>"

    head = [
        span(phrase("encoding")),
        *(str(length) for length in (main["length"], main["lengths"][-1])),
        span(phrase("word")),
    ]
    body = [
        [
            _swatch(charts.CHANGED if row["change"] else look(row["arm"], names)) + span(of(row["name"])),
            td(row["means"][home]),
            td(row["means"][-1], row["interval"]),
            f'<td class="word {row["word"]["en"].replace(" ", "-")}">{span(of(row["word"]))}</td>',
        ]
        for row in answer["rows"]
    ]
    told = "".join(tag("p", of(answer[name]), "told") for name in ("can", "cannot", "next"))
    title_words, seeds = of(main["title"]), seeds_to_rank(findings)
    lengths = phrase("answer caption", unit=unit(main), of=of(main["unit"]), seeds=seeds)
    chart = charts.opening(findings, main) if len(main["lengths"]) > 1 else None
    drawn = _drawn(chart, True, 470) + _not_drawn(main) if chart else _dots(findings, main)
    return tag("h3", title_words) + drawn + table("plain answer", head, body, lengths) + told


def _said(findings: Findings) -> str:
    items = "".join(tag("li", of(sentence)) for sentence in findings["summary"])
    shown = "".join(
        '<div class="card">' + "".join(tag("div", of(need[part]), part) for part in ("need", "pick", "why")) + "</div>"
        for need in findings["needs"]
    )
    sentences = f'<ul class="said">{items}</ul>' if items else ""
    return tag("p", phrase("answer text")) + (f'<div class="cards">{shown}</div>' if shown else "") + sentences


def _stars(findings: Findings) -> str:
    cost, summary = findings["cost"], stars(findings)
    names = arms_of(findings)
    text = tag("p", introduction(findings))
    text += tag(
        "p",
        phrase("stars cost", device=cost.get("device") or findings["provenance"].get("device", ""), rounds=cost["rounds"])
        if cost
        else phrase("no cost"),
    )
    head = [
        span(phrase("encoding")),
        *(span(name) + (f"<small>{span(small)}</small>" if small.en else "") for name, small in summary.head),
    ]
    body = [[_name(name, names), *_joined(list(map(_entry, entries)))] for name, entries in summary.rows]
    return text + table("stars", head, body)


def _entry(entry: Entry) -> str:
    kind = f' class="{entry.kind}"' if entry.kind else ""
    small = tag("small", entry.small) if entry.small.en else ""
    return f"<td{kind}>{span(entry.words)}{small}</td>"


def _curves(findings: Findings) -> str:
    """The charts of the other tasks; that of the main task opens the page."""
    rings = any(arm["oracle"] for task in findings["tasks"] for arm in task["arms"])
    text = tag("p", phrase("curves text")) + (tag("p", phrase("rings")) if rings else "")
    others = [task for task in findings["tasks"] if task is not main_task(findings)]
    learning = _learning(findings, main_task(findings), True)
    return text + learning + _side(others, lambda task: _curve(findings, task) + _learning(findings, task, False))


def _curve(findings: Findings, task: Task) -> str:
    if len(task["lengths"]) == 1 or not learnt(task):
        return _dots(findings, task)
    chart = charts.curves(findings, task)
    return (_drawn(chart, False, 470) if chart else "") + _not_drawn(task)


def _not_drawn(task: Task) -> str:
    missing = charts.not_drawn(task)
    return tag("p", missing, "small") if missing else ""


def _dots(findings: Findings, task: Task) -> str:
    """The chart of a task with one length, or that no encoding learnt: the trained length alone."""
    drawn = charts.strips(findings, task)
    drawing = svg.strips(*drawn, width=430, described=of(task["title"])) if drawn else ""
    note = tag("p", phrase("hollow" if learnt(task) else "nobody"), "small")
    return (f'<div class="chart half">{drawing}</div>' if drawn else "") + note


def _learning(findings: Findings, task: Task, wide: bool) -> str:
    chart = charts.learning(findings, task)
    return details(phrase("learning"), _drawn(chart, wide, 360)) if chart else ""


def _heat(findings: Findings) -> str:
    text = "heat intervals" if len(findings["seeds"]) >= ENOUGH else "heat text"
    return tag("p", phrase(text)) + _per_task(
        findings, lambda task, wide: _heat_table(findings, task) + _side_by_side(task)
    )


def _heat_table(findings: Findings, task: Task) -> str:
    names = arms_of(findings)
    share = shares(task)

    def td(arm: Arm, length: int) -> str:
        score = cell(task, arm, length)
        kind = score.kind.replace(" ", "-")
        if score.number is None:
            return f'<td class="none {kind}">{span(score.words)}</td>'
        seeds = f"<small><span>{_below(task, arm, length, score)}</span></small>"
        inside = f"<b>{html.escape(score.words.en)}</b>{seeds}"
        if score.kind == "number":
            return f'<td style="{heat(share(score.number))}">{inside}</td>'
        return f'<td class="none {kind}">{inside}</td>'

    head = [span(phrase("encoding"))]
    head += [f"{length}<small>{fold(length / task['length'])}</small>" for length in task["lengths"]]
    cut, longer = has_window(task), top(task) > 1
    head += [span(phrase("last window"))] * cut
    body = [
        [
            _name(arm["name"], names)
            + "".join(tag("small", words, "why") for words in (same(at), remark(arm)) if words.en),
            *_joined([td(arm, length) for length in task["lengths"]]),
            *[f"<td>{window(task, arm).en}</td>"] * cut,
            *([f"<td>{factor(arm['factor'], top(task))}</td>"] if longer else []),
        ]
        for arm, at in arms_by_positions(task)
    ]
    return table(
        "heat reach" if longer else "heat", head + ([span(phrase("factor"))] if longer else []), body, of(task["title"])
    )


def _below(task: Task, arm: Arm, length: int, score: Cell) -> str:
    """Every seed; for many seeds the interval, if there is one."""
    interval = arm["cells"][str(length)].get("interval")
    if len(score.seeds) >= ENOUGH and interval:
        return "–".join(value(task, bound) for bound in interval)
    return " ".join(value(task, seed) for seed in score.seeds)


def _side_by_side(task: Task) -> str:
    """The table of scores over non-overlapping windows, whose targets differ between lengths."""
    arms = [arm for arm in in_order(task) if arm["learnt"] and arm["non_overlapping"]]
    if not arms:
        return ""

    def td(arm: Arm, length: int) -> str:
        mean = (arm["non_overlapping"].get(str(length)) or {}).get("mean")
        return f"<td>{'–' if mean is None else value(task, mean)}</td>"

    head = [span(phrase("encoding")), *map(str, task["lengths"])]
    body = [[span(title(arm["name"])), *(td(arm, length) for length in task["lengths"])] for arm in arms]
    return details(phrase("side by side"), tag("p", phrase("side text"), "small") + table("plain", head, body))


def _joined(cells: Sequence[str]) -> list[str]:
    """Merges neighbouring cells that have no number and the same text."""
    joined = []
    for cell_, same_ones in itertools.groupby(cells):
        count = len(list(same_ones))
        without = cell_.startswith('<td class="none') and "<b>" not in cell_ and count > 1
        joined += [cell_.replace("<td", f'<td colspan="{count}"', 1)] if without else [cell_] * count
    return joined


def shares(task: Task) -> Callable[[float], float]:
    """The shade of a cell: bits from 0 (best) to 1 (worst) of the learnt scores, exact match from all to none."""
    if not is_bits(task):
        return lambda number: 1 - number
    means = [
        score.number
        for arm in learnt(task)
        for length in task["lengths"]
        if (score := cell(task, arm, length)).number is not None
    ]
    low, high = min(means, default=0.0), max(means, default=1.0)
    return lambda number: (number - low) / max(high - low, 0.5)


def _after(findings: Findings) -> str:
    tasks = [task for task in findings["tasks"] if charts.after(task)]
    if not tasks:
        return ""
    text = "".join(tag("p", words) for words in (how_changed(tasks), *map(best_change, tasks)) if words.en)
    inside = {"name": findings["name"], "tasks": tasks}
    return text + _per_task(inside, _changes)


def _changes(task: Task, wide: bool) -> str:
    chart = charts.after(task)
    assert chart is not None
    share = shares(task)

    def td(cells: dict[str, dict[str, object]], length: int) -> str:
        data = cells.get(str(length)) or {}
        mean, seeds = data.get("mean"), data.get("seeds")
        if not isinstance(mean, float) or not isinstance(seeds, dict):
            return f'<td class="none missing">{span(phrase("missing"))}</td>'
        small = " ".join(value(task, seed) for seed in seeds.values())
        return f'<td style="{heat(share(mean))}"><b>{value(task, mean)}</b><small>{small}</small></td>'

    head = [
        span(phrase("change")),
        *(f"{length}<small>{fold(length / task['length'])}</small>" for length in task["lengths"]),
    ]
    body = [
        [span(change_name(changed["change"])), *(td(changed["cells"], length) for length in task["lengths"])]
        for changed in task["after"]
    ]
    return _drawn(chart, wide, 360) + table("heat", head, body, of(task["title"]))


def _pareto(findings: Findings) -> str:
    panels, fronts = "", []
    for over in ("factor", "area"):
        if drawn := charts.pareto(findings, over):
            spots, x, y = drawn
            described = say("{words}; {words_2}", words=x.words, words_2=y.words)
            panels += (
                f'<figure class="chart">{svg.scatter(spots, x, y, width=420, height=360, described=described)}</figure>'
            )
            fronts.append((y.words, listed([spot.name for spot in spots if spot.front])))
    if not panels:
        return ""
    text = tag("p", phrase("pareto text", task=of(main_task(findings)["title"])))
    fronts_listed = "".join(
        tag("li", say("{words}: {phrase}", words=words, phrase=phrase("pareto front", rows=rows))) for words, rows in fronts
    )
    return f'{text}<div class="tasks">{panels}</div><ul class="small">{fronts_listed}</ul>'


def _by_position(findings: Findings) -> str:
    drawn = [(task, chart) for task in findings["tasks"] if (chart := charts.by_position(findings, task))]
    content = ""
    for task, chart in drawn:
        lengths = {arm["by_position"]["length"] for arm in learnt(task) if arm["by_position"]}
        content += tag("h3", of(task["title"])) if len(drawn) > 1 else ""
        content += tag("p", phrase("positions text", length=max(lengths), width=stretch(task))) + _drawn(
            chart, task is main_task(findings), 400
        )
        content += _position_table(findings, task)
    return content


def _position_table(findings: Findings, task: Task) -> str:
    names, arms = arms_of(findings), [arm for arm in learnt(task) if arm["by_position"]]
    curves = {arm["name"]: dict(along(task, arm)) for arm in arms}
    positions = sorted({position for bits in curves.values() for position in bits})
    head = [span(phrase("encoding")), *(f"{position:g}" for position in positions)]
    body = [
        [
            _name(name, names),
            *(f"<td>{bits[position]:.2f}</td>" if position in bits else "<td>–</td>" for position in positions),
        ]
        for name, bits in curves.items()
    ]
    return details(phrase("numbers"), table("plain", head, body))


def _blocks(of_findings: Callable[[Findings], Iterable[Block]]) -> Callable[[Findings], str]:
    return lambda findings: "".join(block.html() for block in of_findings(findings))


# Pieces ---------------------------------------------------------------------------------------------------------------


def _per_task(findings: Findings, content: Callable[[Task, bool], str]) -> str:
    """The chart of the main task over the whole width, the others side by side."""
    main = main_task(findings)
    others = [task for task in findings["tasks"] if task is not main]
    return _task(main, content(main, True)) + _side(others, lambda task: content(task, False))


def _side(tasks: Sequence[Task], content: Callable[[Task], str]) -> str:
    return '<div class="tasks">' + "".join(_task(task, content(task)) for task in tasks) + "</div>" if tasks else ""


def _task(task: Task, content: str) -> str:
    kind = "task long" if len(task["lengths"]) > 3 else "task"
    return f'<article class="{kind}">{tag("h3", of(task["title"]))}{content}</article>'


def _drawn(chart: svg.Chart, wide: bool, height: int) -> str:
    return both(chart, height) if wide else f'<div class="chart">{svg.lines(chart, width=430, height=370)}</div>'


def _name(arm: str, arms: Sequence[str]) -> str:
    """A name with a sample of its line."""
    return _swatch(look(arm, arms)) + span(title(arm))


def _swatch(drawn: Look) -> str:
    stroke = '<svg class="swatch {}" viewBox="0 0 26 6" aria-hidden="true"><path d="M1 3H25" class="curve"/></svg>'
    return stroke.format(drawn.classes)


def details(words: Words, content: str) -> str:
    return f"<details><summary>{span(words)}</summary>{content}</details>"
