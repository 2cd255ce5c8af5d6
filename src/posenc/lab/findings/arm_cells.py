"""The scores of one encoding on one task: a cell per length, with the mean over seeds or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from posenc.lab import tasks
from posenc.lab.experiment.arm import DROPPED, Arm, encoding_of
from posenc.lab.findings import criteria, statistics
from posenc.lab.findings.criteria import MISSING, Measure
from posenc.lab.findings.queries import Json, Results
from posenc.lab.records import learning_curve
from posenc.lab.records.record import LAST_WINDOW, NON_OVERLAPPING, RANDOM_POSITIONS, SAME_TARGETS
from posenc.lab.trial.scoring import NO_NUMBER


class TaskResults:
    """The results of one task of an experiment."""

    def __init__(
        self, plan: Json, words: Sequence[str], results: Results, crashed: Mapping[tuple[str, str, int, bool], str]
    ) -> None:
        self.plan, self.words, self.results = plan, words, results
        self.name: str = plan["task"]["name"]
        self.task = tasks.class_of(plan["task"])
        self.measure: Measure = self.task.measure
        self.length: int = plan["task"]["length"]
        self.lengths: list[int] = list(plan["task"]["lengths"])
        self._crashed = crashed
        self.from_trained = [length for length in self.lengths if length >= self.length]

    @property
    def tokens(self) -> dict[str, int]:
        """The largest number of tokens in a row, by length."""
        task = tasks.read(self.plan["task"])
        return {str(length): task.tokens(length) for length in self.lengths}

    def trials(self, word: str, oracle: bool = False) -> dict[int, Json]:
        """The trials by seed."""
        wanted = (self.name, word, oracle)
        return {
            seed: about
            for (task, name, seed, at_end), about in self.results.about.items()
            if (task, name, at_end) == wanted
        }

    def mode(self, word: str) -> str:
        """How the encoding is scored: at random positions if its trials draw some, as in training."""
        drawn = any(about["trial"].get("draws") for about in self.trials(word).values())
        return RANDOM_POSITIONS if drawn else SAME_TARGETS

    def slopes(self, word: str) -> dict[str, float]:
        """Bits by which the training loss fell in the last fifth of the last phase of training, by seed."""
        arm, trials = Arm(encoding_of(word), dropped=word.endswith(DROPPED)), self.trials(word)
        starts = {seed: arm.phases(about["trial"]["training"]["steps"])[-1][0] for seed, about in trials.items()}
        curves = _curves(self.results.training_curves[self.name], word)
        slopes = {str(seed): learning_curve.slope(curve, starts[seed]) for seed, curve in curves.items()}
        return {seed: slope for seed, slope in slopes.items() if slope is not None}

    def far_changes(self, word: str) -> dict[str, float]:
        """Bits by which the loss at the longest length rose in the last fifth of the steps, by seed; maybe empty."""
        curves = _curves(self.results.far_curves[self.name], word)
        return {str(seed): curve[-1][1] - curve[0][1] for seed, curve in curves.items()}

    def crash(self, word: str, oracle: bool = False) -> str | None:
        """The reason why a trial of the encoding has no record."""
        wanted = (self.name, word, oracle)
        lines = (why for (task, name, _, at_end), why in self._crashed.items() if (task, name, at_end) == wanted)
        return next(lines, None)

    def any_trial(self) -> Json:
        """What is equal in all trials of the task; empty if none was run."""
        return next((about for word in self.words for about in self.trials(word).values()), {})


def _curves(rows: Iterable[Json], word: str) -> dict[int, list[tuple[int, float]]]:
    """Pairs of step and bits of one encoding, by seed."""
    curves = dict[int, list[tuple[int, float]]]()
    for row in rows:
        if row["encoding"] == word:
            curves.setdefault(row["seed"], []).append((row["step"], row["bits"]))
    return curves


def arm(of: TaskResults, word: str) -> Json:
    """One encoding's part of the findings, before the gate and without conclusions about longer lengths."""
    trials = of.trials(word)
    oracle = cells(of, word, oracle=True, mode=of.mode(word))
    window = last_window(of, word)
    curve, slopes, far_changes = of.results.mean_curve(of.name, word), of.slopes(word), of.far_changes(word)
    mode = of.mode(word)
    scored = cells(of, word, mode=mode)
    return {
        "name": word,
        "learnt": False,
        "slopes": slopes,
        "far_changes": far_changes,
        "converged": converged_arm(of, scored, slopes, far_changes, window),
        "state": _state(of, trials, of.crash(word)),
        "cells": scored,
        "last_window": window,
        "gained": {},
        "contiguous": None if mode == SAME_TARGETS else cells(of, word),
        "non_overlapping": {
            length: {"mean": cell["mean"], "seeds": cell["seeds"], "rows": cell["rows"]}
            for length, cell in cells(of, word, mode=NON_OVERLAPPING).items()
            if cell["state"] is None
        },
        "windows": _windows(of, word) if mode == SAME_TARGETS else {},
        "rise": {},
        "factor": None,
        "area": None,
        "rank": None,
        "behaviour": None,
        "by_position": _by_position(of, word) if mode == SAME_TARGETS else None,
        "curve": curve,
        "oracle": oracle if any(cell["seeds"] for cell in oracle.values()) else None,
        "learning_rate": next((about["trial"]["training"]["learning_rate"] for about in trials.values()), None),
        "options": next((dict(about["trial"].get("options", ())) for about in trials.values()), {}),
        "seconds": mean([about["seconds"]["training"] for about in trials.values()]),
    }


