"""The report as Markdown in one language: the sentences, tables and numbers of the page, with pictures as files."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import seeds_to_rank
from posenc.lab.records.files import named
from posenc.lab.report import ceiling, charts, depth, floor, tuning
from posenc.lab.report.best_change import best_change, how_changed
from posenc.lab.report.cells import (
    Findings,
    Task,
    beside,
    cell,
    explained,
    factor,
    fold,
    remark,
    source,
    top,
    value,
    verdict,
    verdicts,
)
from posenc.lab.report.pictures import ENDING, curves_drawn
from posenc.lab.report.provenance import gate, limits, lost, rate, repeating, text_used, training
from posenc.lab.report.summary_table import introduction, stars
from posenc.lab.report.words import change_name, of, phrase
from posenc.lab.say import say
from posenc.support.languages import Language, Words, joined


def markdown(findings: Findings, language: Language) -> str:
    def said(words: Words) -> str:
        return escaped(words.in_language(language))

    ending = ENDING[language]
    parts = [f"# {said(phrase('title'))}", said(of(findings["about"])), f"`{findings['command'].replace('`', '')}`"]
    parts += [f"## {said(phrase('answer'))}", f"*{said(seeds_to_rank(findings))}*"]
    needs = [{part: said(of(words)) for part, words in need.items()} for need in findings["needs"]]
    line = say("- {need}: **{pick}** ({why})").in_language(language)
    parts.append("\n".join(line.format(**need) for need in needs))
    parts += [said(of(sentence)) for sentence in findings["summary"]]
    made = stars(findings)
    head = [
        said(phrase("encoding")),
        *(said(name) + (f" ({said(small)})" if small.en else "") for name, small in made.head),
    ]
    rows = [
        [said(title(name)), *(said(one.words) + (f" ({said(one.small)})" if one.small.en else "") for one in entries)]
        for name, entries in made.rows
    ]
    parts += [f"## {said(phrase('stars'))}", said(introduction(findings)), grid(head, rows)]
    parts += [f"## {said(phrase('heat'))}", said(phrase("curves text"))]
    for task in findings["tasks"]:
        called = said(of(task["title"]))
        parts += [
            f"### {called}",
            f"![{called}](curves-{named(task['name'])}{ending}.svg)" * bool(curves_drawn(findings, task)),
        ]
        parts.append(_cells(task, language))
    for task in findings["tasks"]:
        if task["after"]:
            parts += [
                f"## {said(joined([phrase('after'), of(task['title'])], ': ', '：'))}",
                said(how_changed([task])),
                said(best_change(task)),
            ]
            parts.append(_changes(task, language))
    if drawn := [over for over in ("factor", "area") if charts.pareto(findings, over)]:
        described = said(phrase("pareto"))
        parts += [f"## {described}", *(f"![{described}](pareto-{over}{ending}.svg)" for over in drawn)]
    for task in filter(floor.has_floor, findings["tasks"]):
        text = phrase("floor text", task=of(task["title"]), home=task["length"])
        lines = [[said(words) for words in row] for row in floor.rows(task)]
        parts += [f"## {said(phrase('floors'))}", said(text)]
        parts.append(grid([said(phrase("encoding")), *map(said, floor.head(task))], lines))
    for task in ceiling.tasks(findings):
        lines = [[said(words) for words in row] for row in ceiling.rows(findings, task)]
        parts += [f"## {said(phrase('ceiling'))}", said(phrase("ceiling text", home=task["length"]))]
        parts.append(grid([said(phrase("encoding")), *map(said, ceiling.head(task))], lines))
    for task in filter(depth.has_depth, findings["tasks"]):
        parts += [f"## {said(phrase('depth'))}", said(phrase("depth text", task=of(task["title"])))]
        lines = [[said(words) for words in row] for row in depth.rows(task)]
        parts.append(grid([said(phrase("encoding")), *depth.head(task)], lines))
    for task, found in tuning.tuned_tasks(findings):
        lines = [[said(words) for words in row] for row in tuning.rows(task, found)]
        parts += [f"## {said(phrase('tuning'))}", said(tuning.introduction(task, found))]
        parts.append(grid([said(phrase(name)) for name in tuning.HEAD], lines))
    if findings["published"]:
        head = [said(phrase(name)) for name in ("claim", "ours", "verdict", "why", "source")]
        rows = [
            [said(of(row["claim"])), said(of(row["ours"])), said(verdict(row)), said(explained(row)), said(source(row))]
            for row in findings["published"]
        ]
        parts += [f"## {said(phrase('published'))}", said(verdicts(findings)), grid(head, rows)]
    known_limits = "\n".join(f"- {said(words)}" for words in limits(findings))
    parts += [
        f"## {said(phrase('how'))}",
        said(phrase("how text")),
        said(repeating(findings)),
        said(text_used(findings)),
        known_limits,
        _tasks(findings, language),
    ]
    parts.append(f"### {said(phrase('lost'))}")
    rows = [[said(task), said(arm), seed, said(why)] for task, arm, seed, why in lost(findings)]
    parts.append(
        grid([said(phrase(name)) for name in ("task", "encoding", "seed", "why")], rows)
        if rows
        else said(phrase("nothing lost"))
    )
    known = {"posenc": findings["posenc"], **findings["provenance"], **findings["machine"]}
    parts.append("\n".join(f"- {escaped(str(name))}: {escaped(str(found))}" for name, found in known.items()))
    return "\n\n".join(part for part in parts if part) + "\n"


def _cells(task: Task, language: Language) -> str:
    longer = top(task) > 1
    head = [
        phrase("encoding").in_language(language),
        *(f"{length} ({fold(length / task['length'])})" for length in task["lengths"]),
    ]
    rows = []
    for arm, at in beside(task):
        notes = [note for note in (at, remark(arm).in_language(language)) if note]
        row = [escaped(title(arm["name"]).in_language(language) + (f" ({'; '.join(notes)})" if notes else ""))]
        row += [escaped(cell(task, arm, length).words.in_language(language)) for length in task["lengths"]]
        rows.append(row + ([factor(arm["factor"], top(task))] if longer else []))
    return grid(head + ([phrase("factor").in_language(language)] if longer else []), rows)


def _changes(task: Task, language: Language) -> str:
    rows = []
    for changed in task["after"]:
        means = ((changed["cells"].get(str(length)) or {}).get("mean") for length in task["lengths"])
        numbers = [phrase("missing").in_language(language) if mean is None else value(task, mean) for mean in means]
        rows.append([change_name(changed["change"]).in_language(language), *numbers])
    return grid([phrase("change").in_language(language), *map(str, task["lengths"])], rows)


def _tasks(findings: Findings, language: Language) -> str:
    head = [phrase(name).in_language(language) for name in ("task", "lengths", "trained with", "rate", "gate")]
    rows = [
        [
            escaped(words.in_language(language))
            for words in (of(task["title"]), lengths(task), training(task), rate(task), gate(task))
        ]
        for task in findings["tasks"]
    ]
    return grid(head, rows)


def lengths(task: Task) -> Words:
    said = ", ".join(map(str, task["lengths"]))
    return say("{said}; trained {length}", said=said, length=task["length"])


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def escaped(text: str) -> str:
    """The text with characters escaped that mean something in Markdown or HTML."""
    flat = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join("\\" + letter if letter in r"\`*_[]|" else letter for letter in flat)
