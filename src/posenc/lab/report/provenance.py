"""How the numbers were made, which are missing, and how to repeat them."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Any

from posenc.lab.experiment import SPREAD
from posenc.lab.experiment.arm import RANDOMIZED, tuned_as
from posenc.lab.findings.row_tokens import longest_bucket, row_tokens
from posenc.lab.findings.titles import main_task, title
from posenc.lab.findings.wording import because, seeds_to_rank
from posenc.lab.report.cells import Findings, Task, arms_of, is_bits, reason, unit, value
from posenc.lab.report.html import span, table, tag
from posenc.lab.report.words import listed, of, phrase, same
from posenc.lab.run.repeat import TOLERANCE
from posenc.lab.say import say
from posenc.support.languages import Words, joined


def how(findings: Findings) -> str:
    rows = "".join(f'<tr><th scope="row">{span(phrase(name))}</th><td>{value}</td></tr>' for name, value in facts(findings))
    content = (
        tag("p", phrase("how text")) + tag("p", repeating(findings)) + f'<table class="how"><tbody>{rows}</tbody></table>'
    )
    content += f'<ul class="small">{"".join(tag("li", words) for words in limits(findings))}</ul>'
    content += tag("h3", phrase("tasks")) + _tasks(findings)
    return content + tag("h3", phrase("lost")) + _lost(findings)


def repeating(findings: Findings) -> Words:
    """The commands that train one model again, and those that are missing."""
    task = main_task(findings)
    return phrase("how repeat", task=task["name"], arm=task["arms"][0]["name"], seed=findings["seeds"][0], **TOLERANCE)


def facts(findings: Findings) -> list[tuple[str, str]]:
    """The rows of the table: the key of a label, and HTML."""
    trials = findings["trials"]
    trials_words = phrase("how trials text", found=trials["found"], expected=trials["expected"], failed=trials["failed"])
    seeds = ", ".join(map(str, findings["seeds"]))
    return [
        ("how command", f"<code>{html.escape(findings['command'])}</code>"),
        ("how trials", span(trials_words)),
        ("how seeds", f"{seeds} ({span(seeds_to_rank(findings))})"),
        ("how model", _pairs(findings["size"])),
        ("how text used", _text(findings["text"])),
        ("how surroundings", _pairs({"posenc": findings["posenc"], **findings["provenance"]})),
        ("how machine", _pairs(findings["machine"])),
    ]


def text_used(findings: Findings) -> Words:
    """Which text was read, how much of it, and what is scored. Empty where the tasks generate their own rows."""
    if (text := findings["text"]) is None:
        return Words("")
    read, kept = text["train"], text["held_out"]
    counts = {"documents": read["documents"], "bytes": read["bytes"], "others": kept["documents"], "more": kept["bytes"]}
    told = [phrase("text used", source=same(text["source"]), **{name: f"{count:,}" for name, count in counts.items()})]
    told += [of(note) for note in text.get("notes") or ()]
    for task in findings["tasks"]:
        if (scored := task["scored"])["targets"]:
            told.append(phrase("text scored", task=of(task["title"]), rows=scored["rows"], targets=scored["targets"]))
    parts = joined(told, "; ", "；")
    return say("{sentence}.", sentence=parts)


def limits(findings: Findings) -> Iterator[Words]:
    """The limitations of these numbers."""
    task, names = main_task(findings), arms_of(findings)
    trained, longest = row_tokens(task, task["length"]), row_tokens(task, max(task["lengths"]))
    numbers = {"trained": trained, "last": longest - 1, "drawn": SPREAD * longest - 1, "task": of(task["title"])}
    yield phrase("limit size")
    yield phrase("limit gate")
    if any(name.endswith(RANDOMIZED) for name in names):
        drawn = any(arm["contiguous"] for arm in task["arms"])
        yield phrase("limit random" if drawn else "limit random in training", **numbers)
    if "learned" in names:
        yield phrase("limit learned", **numbers)
    if "t5" in names and (reach := longest_bucket(task)) > trained:
        yield phrase("limit t5", reach=reach, **numbers)
    for task_read in findings["tasks"]:
        if task_read["settings"]:
            rows = listed([_set(name, settings) for name, settings in task_read["settings"].items()])
            yield phrase("limit settings", task=of(task_read["title"]), rows=rows)


def _set(name: str, settings: Mapping[str, float]) -> Words:
    """FIRE (first_length 32)."""
    numbers = joined((Words(f"{setting} {number:g}") for setting, number in settings.items()), ", ", "，")
    return say("{name} ({details})", name=title(name), details=numbers)


def _text(text: Mapping[str, Any] | None) -> str:
    if text is None:
        return span(phrase("how no text"))
    notes = "".join(f"<br>{span(of(note))}" for note in text.get("notes") or ())
    return _pairs({name: value for name, value in text.items() if name != "notes"}) + notes


def _pairs(values: Mapping[str, Any] | None) -> str:
    """A mapping as text: "name value, name value"; a nested mapping stands in brackets."""

    def written(value: Any) -> str:
        if isinstance(value, Mapping):
            return f"({', '.join(f'{html.escape(str(name))} {written(inner)}' for name, inner in value.items())})"
        text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and value > 9999 else str(value)
        return f"<code>{html.escape(text)}</code>" if len(text) > 31 else html.escape(text)

    return ", ".join(f"{html.escape(str(name))} {written(value)}" for name, value in (values or {}).items())


def training(task: Task) -> Words:
    steps, tokens = task["training"].get("steps"), task["trained_tokens"]
    counted = "–" if tokens is None else f"{tokens:,.0f}"
    return phrase("tokens", tokens=counted) if steps is None else phrase("steps", steps=steps, tokens=counted)


def rate(task: Task) -> Words:
    """The learning rate of all encodings, or the rates from which it was chosen."""
    chosen = {arm["name"]: arm["learning_rate"] for arm in task["arms"] if arm["learning_rate"] is not None}
    if len(task["learning_rates"]) > 1:
        return joined(_tuned(task, chosen), "; ", "；")
    rates = sorted(set(chosen.values()))
    return phrase("rate same", rate=", ".join(f"{rate:g}" for rate in rates) or "–")


def _tuned(task: Task, chosen: Mapping[str, float]) -> Iterator[Words]:
    """What was tried, and the rate that was chosen for each encoding: apart for encodings that tried own scales too."""
    scales, joint = task["own_scales"], task["joint_scales"]
    for count in sorted({scales.get(name, 0) for name in chosen if name not in joint}):
        names = [name for name in chosen if scales.get(name, 0) == count and name not in joint]
        names = [name for name in names if tuned_as(name, chosen) == name]
        rows = listed([say("{name} {chosen:g}", name=title(name), chosen=chosen[name]) for name in names])
        rates = ", ".join(f"{rate:g}" for rate in task["learning_rates"][: len(task["learning_rates"]) - count])
        first = f"{task['training']['learning_rate']:g}" if count else ""
        yield phrase("rate and scale" if count else "rate tuned", rates=rates, count=count, first=first, rows=rows)
    for name in (name for name in chosen if name in joint):
        rates = ", ".join(
            f"{rate:g}" for rate in task["learning_rates"][: len(task["learning_rates"]) // (joint[name] + 1)]
        )
        yield phrase("rate with scale", name=title(name), rates=rates, count=joint[name], rate=f"{chosen[name]:g}")
    for name in (name for name in chosen if tuned_as(name, chosen) != name):
        yield phrase("rate as", name=title(name), other=title(tuned_as(name, chosen)), rate=f"{chosen[name]:g}")


def gate(task: Task) -> Words:
    rule, limit = of(task["gate"]["rule"]), task["gate"]["limit"]
    if limit is None or not is_bits(task):  # for exact match the rule already states the limit
        return rule
    limit_words = phrase("gate limit", limit=value(task, limit), unit=unit(task))
    return say("{rule} ({limit})", rule=rule, limit=limit_words)


def chance(task: Task) -> str:
    """The values by length; one number if they are all equal."""
    chances = {int(length): value(task, chance_at) for length, chance_at in task["chance"].items()}
    if len(set(chances.values())) == 1:
        return next(iter(chances.values()))
    return "; ".join(f"{length}: {chances[length]}" for length in sorted(chances))


def lengths(task: Task) -> str:
    """The lengths, the trained one in brackets."""
    return " ".join(f"[{length}]" if length == task["length"] else str(length) for length in task["lengths"])


def baseline(task: Task) -> str:
    return "–" if task["baseline"] is None else value(task, task["baseline"])


def _tasks(findings: Findings) -> str:
    head = [span(phrase(name)) for name in ("task", "lengths", "trained with", "rate", "gate", "chance", "baseline")]
    body = [
        [
            span(of(task["title"])),
            f"<td>{lengths(task)}<small>{span(of(task['unit']))}</small></td>",
            *(f"<td>{span(words)}</td>" for words in (training(task), rate(task), gate(task))),
            f"<td>{chance(task)}<small>{span(unit(task))}</small></td>",
            f"<td>{baseline(task)}</td>",
        ]
        for task in findings["tasks"]
    ]
    return table("worded", head, body)


def absent(why: str) -> Words:
    """Why a trial is missing."""
    tail = phrase("trained far")
    without_tail = why.removesuffix(tail.en)
    words = reason(without_tail) if without_tail.startswith("failed: ") else because(without_tail)
    return joined((words, tail), "", "") if without_tail != why else words


def lost(findings: Findings) -> list[tuple[Words, Words, str, Words]]:
    """Task, encoding, seed and reason of every trial that is missing or failed."""
    titles = {task["name"]: of(task["title"]) for task in findings["tasks"]}
    return [
        (titles.get(row["task"], same(row["task"])), title(row["arm"]), str(row["seed"]), absent(row["why"]))
        for row in findings["missing"]
    ]


def _lost(findings: Findings) -> str:
    rows = lost(findings)
    if not rows:
        return tag("p", phrase("nothing lost"))
    head = [span(phrase(name)) for name in ("task", "encoding", "seed", "why")]
    body = [
        [span(task), f"<td>{span(arm)}</td>", f"<td>{seed}</td>", f"<td>{span(why)}</td>"] for task, arm, seed, why in rows
    ]
    return table("worded", head, body)
