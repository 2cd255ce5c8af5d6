"""Curves of bits or exact match by length: a small extract of the repository's results, shipped with the package.

`python -m posenc.lab.extract results/standard` writes it.

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
    """Curves of one task. NaN means no number; the digest gives the reason. low and high: the 95 % interval, if any."""

    mean: Float[Array, "a n"]
    seeds: Float[Array, "a s n"]
    low: Float[Array, "a n"]
    high: Float[Array, "a n"]


@cache
def digest() -> Json:
    """The shipped extract. Do not change it in place."""
    found: Json = json.loads(FILE.read_text("utf-8"))
    return found


def task(name: str) -> Json:
    """The digest of one task. Raises KeyError if it was not measured."""
    tasks: dict[str, Json] = {one["name"]: one for one in digest()["tasks"]}
    return tasks[name]


def curves(name: str) -> Curves:
    """Curves of every encoding, in the order of task(name)["arms"]."""
    return _curves(task(name)["arms"])


def changed(name: str) -> Curves:
    """Curves of RoPE with frequencies changed after training, in the order of task(name)["after"]; may have no rows."""
    return _curves(task(name)["after"], len(task(name)["lengths"]))


def _curves(arms: Sequence[Mapping[str, Any]], lengths: int = 0) -> Curves:
    import numpy as np  # 0.1 s, which `posenc choose` does not need

    seeds = len(digest()["seeds"])
    if not arms:
        none = np.empty((0, lengths))
        return Curves(none, np.empty((0, seeds, lengths)), none, none)
    mean = [[_number(cell.get("mean")) for cell in arm["cells"]] for arm in arms]
    each = [[cell.get("seeds") or [math.nan] * seeds for cell in arm["cells"]] for arm in arms]
    ends = [[cell.get("interval") or [math.nan] * 2 for cell in arm["cells"]] for arm in arms]
    low, high = np.moveaxis(np.array(ends, float), -1, 0)
    return Curves(np.array(mean), np.array(each, float).transpose(0, 2, 1), low, high)


def _number(value: float | None) -> float:
    return math.nan if value is None else value
