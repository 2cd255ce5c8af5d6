"""How the numbers were made, which are missing, and how to repeat them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from posenc.lab.experiment import SPREAD
from posenc.lab.experiment.arm import RANDOMIZED, tuned_as
from posenc.lab.findings.criteria import TOLERANCE
from posenc.lab.findings.row_tokens import longest_bucket, row_tokens
from posenc.lab.findings.titles import main_task, title
from posenc.lab.findings.wording import because, seeds_to_rank
from posenc.lab.report.cells import Findings, Task, arms_of, is_bits, reason, unit, value
from posenc.lab.report.document import Article, Block, Cell, Items, Table, Text, cells
from posenc.lab.report.words import listed, of, phrase, same
from posenc.lab.say import say
from posenc.support.languages import Words, joined


def blocks(findings: Findings) -> Iterator[Block]:
    yield Text(phrase("how text"))
    yield Text(repeating(findings))
    rows = [[Cell(phrase("how command")), Cell(same(findings["command"]), kind="code")]]
    yield Table((), rows + [cells((phrase(name), words)) for name, words in facts(findings)], "how")
    yield Items(list(limits(findings)), "small")
    yield Article(phrase("tasks"), [_tasks(findings)], "")
    missing = [cells(row) for row in lost(findings)]
    head = cells(map(phrase, ("task", "encoding", "seed", "why")))
    yield Article(phrase("lost"), [Table(head, missing, "worded") if missing else Text(phrase("nothing lost"))], "")


def repeating(findings: Findings) -> Words:
    """The commands that train one model again, and those that are missing."""
    task = main_task(findings)
    return phrase("how repeat", task=task["name"], arm=task["arms"][0]["name"], seed=findings["seeds"][0], **TOLERANCE)


def facts(findings: Findings) -> list[tuple[str, Words]]:
    """The rows of the table: the key of a label, and what stands beside it."""
    trials, text, seeds = findings["trials"], findings["text"], ", ".join(map(str, findings["seeds"]))
    read = text_used(findings) if text else phrase("how no text")
    kept = {name: value for name, value in (text or {}).items() if name not in ("source", "notes")}
    return [
        ("how trials", phrase("how trials text", **{name: trials[name] for name in ("found", "expected", "failed")})),
        ("how seeds", say("{name} ({details})", name=seeds, details=seeds_to_rank(findings))),
        ("how model", _pairs(findings["size"])),
        ("how text used", joined([read, _pairs(kept)], " ", "")),
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


def _pairs(values: Mapping[str, Any]) -> Words:
    """A mapping as text: "name value, name value"; a nested mapping stands in brackets."""

    def written(value: Any) -> str:
        if isinstance(value, Mapping):
            return f"({_pairs(value).en})"
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and value > 9999 else str(value)

    return same(", ".join(f"{name} {written(value)}" for name, value in values.items()))


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


def _tasks(findings: Findings) -> Table:
    head = cells(map(phrase, ("task", "lengths", "trained with", "rate", "gate", "chance", "baseline")))
    rows = [
        [
            Cell(of(task["title"])),
            Cell(same(lengths(task)), of(task["unit"])),
            *cells((training(task), rate(task), gate(task))),
            Cell(same(chance(task)), unit(task)),
            Cell(same(baseline(task))),
        ]
        for task in findings["tasks"]
    ]
    return Table(head, rows, "worded")


def absent(why: str) -> Words:
    """Why a trial is missing."""
    tail = phrase("trained far")
    without_tail = why.removesuffix(tail.en)
    words = reason(without_tail) if without_tail.startswith("failed: ") else because(without_tail)
    return joined((words, tail), "", "") if without_tail != why else words


def lost(findings: Findings) -> list[tuple[Words, ...]]:
    """Task, encoding, seed and reason of every trial that is missing or failed."""
    titles = {task["name"]: of(task["title"]) for task in findings["tasks"]}
    return [
        (titles.get(row["task"], same(row["task"])), title(row["arm"]), same(row["seed"]), absent(row["why"]))
        for row in findings["missing"]
    ]