def last_window(of: TaskResults, word: str, change: str = "") -> Json | None:
    """The cell of the model cut to the trained length, on the targets of longer lengths; None where it was not scored."""
    cell: Json = cells(of, word, change=change, mode=LAST_WINDOW)[str(of.length)]
    return None if cell["mean"] is None else cell


def reference(measure: Measure, at_home: Json, window: Json | None) -> Json:
    """What a score at a longer length is compared with: bits with the model itself, cut to the trained length, where that
    was scored; exact match with the score at the trained length, whose rows are others.
    """
    return at_home if window is None or measure == "exact" else window


def converged_arm(
    of: TaskResults, scored: Json, slopes: dict[str, float], far_changes: dict[str, float], window: Json | None = None
) -> bool | None:
    """Whether training had converged, at the trained length and at the longest one, where that has not broken."""
    home, far = reference(of.measure, scored[str(of.length)], window)["mean"], scored[str(of.lengths[-1])]["mean"]
    broken = home is not None and far is not None and criteria.behaviour(of.measure, home, far) == "breaks"
    fell = criteria.converged(list(slopes.values()))
    return fell if broken or criteria.settled(list(far_changes.values())) else False


def cells(of: TaskResults, word: str, *, oracle: bool = False, change: str = "", mode: str = SAME_TARGETS) -> Json:
    """The cells by length."""
    wanted = {"encoding": word, "oracle": oracle, "change": change, "mode": mode, "kind": of.measure}
    rows = [row for row in of.results.cells[of.name] if wanted.items() <= row.items()]
    abouts = of.trials(word, oracle).values()
    if not abouts and (crash := of.crash(word, oracle)) is not None:
        return {str(length): _empty(crash, {}) for length in of.lengths}
    found = {
        str(length): _cell(of.measure, str(length), [row for row in rows if row["length"] == length], abouts)
        for length in of.lengths
    }
    for length in () if oracle else of.lengths:
        if found[str(length)]["state"] is None:
            found[str(length)]["rows"] = of.results.rows.get((of.name, word, change, mode, of.measure, length))
    return found


def columns(rows: Sequence[Json], *names: str) -> Json:
    return {name: [row[name] for row in rows] for name in names}


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _state(of: TaskResults, trials: Mapping[int, Json], crash: str | None) -> str | None:
    """The reason why an arm has no score. One failed seed is enough: the mean of the other seeds would be biased."""
    if crash is not None or not trials:
        return crash or MISSING
    if broken := [about["failed"] for about in trials.values() if about["failed"] is not None]:
        return f"failed: {broken[0]} ({len(broken)} of {len(trials)} seeds)"
    cannot = next(iter(trials.values()))["cannot"]
    if set(cannot) >= set(map(str, of.lengths)):
        return f"cannot: {cannot[str(of.length)]}"
    return None


def _cell(measure: Measure, length: str, rows: list[Json], abouts: Iterable[Json]) -> Json:
    rows = sorted(rows, key=lambda row: row["seed"])
    seeds = {str(row["seed"]): row["mean"] for row in rows if math.isfinite(row["mean"])}
    state = _cell_state(length, abouts, len(seeds) < len(rows), bool(rows))
    if state is not None:
        return _empty(state, seeds)
    pooled = None
    if measure == "exact":
        pooled = list(statistics.wilson(sum(row["total"] for row in rows), sum(row["items"] for row in rows)))
    return {"mean": mean(list(seeds.values())), "seeds": seeds, "interval": pooled, "state": None}


def _empty(state: str, seeds: Mapping[str, float]) -> Json:
    return {"mean": None, "seeds": dict(seeds), "interval": None, "state": state}


def _cell_state(length: str, abouts: Iterable[Json], no_number: bool, any_rows: bool) -> str | None:
    abouts = list(abouts)
    if why := next((about["cannot"][length] for about in abouts if length in about["cannot"]), None):
        return f"failed: {why}" if why == NO_NUMBER else f"cannot: {why}"
    if why := next((about["failed"] for about in abouts if about["failed"] is not None), None):
        return f"failed: {why}"
    if no_number:
        return f"failed: {NO_NUMBER}"
    return None if any_rows else MISSING


def _windows(of: TaskResults, word: str) -> Json:
    """Bits in windows side by side, from the losses by position of the longest one: a causal model has the same loss of its
    first n bytes as of a window of n. At every scored length and at the multiples of Press et al.
    """
    if not ("cut_up" in of.plan["task"] and of.task.causal):
        return {}
    widths = {round(of.length * times) for times in criteria.PRESS} | set(of.from_trained)
    windows = of.results.windows(of.name, word, of.lengths[-1], sorted(n for n in widths if n <= of.lengths[-1]))
    return {str(width): {"mean": mean(list(seeds.values())), "seeds": seeds} for width, seeds in windows.items()}


def _by_position(of: TaskResults, word: str) -> dict[str, Any] | None:
    rows = [row for row in of.results.by_position[of.name] if row["encoding"] == word]
    if not rows:
        return None
    longest = max(row["length"] for row in rows)
    return {"length": longest, **columns([row for row in rows if row["length"] == longest], "position", "bits")}
