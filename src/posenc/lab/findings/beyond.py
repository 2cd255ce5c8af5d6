"""What a model gains from context beyond the trained length, on the same targets.

    last window  ─► score of the model cut to the trained length      ┐
    longer rows  ─► score of the same targets after the whole context ┴─► gained: the difference

The share is of what the best prediction gains on the same rows. A measure is published only if predictors whose use of far
context is known get what they must (`refused`): the best prediction that is cut to the trained length gains nothing.

Legend: n lengths, s seeds, i items (rows or documents).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab import tasks
from posenc.lab.findings import statistics
from posenc.lab.findings.criteria import CUT_AT_MOST
from posenc.lab.findings.queries import Json
from posenc.lab.records.record import LAST_WINDOW, SAME_TARGETS
from posenc.lab.tasks.task import CUT, OPTIMUM

if TYPE_CHECKING:
    from numpy import ndarray as Array

    from posenc.lab.findings.arm_cells import TaskResults
    from posenc.support.shapes import Float

    Known = Mapping[str, Mapping[int, Float[Array, "i"]]]  # scores of a predictor by length; 0 is the last window
    ShareOf = Callable[[Mapping[int, Float[Array, "i"]], Mapping[int, Float[Array, "i"]]], float]
WINDOW = 0  # the last window among lengths


def known(of: TaskResults) -> Known | None:
    """Scores of the predictors whose use of far context is known, by item; None for a task without."""
    task = tasks.read(of.plan["task"])
    if task.lengths[-1] == task.length or task.controls(None) is None:
        return None
    scores: dict[str, dict[int, Any]] = {}
    for length in (WINDOW, *of.lengths):
        for name, score in (task.controls(length or None) or {}).items():
            scores.setdefault(name, {})[length] = score.numpy()
    return scores


def share_gained(score: Mapping[int, Float[Array, "i"]], optimum: Mapping[int, Float[Array, "i"]]) -> float:
    """The share of what the optimum gains from the last window to the longest length."""
    far = max(optimum)
    return float((score[WINDOW] - score[far]).mean() / (optimum[WINDOW] - optimum[far]).mean())


def refused(share_of: ShareOf, predictors: Known) -> str | None:
    """Why a measure of far context must not be published: what it gives to the optimum cut to the trained length."""
    cut, whole = (share_of(predictors[name], predictors[OPTIMUM]) for name in (CUT, OPTIMUM))
    if abs(cut) > CUT_AT_MOST:
        return f"the {CUT} gets {cut:.0%}; expected at most {CUT_AT_MOST:.0%}"
    return None if abs(whole - 1) < CUT_AT_MOST else f"the {OPTIMUM} gets {whole:.0%}; expected 100%"


def controls(of: TaskResults, predictors: Known | None) -> Json | None:
    """What the measure gives to each known predictor, and to the optimum with its interval."""
    if predictors is None:
        return None
    sign, far = _sign(of), of.lengths[-1]
    best = predictors[OPTIMUM]
    gains = (best[WINDOW] - best[far]) * sign
    draws = statistics.bootstrap(gains[None, None], np.ones((1, 1, len(gains))))[:, 0]
    task = tasks.read(of.plan["task"])
    drawn = task.gain()
    return {
        "refused": refused(share_gained, predictors),
        "optimum": {"mean": float(gains.mean()), "interval": list(statistics.interval(draws)), "rows": len(gains)},
        "chains": None if drawn is None else dict(zip(("mean", "error", "rows"), drawn, strict=True)),
        "predictors": {
            name: {
                "last_window": float(score[WINDOW].mean()),
                "lengths": {str(length): float(score[length].mean()) for length in of.lengths},
                "gained": float((score[WINDOW] - score[far]).mean() * sign),
                "share": share_gained(score, best),
            }
            for name, score in predictors.items()
        },
    }


def gained(of: TaskResults, word: str, predictors: Known | None, change: str = "") -> dict[str, Json]:
    """By length beyond the trained one: the mean over seeds, each seed, and the interval over seeds and rows.

    Empty where the last window was not scored. A change that leaves the trained length alone has the last window of the
    unchanged model.
    """
    items = of.results.items(of.name, of.measure)
    mine = items["encoding"] == word
    own = mine & (items["change"] == change)
    near = own & (items["mode"] == LAST_WINDOW)
    if not near.any():
        near = mine & (items["change"] == "") & (items["mode"] == LAST_WINDOW)
    mode = SAME_TARGETS if change else of.mode(word)
    found = {n: own & (items["mode"] == mode) & (items["length"] == n) for n in of.lengths if n > of.length}
    at = {n: where for n, where in found.items() if where.any()}
    if not near.any() or not at:
        return {}
    return _of_rows(of, items, {WINDOW: near, **at}, predictors)


def _of_rows(
    of: TaskResults, items: Mapping[str, Array], at: Mapping[int, Array], predictors: Known | None
) -> dict[str, Json]:
    seeds = sorted(set.intersection(*({*items["seed"][where].tolist()} for where in at.values())))
    numbers = np.unique(items["item"][at[WINDOW]])
    known_too = predictors is not None and refused(share_gained, predictors) is None
    values, weights = statistics.arranged(items, list(at.values()), seeds, numbers)
    if known_too:
        best = np.stack([predictors[OPTIMUM][length][numbers] for length in at])  # type: ignore[index]
        values = np.concatenate([values, np.broadcast_to(best[:, None], values.shape)])
        weights = np.concatenate([weights, np.ones_like(weights)])
    means = (values * weights).sum(-1) / weights.sum(-1)  # [n, s]
    drawn, sign, found = statistics.bootstrap(values, weights), _sign(of), dict[str, Json]()
    for n, length in enumerate(at):
        if length == WINDOW:
            continue
        each, draws = (means[0] - means[n]) * sign, (drawn[:, 0] - drawn[:, n]) * sign
        found[str(length)] = {
            "mean": float(each.mean()),
            "seeds": dict(zip(map(str, seeds), each.tolist(), strict=True)),
            "interval": list(statistics.interval(draws)),
            "share": None,
            "share_interval": None,
        }
        if known_too:
            offered = (means[len(at), 0] - means[len(at) + n, 0]) * sign
            of_draws = (drawn[:, len(at)] - drawn[:, len(at) + n]) * sign
            found[str(length)] |= {
                "share": float(each.mean() / offered),
                "share_interval": list(statistics.interval(draws / of_draws)),
            }
    return found


def _sign(of: TaskResults) -> int:
    return 1 if of.measure == "bits" else -1
