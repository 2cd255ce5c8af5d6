"""Several models in one table: a column for each, as many beside each other as the terminal is wide for, at most four."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from posenc.configs.say import say
from posenc.support.languages import Language, Words
from posenc.terminal.wrapped import Wrapped

ABREAST, NARROWEST = 4, 16  # columns beside each other, and the width of one in characters
ROWS = {
    "family": say("family"),
    "layers": say("layers"),
    "heads": say("heads"),
    "encoding": say("encoding"),
    "base": say("base"),
    "scaling": say("scaling"),
    "windows": say("windows"),
    "trained": say("trained"),
    "usable": say("usable"),
    "fails": say("first failure"),
    "why": say("because"),
    "findings": say("findings"),
}


def show(console: Console, reports: Mapping[str, dict[str, Any]], language: Language) -> None:
    """The table of all reports, by the path of each."""
    columns = [(path, column(data, language)) for path, data in reports.items()]
    fitting = max(1, min(ABREAST, (console.width - NARROWEST) // NARROWEST))
    abreast = math.ceil(len(columns) / math.ceil(len(columns) / fitting))  # five are three and two
    for start in range(0, len(columns), abreast):
        if start:
            console.print()
        table = Table(box=None, pad_edge=False, padding=(0, 1))
        table.add_column(style="dim", no_wrap=True)
        for path, _ in columns[start : start + abreast]:
            table.add_column(Wrapped(_name(path), "bold"), ratio=1)
        for row, label in ROWS.items():
            table.add_row(
                label.in_language(language), *(Wrapped(cells[row]) for _, cells in columns[start : start + abreast])
            )
        console.print(table)


def column(data: dict[str, Any], language: Language) -> dict[str, str]:
    """One model's cells: those of the part that its verdict is about."""
    verdict = data["verdict"]
    part = next((candidate for candidate in data["parts"] if candidate["part"] == verdict["part"]), None)
    if part is None:
        return dict.fromkeys(ROWS, "–") | {"family": data["family"]}
    uses = [*part["input"], *(use for group in part["groups"] for use in group["encodings"])]
    bases = [f"{use['rotation']['base']:,.10g}" for use in uses if "rotation" in use]
    windows = {group["window"] or group["chunk"]: None for group in part["groups"] if group["window"] or group["chunk"]}
    grades = [remark["grade"] for remark in data["remarks"]]
    counted = {grade: grades.count(grade) for grade in ("error", "warning", "note") if grade in grades}
    none = say("none").in_language(language)
    return {
        "family": data["family"],
        "layers": _layers(part),
        "heads": f"{part['n_heads']} × {part['d_head']}" if part["n_heads"] and part["d_head"] else "–",
        "encoding": ", ".join(dict.fromkeys(use["encoding"] for use in uses)) or none,
        "base": ", ".join(dict.fromkeys(bases)) or "–",
        "scaling": verdict["by"] or none,
        "windows": ", ".join(f"{window:,}" for window in windows) or none,
        "trained": _length(verdict["trained"]),
        "usable": _length(verdict["usable"]) + (f" / {verdict['or_only']:,}" if verdict.get("or_only") else ""),
        "fails": none if verdict["fails"] is None else f"{verdict['fails']:,}",
        "why": verdict["why"],
        "findings": ", ".join(counted_words(grade, count).in_language(language) for grade, count in counted.items())
        or none,
    }


GRADES = {"error": say("error"), "warning": say("warning"), "note": say("note")}


def counted_words(grade: str, count: int) -> Words:
    noun = GRADES[grade]
    return (
        say("{count} {grade}", count=count, grade=noun) if count == 1 else say("{count} {grade}s", count=count, grade=noun)
    )


def _layers(part: dict[str, Any]) -> str:
    attending = sum(len(group["layers"]) for group in part["groups"] if group["attends"])
    return str(part["n_layers"]) if attending == part["n_layers"] else f"{part['n_layers']} ({attending} attend)"


def _length(length: int | None) -> str:
    return "–" if length is None else f"{length:,}"


def _name(path: str) -> str:
    """The folder of a config.json, or the file."""
    location = Path(path)
    return location.parent.name if location.name == "config.json" and location.parent.name else location.name or path
