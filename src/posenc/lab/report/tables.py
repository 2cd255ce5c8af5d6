"""The findings as CSV, every number in full.

cells.csv       long: one line for each task, encoding, setting, length and seed; a cell without a number states the reason
gained.csv      long: what each encoding gains beyond the trained length, with intervals; only where it was scored
summary.csv     one line for each task and encoding: the measured table
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from posenc.lab.report.cells import Findings, gains, home, long_form
from posenc.lab.report.summary_table import TIMES

CELLS = ("task", "measure", "encoding", "setting", "mode", "length", "seed", "value", "state")
GAINED = (
    *("task", "encoding", "setting", "length", "seeds", "gained", "low", "high"),
    *("share", "share_low", "share_high"),
)
SUMMARY = (
    "task",
    "measure",
    "encoding",
    "learnt",
    "converged",
    "state",
    "length",
    "quality",
    "quality_low",
    "quality_high",
    "factor",
    "factor_low",
    "factor_high",
    "factor_censored",
    "area",
    "rank",
    "behaviour",
    "learning_rate",
    "seconds",
    *(f"{kind}_{part}" for kind in TIMES for part in ("median", "low", "high")),
    "parameters",
    "table_bytes_per_token",
)


def tables(findings: Findings) -> dict[str, str]:
    found = {"cells.csv": _csv(CELLS, long_form(findings)), "summary.csv": _csv(SUMMARY, _summary(findings))}
    if gained := list(gains(findings)):
        found["gained.csv"] = _csv(GAINED, gained)
    return found


def _summary(findings: Findings) -> Iterator[dict[str, Any]]:
    for task in findings["tasks"]:
        for arm in task["arms"]:
            data = arm["cells"].get(home(task)) or {}
            low, high = data.get("interval") or (None, None)
            row = {
                "task": task["name"],
                "measure": task["measure"],
                "encoding": arm["name"],
                "learnt": arm["learnt"],
                "converged": arm["converged"],
                "state": arm["state"],
                "length": task["length"],
                "quality": data.get("mean"),
                "quality_low": low,
                "quality_high": high,
                "area": arm["area"],
                "rank": arm["rank"],
                "behaviour": arm["behaviour"],
                "learning_rate": arm["learning_rate"],
                "seconds": arm["seconds"],
            }
            for part in ("value", "low", "high", "censored"):
                row["factor" if part == "value" else f"factor_{part}"] = (arm["factor"] or {}).get(part)
            yield row | _cost(findings, arm["name"])


def _cost(findings: Findings, name: str) -> dict[str, Any]:
    cost = ((findings["cost"] or {}).get("rows") or {}).get(name) or {}
    row = {f"{kind}_{part}": value for kind in TIMES for part, value in (cost.get(kind) or {}).items()}
    return row | {part: cost.get(part) for part in ("parameters", "table_bytes_per_token")}


def _csv(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A value as text: a number as Python's repr, which reads back unchanged; None as an empty cell."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(columns), lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
