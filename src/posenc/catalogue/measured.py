"""Curves of bits or exact match by length: a small extract of the repository's results, shipped with the package.

`python -m posenc.lab.extract results/study results/study-tasks results/chains` writes it.

An encoding that did not learn the trained length, or cannot exceed it, has a reason in words instead of a number. Of one
that learnt it, `converged` says whether the training loss had stopped falling.
Legend: a arms, n lengths, s seeds.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy import ndarray as Array

    from posenc.support.shapes import Float

Json = dict[str, Any]
FILE = Path(__file__).parent / "measured.json"


class Curves(NamedTuple):
    """Curves of one task. NaN means no number, or no such seed: an encoding may have fewer. The digest gives the reason.
    low and high: the 95 % interval, if any."""

    mean: Float[Array, "a n"]
    seeds: Float[Array, "a s n"]
    low: Float[Array, "a n"]
    high: Float[Array, "a n"]


@cache
def digest() -> Json:
    """The shipped extract. Do not change it in place."""
    data: Json = json.loads(FILE.read_text("utf-8"))
    return data


def task(name: str) -> Json:
    """The digest of one task. Raises KeyError if it was not measured."""
    tasks: dict[str, Json] = {of_task["name"]: of_task for of_task in digest()["tasks"]}
    return tasks[name]


def experiment(name: str) -> Json:
    """The experiment that a task is of: its size, date, command. Raises KeyError if the task was not measured."""
    experiments: dict[str, Json] = {of_experiment["name"]: of_experiment for of_experiment in digest()["experiments"]}
    return experiments[task(name)["experiment"]]


def curves(name: str) -> Curves:
    """Curves of every encoding, in the order of task(name)["arms"]."""
    return _curves(task(name)["arms"], len(task(name)["lengths"]))


def changed(name: str) -> Curves:
    """Curves of RoPE with frequencies changed after training, in the order of task(name)["after"]; may have no rows."""
    return _curves(task(name)["after"], len(task(name)["lengths"]))


def gained(name: str) -> dict[str, Json]:
    """What each encoding gains beyond the trained length, on the same targets, at the longest length.

    mean and interval, and where the optimum is known share and share_interval: of what it gains. Of encodings that learnt
    the trained length and were scored with their context cut to it. Changes of RoPE have the names of task(name)["after"].
    """
    of_task = task(name)
    arms = [arm for arm in of_task["arms"] if arm["learnt"]]
    return {arm["name"]: arm["gained"] for arm in [*arms, *of_task["after"]] if "gained" in arm}


def _curves(arms: Sequence[Mapping[str, Any]], lengths: int) -> Curves:
    import numpy as np  # 0.1 s, which `posenc choose` does not need

    several = max((len(cell.get("seeds", ())) for arm in arms for cell in arm["cells"]), default=0)
    mean, low, high = (np.full((len(arms), lengths), math.nan) for _ in range(3))
    seeds = np.full((len(arms), several, lengths), math.nan)
    for a, arm in enumerate(arms):
        for n, cell in enumerate(arm["cells"]):
            if "mean" in cell:
                mean[a, n], seeds[a, : len(cell["seeds"]), n] = cell["mean"], cell["seeds"]
            if "interval" in cell:
                low[a, n], high[a, n] = cell["interval"]
    return Curves(mean, seeds, low, high)
