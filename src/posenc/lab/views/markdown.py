"""The report as Markdown in one language: the sentences, tables and numbers of the page, with pictures as files."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.bilingual import Language, Words
from posenc.lab.findings.titles import main_task, title
from posenc.lab.views import charts
from posenc.lab.views.best_change import best_change
from posenc.lab.views.cells import (
    Findings,
    Task,
    cell,
    factor,
    fold,
    home,
    in_order,
    top,
    value,
)
from posenc.lab.views.pictures import ENDING, curves_drawn
from posenc.lab.views.provenance import gate, lost, rate, training
from posenc.lab.views.summary_table import stars
from posenc.lab.views.words import of, say


def markdown(findings: Findings, language: Language) -> str:
    def read(words: Words) -> str:
        return escaped(words.read(language))

    main, ending = main_task(findings), ENDING[language]
    parts = [f"# {read(say('title'))}", read(of(findings["about"])), f"`{findings['command'].replace('`', '')}`"]
    if findings["exploratory"]:
        parts.append(f"*{read(say('exploratory'))}*")
    parts.append(f"## {read(say('answer'))}")
    needs = [{part: read(of(words)) for part, words in need.items()} for need in findings["needs"]]
    parts.append("\n".join(f"- {need['need']}: **{need['pick']}** ({need['why']})" for need in needs))
    parts += [read(of(sentence)) for sentence in findings["summary"]]
    made = stars(findings)
    head = [read(say("encoding")), *(read(name) + (f" ({read(small)})" if small.en else "") for name, small in made.head)]
    rows = [
        [read(title(name)), *(read(one.words) + (f" ({read(one.small)})" if one.small.en else "") for one in entries)]
        for name, entries in made.rows
    ]
    parts += [
        f"## {read(say('stars'))}",
        read(say("stars text", task=of(main["title"]), home=home(main))),
        grid(head, rows),
    ]
    parts += [f"## {read(say('heat'))}", read(say("curves text"))]
    for task in findings["tasks"]:
        called = read(of(task["title"]))
        parts += [f"### {called}", f"![{called}](curves-{task['name']}{ending}.svg)" * bool(curves_drawn(findings, task))]
        parts.append(_cells(task, language))
    for task in findings["tasks"]:
        if task["after"]:
            parts += [
                f"## {read(say('after'))}: {read(of(task['title']))}",
                read(say("after text")),
                read(best_change(task)),
            ]
            parts.append(_changes(task, language))
    if drawn := [over for over in ("factor", "area") if charts.pareto(findings, over)]:
        described = read(say("pareto"))
        parts += [f"## {described}", *(f"![{described}](pareto-{over}{ending}.svg)" for over in drawn)]
    if findings["published"]:
        head = [read(say(name)) for name in ("claim", "ours", "verdict", "why", "source")]
        rows = [
            [
                read(of(row["claim"])),
                read(of(row["ours"])),
                read(say(row["verdict"])),
                read(of(row["why"])),
                escaped(row["source"]),
            ]
            for row in findings["published"]
        ]
        parts += [f"## {read(say('published'))}", grid(head, rows)]
    parts += [f"## {read(say('how'))}", read(say("how text")), _tasks(findings, language), f"### {read(say('lost'))}"]
    rows = [[read(task), read(arm), seed, read(why)] for task, arm, seed, why in lost(findings)]
    parts.append(
        grid([read(say(name)) for name in ("task", "encoding", "seed", "why")], rows) if rows else read(say("nothing lost"))
    )
    known = {"posenc": findings["posenc"], **findings["provenance"], **findings["machine"]}
    parts.append("\n".join(f"- {escaped(str(name))}: {escaped(str(found))}" for name, found in known.items()))
    return "\n\n".join(part for part in parts if part) + "\n"


def _cells(task: Task, language: Language) -> str:
    longer = top(task) > 1
    head = [say("encoding").read(language), *(f"{length} ({fold(length / task['length'])})" for length in task["lengths"])]
    rows = []
    for arm in in_order(task):
        row = [escaped(title(arm["name"]).read(language))]
        for length in task["lengths"]:
            found = cell(task, arm, length)
            said = found.words.read(language)
            if found.number is not None and found.kind == "not learnt":
                said += f" ({say('not learnt short').read(language)})"
            row.append(escaped(said))
        rows.append(row + ([factor(arm["factor"], top(task))] if longer else []))
    return grid(head + ([say("factor").read(language)] if longer else []), rows)


def _changes(task: Task, language: Language) -> str:
    rows = []
    for changed in task["after"]:
        means = ((changed["cells"].get(str(length)) or {}).get("mean") for length in task["lengths"])
        numbers = [say("missing").read(language) if mean is None else value(task, mean) for mean in means]
        rows.append([say(f"change {changed['change']}").read(language), *numbers])
    return grid([say("change").read(language), *map(str, task["lengths"])], rows)


def _tasks(findings: Findings, language: Language) -> str:
    head = [say(name).read(language) for name in ("task", "lengths", "trained with", "rate", "gate")]
    rows = [
        [
            escaped(words.read(language))
            for words in (of(task["title"]), lengths(task), training(task), rate(task), gate(task))
        ]
        for task in findings["tasks"]
    ]
    return grid(head, rows)


def lengths(task: Task) -> Words:
    said = ", ".join(map(str, task["lengths"]))
    return Words(f"{said}; trained {task['length']}", f"{said}；训练 {task['length']}")


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def escaped(text: str) -> str:
    """The text with characters escaped that mean something in Markdown or HTML."""
    flat = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join("\\" + letter if letter in r"\`*_[]|" else letter for letter in flat)
