"""The report as Markdown in one language: the sentences, tables and numbers of the page, with pictures as files."""

from __future__ import annotations

from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import seeds_to_rank
from posenc.lab.records.files import named
from posenc.lab.report import beyond, ceiling, charts, depth, floor, shortcuts, tuning
from posenc.lab.report.best_change import best_change, how_changed
from posenc.lab.report.block import grid
from posenc.lab.report.cells import (
    Findings,
    Task,
    arms_by_positions,
    cell,
    factor,
    fold,
    has_window,
    remark,
    top,
    value,
    window,
)
from posenc.lab.report.pictures import ENDING, curves_drawn
from posenc.lab.report.provenance import gate, limits, lost, rate, repeating, text_used, training
from posenc.lab.report.summary_table import introduction, stars
from posenc.lab.report.words import change_name, of, phrase
from posenc.lab.say import say
from posenc.support.languages import Language, Words, joined


def markdown(findings: Findings, language: Language) -> str:
    def md(words: Words) -> str:
        return escaped(words.in_language(language))

    ending = ENDING[language]
    parts = [f"# {md(phrase('title'))}", md(of(findings["about"])), f"`{findings['command'].replace('`', '')}`"]
    parts += [f"## {md(phrase('answer'))}", f"*{md(seeds_to_rank(findings))}*"]
    needs = [{part: md(of(words)) for part, words in need.items()} for need in findings["needs"]]
    line = say("- {need}: **{pick}** ({why})").in_language(language)
    parts.append("\n".join(line.format(**need) for need in needs))
    parts += [md(of(sentence)) for sentence in findings["summary"]]
    summary = stars(findings)
    head = [md(phrase("encoding")), *(md(name) + (f" ({md(small)})" if small.en else "") for name, small in summary.head)]
    rows = [
        [md(title(name)), *(md(entry.words) + (f" ({md(entry.small)})" if entry.small.en else "") for entry in entries)]
        for name, entries in summary.rows
    ]
    parts += [f"## {md(phrase('stars'))}", md(introduction(findings)), grid(head, rows)]
    parts += [f"## {md(phrase('heat'))}", md(phrase("curves text"))]
    for task in findings["tasks"]:
        called = md(of(task["title"]))
        parts += [
            f"### {called}",
            f"![{called}](curves-{named(task['name'])}{ending}.svg)" * bool(curves_drawn(findings, task)),
        ]
        parts.append(_cells(task, language))
    for task in findings["tasks"]:
        if task["after"]:
            parts += [
                f"## {md(joined([phrase('after'), of(task['title'])], ': ', '：'))}",
                md(how_changed([task])),
                md(best_change(task)),
            ]
            parts.append(_changes(task, language))
    if drawn := [over for over in ("factor", "area") if charts.pareto(findings, over)]:
        described = md(phrase("pareto"))
        parts += [f"## {described}", *(f"![{described}](pareto-{over}{ending}.svg)" for over in drawn)]
    for name, blocks in (
        ("beyond", beyond.blocks),
        ("floors", floor.blocks),
        ("ceiling", ceiling.blocks),
        ("shortcuts", shortcuts.blocks),
        ("depth", depth.blocks),
        ("tuning", tuning.blocks),
    ):
        for block in blocks(findings):
            parts += [f"## {md(phrase(name))}", *block.markdown(md)]
    known_limits = "\n".join(f"- {md(words)}" for words in limits(findings))
    parts += [
        f"## {md(phrase('how'))}",
        md(phrase("how text")),
        md(repeating(findings)),
        md(text_used(findings)),
        known_limits,
        _tasks(findings, language),
    ]
    parts.append(f"### {md(phrase('lost'))}")
    rows = [[md(task), md(arm), seed, md(why)] for task, arm, seed, why in lost(findings)]
    parts.append(
        grid([md(phrase(name)) for name in ("task", "encoding", "seed", "why")], rows)
        if rows
        else md(phrase("nothing lost"))
    )
    known = {"posenc": findings["posenc"], **findings["provenance"], **findings["machine"]}
    parts.append("\n".join(f"- {escaped(str(name))}: {escaped(str(value))}" for name, value in known.items()))
    return "\n\n".join(part for part in parts if part) + "\n"


def _cells(task: Task, language: Language) -> str:
    longer = top(task) > 1
    head = [
        phrase("encoding").in_language(language),
        *(f"{length} ({fold(length / task['length'])})" for length in task["lengths"]),
        *[phrase("last window").in_language(language)] * has_window(task),
    ]
    rows = []
    for arm, at in arms_by_positions(task):
        notes = [note for note in (at, remark(arm).in_language(language)) if note]
        row = [escaped(title(arm["name"]).in_language(language) + (f" ({'; '.join(notes)})" if notes else ""))]
        row += [escaped(cell(task, arm, length).words.in_language(language)) for length in task["lengths"]]
        row += [window(task, arm).en] if has_window(task) else []
        rows.append(row + ([factor(arm["factor"], top(task))] if longer else []))
    return grid(head + ([phrase("factor").in_language(language)] if longer else []), rows)


def _changes(task: Task, language: Language) -> str:
    rows = []
    for changed in task["after"]:
        means = ((changed["cells"].get(str(length)) or {}).get("mean") for length in task["lengths"])
        numbers = [phrase("missing").in_language(language) if mean is None else value(task, mean) for mean in means]
        numbers += [window(task, changed).en] if has_window(task) else []
        rows.append([change_name(changed["change"]).in_language(language), *numbers])
    cut = [phrase("last window").in_language(language)] * has_window(task)
    return grid([phrase("change").in_language(language), *map(str, task["lengths"]), *cut], rows)


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
    lengths_listed = ", ".join(map(str, task["lengths"]))
    return say("{lengths}; trained {length}", lengths=lengths_listed, length=task["length"])


def escaped(text: str) -> str:
    """The text with characters escaped that mean something in Markdown or HTML."""
    flat = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join("\\" + letter if letter in r"\`*_[]|" else letter for letter in flat)
