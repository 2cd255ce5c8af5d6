"""What tuning changed: a row for each encoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from posenc.lab.findings.titles import title
from posenc.lab.report.cells import Findings, Task, value
from posenc.lab.report.document import Block, tabled
from posenc.lab.report.words import of, phrase, same
from posenc.support.languages import Words, joined

HEAD = ("encoding", "chosen", "untuned", "tuned", "rank change")


def blocks(findings: Findings) -> Iterator[Block]:
    for task in findings["tasks"]:
        if tuned := findings.get("tuning", {}).get(task["name"]):
            yield from tabled(_introduction(task, tuned), list(map(phrase, HEAD)), _rows(task, tuned))


def _introduction(task: Task, tuned: Mapping[str, Any]) -> Words:
    """How it was tuned, how many ranks changed, and how many encodings are not finished."""
    moves = [abs(row["rank_tuned"] - row["rank_untuned"]) for row in tuned["rows"]]
    changed = phrase("tuning moved", moved=sum(map(bool, moves)), count=len(moves), most=f"{max(moves):g}")
    parts = [
        phrase("tuning text", task=of(task["title"]), tries=tuned["tries"], rate=f"{tuned['learning_rate']:g}"),
        changed if any(moves) else phrase("tuning kept"),
    ]
    if tuned["steps"] < tuned["full_steps"]:
        parts.append(phrase("tuning steps", steps=tuned["steps"], full=tuned["full_steps"]))
    if any(entry["options"] for row in tuned["rows"] for entry in row["tried"]):
        parts.append(phrase("tuning scales", rate=f"{tuned['learning_rate']:g}"))
    if any(row["edge"] for row in tuned["rows"]):
        parts.append(phrase("tuning edge"))
    if tuned["waiting"]:
        parts.append(phrase("tuning waiting", count=tuned["waiting"]))
    return joined(parts, " ", "")


def _rows(task: Task, tuned: Mapping[str, Any]) -> list[list[Words]]:
    """One row for each encoding, the best after tuning first."""
    return [
        [
            title(row["name"]),
            phrase("at edge", setting=setting(row["chosen"])) if row["edge"] else same(setting(row["chosen"])),
            *(same(value(task, row[when])) for when in ("untuned", "tuned")),
            same(f"{row['rank_untuned']:g} → {row['rank_tuned']:g}"),
        ]
        for row in tuned["rows"]
    ]


def setting(chosen: Mapping[str, Any]) -> str:
    """0.004, base 500."""
    return ", ".join([f"{chosen['learning_rate']:g}", *(f"{name} {number:g}" for name, number in chosen["options"])])
