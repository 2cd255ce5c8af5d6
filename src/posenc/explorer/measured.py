"""Curves of bits or exact match by length: a small extract of the repository's results, shipped with the package.

    python -m posenc.explorer.measured results/standard     writes measured.json

An encoding that did not learn the trained length, or cannot exceed it, has a reason in words instead of a number. Of one
that learnt it, `converged` says whether the training loss had stopped falling.
Only this command needs posenc[lab]; reading needs no extra.
Legend: a arms, n lengths, s seeds.
"""

from __future__ import annotations

import json
import math
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy import ndarray as Array

    from posenc.shapes import Float

Json = dict[str, Any]
FILE = Path(__file__).parent / "measured.json"
DIGITS = 5


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


# The command ----------------------------------------------------------------------------------------------------------


def made(folder: Path) -> Json:
    """The digest of a results folder. Raises ValueError if it holds no results."""
    from posenc.lab.findings.assemble import findings
    from posenc.lab.records.results import Folder

    found = findings(folder)
    with Folder(folder).connect() as database:
        (date,) = database.execute("SELECT max(json_extract_string(about, '$.finished')) FROM trials").fetchall()[0]
    return {
        "experiment": found["name"],
        "date": date[:10],
        "command": found["command"],
        "posenc": found["posenc"],
        "code": found["provenance"].get("code", found["provenance"].get("revision", "")),
        "torch": found["provenance"]["torch"],
        "text": {name: found["text"][name] for name in ("source", "sha256")},
        "trials": found["trials"]["found"],
        "size": found["size"],
        "seeds": found["seeds"],
        "parameters": {name: row["parameters"] for name, row in found["cost"]["rows"].items()},
        "tasks": [_task(one) for one in found["tasks"]],
    }


def _task(found: Mapping[str, Any]) -> Json:
    from posenc.lab.findings.titles import title

    lengths = [str(length) for length in found["lengths"]]
    return {
        **{name: found[name] for name in ("name", "title", "unit", "measure", "causal", "length", "lengths")},
        "steps": found["training"]["steps"],
        "rule": found["gate"]["rule"],
        "limit": _round(found["gate"]["limit"]),
        "arms": [
            {
                "name": arm["name"],
                "title": title(arm["name"])._asdict(),
                "learnt": arm["learnt"],
                "converged": arm["converged"],
                "why": _reason(arm["state"]),
                "factor": arm["factor"],
                "cells": [_of_arm(arm, length, found["length"]) for length in lengths],
            }
            for arm in found["arms"]
        ],
        "after": [
            {
                "name": one["change"] or "none",
                "title": _change(one["change"]),
                "cells": [_cell(one["cells"][length]) for length in lengths],
            }
            for one in found["after"]
        ],
    }


def _of_arm(arm: Mapping[str, Any], length: str, trained: int) -> Json:
    """The cell; beyond the trained length only if that was learnt, because curves are drawn to be compared."""
    if not arm["learnt"] and arm["state"] is not None and int(length) > trained and arm["cells"][length]["state"] is None:
        return {"why": _reason(arm["state"])}
    return _cell(arm["cells"][length])


def _cell(cell: Mapping[str, Any]) -> Json:
    """A mean with its seeds, or the reason why there is none."""
    if cell["mean"] is None:
        return {"why": _reason(cell["state"])}
    seeds = [cell["seeds"][seed] for seed in sorted(cell["seeds"], key=int)]
    interval = {} if cell["interval"] is None else {"interval": [_round(end) for end in cell["interval"]]}
    return {"mean": _round(cell["mean"]), "seeds": [_round(seed) for seed in seeds], **interval}


def _reason(state: str | None) -> Json | None:
    from posenc.lab.views.cells import reason

    return None if state is None else reason(state)._asdict()


def _change(change: str) -> Json:
    from posenc.lab.views.words import say

    return say(f"change {change}")._asdict()


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 1:
        sys.exit("usage: python -m posenc.explorer.measured FOLDER")
    FILE.write_text(json.dumps(made(Path(arguments[0])), ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
