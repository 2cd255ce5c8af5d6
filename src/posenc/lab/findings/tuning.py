"""What tuning changed: every setting that was tried, and the ranks of encodings before and after the choice.

    trials that choose a setting ─► score of each try at the trained length ─┬─ rank at the untuned setting
                                                                             └─ rank at the best setting

The untuned setting is that of the task: its learning rate, and nothing of the encoding's own changed. All tries have one
seed and the same number of steps, so ranks are those of these shorter models and not of the results. Ties share their
average. Where no row is right yet, bits decide among the tries of an encoding, as in the sweep.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scipy.stats import rankdata

from posenc.lab import tasks
from posenc.lab.findings.criteria import Measure, worse
from posenc.lab.records.mean_score import Order, order_of

if TYPE_CHECKING:
    from posenc.lab.records.results import Folder

Json = dict[str, Any]


def tuning(folder: Folder, manifest: Mapping[str, Any]) -> dict[str, Json]:
    """By task, of the tasks that were tuned; a task whose untuned setting is not among the tries is left out."""
    tried: dict[str, dict[str, list[tuple[Order, Json]]]] = {}
    for key in manifest["tuning"]:
        if (record := folder.get(key)) is not None:
            trial, order = record.about["trial"], order_of(record)
            entry = {
                "learning_rate": trial["training"]["learning_rate"],
                "options": [list(option) for option in trial.get("options", ())],
                "score": abs(order[0]) if math.isfinite(order[0]) else None,
            }
            tried.setdefault(trial["task"]["name"], {}).setdefault(trial["encoding"], []).append((order, entry))
    plans = {plan["task"]["name"]: plan for plan in manifest["experiment"]["tasks"]}
    tuned = {
        name: ranked(
            tasks.class_of(plans[name]["task"]).measure,
            plans[name],
            {arm: best_first(tries) for arm, tries in arms.items()},
        )
        for name, arms in tried.items()
    }
    return {name: task for name, task in tuned.items() if task["rows"]}


def best_first(tries: Iterable[tuple[Order, Json]]) -> list[Json]:
    """Of equal ones, the smaller learning rate first."""
    return [entry for _, entry in sorted(tries, key=lambda pair: (pair[0], pair[1]["learning_rate"], pair[1]["options"]))]


def ranked(measure: Measure, plan: Mapping[str, Any], tried: Mapping[str, Sequence[Json]]) -> Json:
    """The encodings that have a finite score at the untuned setting and every try; the best after tuning first.

    `tried` has the tries of each encoding, the best first.
    """
    rate, tries = plan["training"]["learning_rate"], len(plan["learning_rates"])
    rows = []
    for name, entries in tried.items():
        before = [entry for entry in entries if entry["learning_rate"] == rate and not entry["options"]]
        if len(entries) < tries or not before or before[0]["score"] is None:
            continue
        best = entries[0]
        row = {"name": name, "untuned": before[0]["score"], "tuned": best["score"], "chosen": best, "tried": entries}
        rows.append(row | {"edge": at_edge(best, entries)})
    for when in ("untuned", "tuned"):
        ranks = rankdata([worse(measure, row[when]) for row in rows], method="average") if rows else []
        for row, rank in zip(rows, ranks, strict=True):
            row[f"rank_{when}"] = float(rank)
    rows.sort(key=lambda row: row["rank_tuned"])
    full = plan["training"]["steps"]
    steps = {"steps": plan.get("tuning_steps") or full, "full_steps": full}
    return {"learning_rate": rate, "tries": tries, **steps, "rows": rows, "waiting": len(tried) - len(rows)}


def at_edge(chosen: Json, tried: Sequence[Json]) -> bool:
    """Whether no smaller or no larger value was tried than the chosen one: of its own scale, otherwise of the rate."""
    if chosen["options"]:
        ((name, value),) = chosen["options"]
        values = [number for entry in tried for scale, number in entry["options"] if scale == name]
    else:
        value, values = chosen["learning_rate"], [entry["learning_rate"] for entry in tried if not entry["options"]]
    return len(values) > 1 and value in (min(values), max(values))
