"""What the workers of `posenc compare` do: a trial of the lab told as plain JSON, and how long one would take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from posenc.lab.experiment.arm import Arm
from posenc.lab.experiment.corpus import Corpus
from posenc.lab.experiment.recipe import MANY, Recipe
from posenc.lab.records.record import SAME_TARGETS, Record
from posenc.lab.tasks.language_model import LanguageModel
from posenc.lab.trial.scoring import NO_NUMBER
from posenc.lab.trial.training import Run, run_trial

Shared = tuple[Recipe, Corpus]
Report = Callable[[float], None]
FEW = 8  # windows


def trial(shared: Shared, arm: Arm, seed: int, steps: int, report: Report) -> dict[str, Any]:
    """Everything that depends on configuration and seed alone, and apart from it the seconds it took."""
    recipe, text = shared
    record = run_trial(recipe.trial(arm, seed, steps), text, report=report)
    assert record is not None  # one process
    return {"result": told(record, recipe.task), "seconds": record.about["seconds"]}


def told(record: Record, task: LanguageModel) -> dict[str, Any]:
    """`bits` are means over all targets: every byte weighs the same. `by_position` are the bits at the longest context,
    over stretches of `targets` bytes from the beginning of the window. A length that the encoding cannot represent has no
    bits; `cannot` says why.
    """
    about, rows = record.about, record.rows.to_pylist()
    of = {kind: [row for row in rows if row["kind"] == kind] for kind in ("curve", "bits", "position")}
    result = {
        "parameters": about["encoding_parameters"],
        "failed": about["failed"],
        "curve": [[row["step"], row["value"]] for row in of["curve"]],
    }
    if about["failed"] is not None:
        return result
    cannot = about["cannot"]
    counted = [row for row in of["bits"] if row["mode"] == SAME_TARGETS]
    far = [row["value"] for row in of["position"] if row["length"] == task.lengths[-1]]
    if NO_NUMBER in cannot.values() or not (far or str(task.lengths[-1]) in cannot):
        return {**result, "failed": NO_NUMBER}
    return {
        **result,
        "bits": {str(length): mean([row for row in counted if row["length"] == length]) for length in task.lengths},
        "by_position": [sum(far[n : n + task.targets]) / task.targets for n in range(0, len(far), task.targets)] or None,
        "cannot": next(iter(cannot.values()), None),
    }


def mean(rows: list[dict[str, Any]]) -> float | None:
    """Weighted; None of nothing."""
    total = sum(row["weight"] for row in rows)
    return sum(row["value"] * row["weight"] for row in rows) / total if rows else None


def calibrate(shared: Shared, arm: Arm, report: Report) -> tuple[float, float]:
    """Seconds of one training step and of scoring, while the other workers are as busy as they will be."""
    recipe, text = shared
    steps, times, begun = Run(recipe.trial(arm, 0, MANY), text).losses(), list[float](), time.perf_counter()
    while len(times) < 8 or (time.perf_counter() - begun < 0.4 and len(times) < 60):
        start = time.perf_counter()
        next(steps)
        times.append(time.perf_counter() - start)
    scoring(recipe, text, arm, 1)
    seconds, windows = scoring(recipe, text, arm, FEW)
    whole = len(recipe.task.scored(recipe.task.length, text).tokens)
    return statistics.median(times[3:]), seconds * whole / windows


def scoring(recipe: Recipe, text: Corpus, arm: Arm, windows: int) -> tuple[float, int]:
    """Seconds for up to `windows` windows, and how many there were."""
    few = recipe.model_copy(update={"task": recipe.task.model_copy(update={"held_out": windows})})
    run = Run(few.trial(arm, 0, 1), text)
    begun = time.perf_counter()
    run.score()
    return time.perf_counter() - begun, len(few.task.scored(few.task.length, text).tokens)
