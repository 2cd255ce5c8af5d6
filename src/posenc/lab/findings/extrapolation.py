"""Scores at longer lengths of encodings that learnt the trained length: rise, factor, area, behaviour, rank.

rise     the loss, seed by seed: bits against the same model cut to the trained length, on the same targets, where that was
         scored; otherwise against the trained length. Exact match: the share of the examples against the trained length
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from posenc.lab.findings import criteria, statistics
from posenc.lab.findings.arm_cells import TaskResults, mean, reference
from posenc.lab.findings.comparing import both_rows, ranked
from posenc.lab.findings.queries import Json
from posenc.lab.records.record import LAST_WINDOW


def extrapolate(of: TaskResults, arms: Sequence[Json]) -> list[int]:
    """Adds these measures to `arms`, all of which learnt the trained length. Only those that may be ranked have a rank.

    Returns the seeds that the ranks are the mean over.
    """
    draws = _draws(of, [arm["name"] for arm in arms])
    for arm in arms:
        _beyond(of, arm, draws.get(arm["name"]))
    return _rank(of, ranked({"arms": arms, "measure": of.measure, "length": of.length}))


def _beyond(of: TaskResults, arm: Json, draws: tuple[np.ndarray, np.ndarray] | None) -> None:
    """`draws` are bootstrapped means at the lengths for which the arm has scores, and those that they are compared with."""
    drawn, against = draws or (None, None)
    cells = {length: arm["cells"][str(length)] for length in of.from_trained}
    there = [length for length in of.from_trained if cells[length]["mean"] is not None]
    compared = reference(of.measure, cells[of.length], arm["last_window"])
    home = compared["seeds"]
    sign = 1 if of.measure == "bits" else -1
    for column, length in enumerate(there):
        far = cells[length]["seeds"]
        lost = {seed: (far[seed] - home[seed]) * sign for seed in home if seed in far}
        if drawn is not None:
            low, high = statistics.interval(drawn[:, column])
            rows = cells[length]["interval"]  # of a share, over its rows: wider where every seed has all or none right
            cells[length]["interval"] = [low, high] if rows is None else [min(low, rows[0]), max(high, rows[1])]
        if length > of.length and lost:
            between = None if drawn is None else list(statistics.interval((drawn[:, column] - against) * sign))
            rows = [(away - near) * sign for near, away in zip(*both_rows(compared, cells[length]), strict=True)]
            arm["rise"][str(length)] = {"mean": mean(list(lost.values())), "seeds": lost, "interval": between, "rows": rows}
    if drawn is not None and against is not None:
        drawn = np.column_stack([against, drawn[:, 1:]])
    arm["factor"] = _factor(of, {**cells, of.length: compared}, drawn)
    if there == of.from_trained:
        arm["area"] = statistics.area(there, [cells[length]["mean"] for length in there])
        if len(there) > 1:
            arm["behaviour"] = criteria.behaviour(of.measure, compared["mean"], cells[there[-1]]["mean"])


def _factor(of: TaskResults, cells: Mapping[int, Json], drawn: np.ndarray | None) -> Json | None:
    """The length factor, up to the first length without a score.

    Low and high are an interval if there are enough seeds, otherwise the worst and the best single seed.
    """
    if len(of.from_trained) == 1:
        return None
    first_gap = next((n for n, length in enumerate(of.from_trained) if cells[length]["mean"] is None), None)
    there = of.from_trained[:first_gap]
    seeds = [seed for seed in cells[of.length]["seeds"] if all(seed in cells[length]["seeds"] for length in there)]
    of_seeds = np.array([[cells[length]["seeds"][seed] for length in there] for seed in seeds])
    value = float(statistics.factors(of.measure, np.array([cells[length]["mean"] for length in there]), there))
    if drawn is not None:
        low, high = statistics.factor_interval(statistics.factors(of.measure, drawn[:, : len(there)], there))
    elif len(seeds):
        each = statistics.factors(of.measure, of_seeds, there)
        low, high = float(each.min()), float(each.max())
    else:
        low = high = value
    return {"value": value, "low": low, "high": high, "censored": value == of.lengths[-1] / of.length}


def _draws(of: TaskResults, words: Sequence[str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Bootstrapped means of the arms with enough seeds, [draws, its lengths], the trained length first; and [draws] of what
    they are compared with (`reference`).
    """
    enough = [word for word in words if len(of.trials(word)) >= criteria.ENOUGH]
    if not enough:
        return {}
    items = of.results.items(of.name, of.measure)
    drawn = dict[str, tuple[np.ndarray, np.ndarray]]()
    for word in enough:
        mine = (items["encoding"] == word) & (items["change"] == "")
        of_arm = mine & (items["length"] >= of.length) & (items["mode"] == of.mode(word))
        window = mine & (items["mode"] == LAST_WINDOW) & (of.measure == "bits")
        lengths = np.unique(items["length"][of_arm])
        seeds, numbers = (np.unique(items[name][of_arm]) for name in ("seed", "item"))
        where_from = [of_arm & (items["length"] == length) for length in lengths]
        groups = [*where_from, window if window.any() else where_from[0]]
        means = statistics.bootstrap(*statistics.arranged(items, groups, seeds, numbers))
        drawn[word] = means[:, :-1], means[:, -1]
    return drawn


def _rank(of: TaskResults, arms: Sequence[Json]) -> list[int]:
    """Adds mean ranks, over the longer lengths and the seeds in which every arm that reaches all lengths has a score.

    Returns these seeds.
    """
    longer = [str(length) for length in of.from_trained[1:]]
    cells = {arm["name"]: [arm["cells"][length] for length in longer] for arm in arms if longer}
    cells = {name: row for name, row in cells.items() if all(cell["mean"] is not None for cell in row)}
    seeds = set.intersection(*(set(cell["seeds"]) for row in cells.values() for cell in row)) if cells else set()
    blocks = [
        {name: row[column]["seeds"][seed] for name, row in cells.items()}
        for column in range(len(longer))
        for seed in sorted(seeds)
    ]
    ranks = statistics.mean_ranks(of.measure, blocks, list(cells)) or {}
    for arm in arms:
        arm["rank"] = ranks.get(arm["name"])
    return sorted(map(int, seeds))
