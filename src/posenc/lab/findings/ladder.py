"""What changes with the budget: the same experiment at several scales, each a folder of results of its own.

    DIR/x1   DIR/x4   DIR/x16   ─► scores of every encoding at every rung
                                ─► rank correlation between neighbouring rungs, with an interval over seeds
                                ─► pairs that change places, pairs that never do, encodings that are learnt from a rung on

Neighbours differ in one thing: the same model with more steps, or a larger model with the same steps. A rung with neither
is compared with the one before it.

Spearman's correlation is that of the mean scores. Its interval is the middle 95 % over draws of seeds with replacement, the
same seeds in both rungs; with few seeds it is coarse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from posenc.lab.findings.criteria import CONVERGED
from posenc.lab.findings.titles import main_task

Json = dict[str, Any]
Scores = Mapping[str, Mapping[str, float]]  # by encoding and seed
DRAWS = 2000
FEWEST = 3  # encodings; a correlation of two is always 1 or -1


class Scale(NamedTuple):
    """A rung: its name, its findings, and how much was trained."""

    name: str
    findings: Mapping[str, Any]

    @property
    def task(self) -> Mapping[str, Any]:
        return main_task(self.findings)

    @property
    def steps(self) -> int:
        steps: int = self.task["training"]["steps"]
        return steps

    @property
    def size(self) -> Mapping[str, int]:
        size: Mapping[str, int] = self.findings["size"]
        return size

    def scores(self, length: int) -> dict[str, dict[str, float]]:
        """Scores by encoding and seed, for the encodings that have a score in every seed."""
        seeds = len(self.findings["seeds"])
        cells = {arm["name"]: arm["cells"][str(length)] for arm in self.task["arms"]}
        return {
            name: cell["seeds"] for name, cell in cells.items() if cell["mean"] is not None and len(cell["seeds"]) == seeds
        }


def ladder(scales: Sequence[Scale]) -> Json:
    """Plain JSON. Every rung must have the same task, lengths and encodings, as those of one ladder have."""
    task = scales[0].task
    home, far = task["length"], task["lengths"][-1]
    return {
        "task": {name: task[name] for name in ("name", "title", "measure", "length", "lengths")},
        "rungs": [_rung(scale) for scale in scales],
        "arms": {arm["name"]: [_arm(scales, scale, arm["name"], home, far) for scale in scales] for arm in task["arms"]},
        "steps": [
            _between(below, above, length) for length in dict.fromkeys((home, far)) for below, above in _neighbours(scales)
        ],
        "kept": [_kept(scales, length) for length in dict.fromkeys((home, far))],
        "learnt_from": {arm["name"]: _learnt_from(scales, arm["name"]) for arm in task["arms"]},
    }


def _neighbours(scales: Sequence[Scale]) -> list[tuple[Scale, Scale]]:
    """Pairs of a scale and the nearest smaller one, by steps and by size; `scales` are sorted by both."""
    pairs = []
    for number, above in enumerate(scales):
        shorter = [below for below in scales[:number] if below.size == above.size]
        smaller = [below for below in scales[:number] if below.steps == above.steps and below.size != above.size]
        nearest = [scales_below[-1] for scales_below in (shorter, smaller) if scales_below]
        pairs += [(below, above) for below in nearest or scales[max(number - 1, 0) : number]]
    return pairs


def _rung(scale: Scale) -> Json:
    return {
        "name": scale.name,
        "steps": scale.steps,
        "tokens": scale.task["trained_tokens"],
        "size": scale.size,
        "trials": scale.findings["trials"],
        "seeds": len(scale.findings["seeds"]),
    }


def _arm(scales: Sequence[Scale], scale: Scale, name: str, home: int, far: int) -> Json:
    """The scores of an encoding at a scale. `converged` is False, too, where the next rung with more steps is better.

    The loss alone cannot say it: where the learning rate falls to zero after few steps, the loss is flat at its end.
    """
    arm = _of(scale, name)
    means, seeds = ({str(length): arm["cells"][str(length)][of] for length in (home, far)} for of in ("mean", "seeds"))
    longer = next((above for below, above in _neighbours(scales) if below is scale and above.size == scale.size), None)
    after = _of(longer, name)["cells"][str(home)]["mean"] if longer else None
    sign = 1 if scale.task["measure"] == "bits" else -1
    grew = None not in (after, means[str(home)]) and sign * (means[str(home)] - after) > CONVERGED
    return {
        "means": means,
        "seeds": seeds,
        "learnt": arm["learnt"],
        "converged": False if grew else arm["converged"],
        "state": arm["state"],
    }


def _of(scale: Scale, name: str) -> Mapping[str, Any]:
    arm: Mapping[str, Any] = next(arm for arm in scale.task["arms"] if arm["name"] == name)
    return arm


def _learnt_from(scales: Sequence[Scale], name: str) -> str | None:
    """The first rung at which the encoding learnt the trained length; None if at none."""
    return next((scale.name for scale in scales if _of(scale, name)["learnt"]), None)


def _between(below: Scale, above: Scale, length: int) -> Json:
    """How the order of encodings at a length changes from one rung to the next."""
    lower, upper = below.scores(length), above.scores(length)
    names = [name for name in lower if name in upper]
    result: Json = {
        "from": below.name,
        "to": above.name,
        "length": length,
        "encodings": names,
        "spearman": None,
        "interval": None,
        "swapped": [],
        "unsure": [],
    }
    if len(names) >= FEWEST:
        seeds = sorted(set.intersection(*(set(scores[name]) for scores in (lower, upper) for name in names)))
        before, after = (np.array([[scores[name][seed] for seed in seeds] for name in names]) for scores in (lower, upper))
        result["spearman"] = _correlation(before.mean(1), after.mean(1))
        drawn = np.random.default_rng(0).integers(len(seeds), size=(DRAWS, len(seeds)))
        each = [_correlation(before[:, chosen].mean(1), after[:, chosen].mean(1)) for chosen in drawn]
        result["interval"] = np.quantile(each, [0.025, 0.975]).tolist()
    for first, second in combinations(names, 2):
        if (kind := _swap(lower, upper, first, second)) is not None:
            result[kind].append([first, second])
    return result


def _kept(scales: Sequence[Scale], length: int) -> Json:
    """The pairs, better one first, that every seed of every rung orders the same way; and those of encodings that learnt
    the trained length at every rung.
    """
    sign = 1 if scales[0].task["measure"] == "bits" else -1
    every = [scale.scores(length) for scale in scales]
    names = [name for name in every[0] if all(name in scores for scores in every)]
    pairs = list[list[str]]()
    for first, second in combinations(names, 2):
        differences = np.array([sign * (s[first][seed] - s[second][seed]) for s in every for seed in s[first]])
        if _one_way(differences):
            pairs.append([first, second] if differences[0] < 0 else [second, first])
    learnt = [name for name in names if all(_of(scale, name)["learnt"] for scale in scales)]
    return {
        "length": length,
        "of": len(names) * (len(names) - 1) // 2,
        "pairs": pairs,
        "of_learnt": len(learnt) * (len(learnt) - 1) // 2,
        "pairs_learnt": [pair for pair in pairs if set(pair) <= set(learnt)],
    }


def _correlation(before: np.ndarray, after: np.ndarray) -> float:
    """0 where all scores of a rung are equal, so that none is before another."""
    if np.ptp(before) == 0 or np.ptp(after) == 0:
        return 0.0
    return float(spearmanr(before, after).statistic)


def _swap(lower: Scores, upper: Scores, a: str, b: str) -> str | None:
    """ "swapped" if every seed orders the pair one way below and the other way above, "unsure" if only the means do."""
    below, above = (
        np.array([scores[a][seed] - scores[b][seed] for seed in scores[a].keys() & scores[b].keys()])
        for scores in (lower, upper)
    )
    if below.mean() * above.mean() >= 0:
        return None
    return "swapped" if _one_way(below) and _one_way(above) else "unsure"


def _one_way(differences: np.ndarray) -> bool:
    return bool((differences > 0).all() or (differences < 0).all())
