"""What changes with the budget: the same experiment at several scales, each a folder of results of its own.

    DIR/x1   DIR/x4   DIR/x16   ─► scores of every encoding at every rung
                                ─► rank correlation between neighbouring rungs, with an interval over seeds
                                ─► pairs that change places, encodings that are learnt from a rung on

Spearman's correlation is that of the mean scores. Its interval is the middle 95 % over draws of seeds with replacement, the
same seeds in both rungs; with few seeds it is coarse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from posenc.lab.findings.titles import main_task

Json = dict[str, Any]
Scores = Mapping[str, Mapping[str, float]]  # by encoding and seed
DRAWS = 2000
FEWEST = 3  # encodings; a correlation of two is always 1 or -1


class Scale(NamedTuple):
    """A rung: its name, its findings, and how much was trained."""

    name: str
    found: Mapping[str, Any]

    @property
    def task(self) -> Mapping[str, Any]:
        return main_task(self.found)

    def scores(self, length: int) -> dict[str, dict[str, float]]:
        """Scores by encoding and seed, for the encodings that have a score in every seed."""
        seeds = len(self.found["seeds"])
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
        "arms": {arm["name"]: [_arm(scale, arm["name"], home, far) for scale in scales] for arm in task["arms"]},
        "steps": [
            _between(below, above, length) for length in dict.fromkeys((home, far)) for below, above in pairwise(scales)
        ],
        "learnt_from": {arm["name"]: _learnt_from(scales, arm["name"]) for arm in task["arms"]},
    }


def _rung(scale: Scale) -> Json:
    training, size = scale.task["training"], scale.found["size"]
    return {
        "name": scale.name,
        "steps": training["steps"],
        "tokens": scale.task["trained_tokens"],
        "size": size,
        "trials": scale.found["trials"],
        "seeds": len(scale.found["seeds"]),
    }


def _arm(scale: Scale, name: str, home: int, far: int) -> Json:
    arm = next(arm for arm in scale.task["arms"] if arm["name"] == name)
    means, seeds = ({str(length): arm["cells"][str(length)][of] for length in (home, far)} for of in ("mean", "seeds"))
    return {"means": means, "seeds": seeds, "learnt": arm["learnt"], "converged": arm["converged"], "state": arm["state"]}


def _learnt_from(scales: Sequence[Scale], name: str) -> str | None:
    """The first rung at which the encoding learnt the trained length; None if at none."""
    return next(
        (scale.name for scale in scales for arm in scale.task["arms"] if arm["name"] == name and arm["learnt"]), None
    )


def _between(below: Scale, above: Scale, length: int) -> Json:
    """How the order of encodings at a length changes from one rung to the next."""
    lower, upper = below.scores(length), above.scores(length)
    names = [name for name in lower if name in upper]
    found: Json = {
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
        seeds = sorted(set.intersection(*(set(one[name]) for one in (lower, upper) for name in names)))
        before, after = (np.array([[one[name][seed] for seed in seeds] for name in names]) for one in (lower, upper))
        found["spearman"] = _correlation(before.mean(1), after.mean(1))
        drawn = np.random.default_rng(0).integers(len(seeds), size=(DRAWS, len(seeds)))
        each = [_correlation(before[:, chosen].mean(1), after[:, chosen].mean(1)) for chosen in drawn]
        found["interval"] = np.quantile(each, [0.025, 0.975]).tolist()
    for first, second in combinations(names, 2):
        if (kind := _swap(lower, upper, first, second)) is not None:
            found[kind].append([first, second])
    return found


def _correlation(before: np.ndarray, after: np.ndarray) -> float:
    """0 where all scores of a rung are equal, so that none is before another."""
    if np.ptp(before) == 0 or np.ptp(after) == 0:
        return 0.0
    return float(spearmanr(before, after).statistic)


def _swap(lower: Scores, upper: Scores, a: str, b: str) -> str | None:
    """ "swapped" if every seed orders the pair one way below and the other way above, "unsure" if only the means do."""
    below, above = (
        np.array([one[a][seed] - one[b][seed] for seed in one[a].keys() & one[b].keys()]) for one in (lower, upper)
    )
    if below.mean() * above.mean() >= 0:
        return None
    return "swapped" if _one_way(below) and _one_way(above) else "unsure"


def _one_way(differences: np.ndarray) -> bool:
    return bool((differences > 0).all() or (differences < 0).all())
