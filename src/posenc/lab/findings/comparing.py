"""Compares encodings: which is better, and which do not differ measurably."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from posenc.lab.findings import criteria, statistics
from posenc.lab.findings.criteria import FEWEST
from posenc.lab.findings.statistics import Paired
from posenc.lab.say import say
from posenc.support.languages import Words

Json = Mapping[str, Any]


def worse(task: Json, score: float) -> float:
    """A key to sort scores of a task by, the best first."""
    return criteria.worse(task["measure"], score)


def ranked(task: Json) -> list[Any]:
    """The arms that sentences may rank: those that learnt the trained length and did not still improve at their end.

    None if an arm that still improved is already better at the trained length than all of these. Where some have FEWEST
    seeds, those with fewer are left out: one lucky seed would be called the best.
    """
    counts = {arm["name"]: len(arm["cells"][str(task["length"])]["seeds"]) for arm in task["arms"] if arm["learnt"]}
    enough = min(FEWEST, max(counts.values(), default=0))
    learnt = [arm for arm in task["arms"] if counts.get(arm["name"], -1) >= enough]
    finished = [arm for arm in learnt if arm["converged"] is not False]
    return finished if learnt and first(task, learnt, task["length"]) in finished else []


def first(task: Json, arms: Sequence[Json], length: int) -> Json:
    """The best of `arms` at a length: the one that the fewest others beat, by the means over the seeds that both have.

    Means over all seeds decide between equals. Every arm needs a score at that length.
    """

    def losses(arm: Json) -> tuple[int, float]:
        beaten = sum(_behind(task, arm, other, length) > 0 for other in arms)
        return beaten, worse(task, arm["cells"][str(length)]["mean"])

    return min(arms, key=losses)


def _behind(task: Json, arm: Json, other: Json, length: int) -> float:
    """How much worse an arm is than another, mean over the seeds that both have; 0 if they share none."""
    by = behind(task, other["cells"][str(length)], arm["cells"][str(length)])
    return by.mean if by.seeds else 0.0


def best(task: Json, arms: Sequence[Json], length: int) -> list[Json]:
    """The best of `arms` at a length, then those that cannot be told from it. Every arm needs a score at that length."""
    leader = first(task, arms, length)
    apart = told_apart(task, [arm["cells"][str(length)] for arm in arms])
    place = {arm["name"]: n for n, arm in enumerate(arms)}
    ties = [arm for arm in arms if arm is not leader and (place[leader["name"]], place[arm["name"]]) not in apart]
    return [leader, *sorted(ties, key=lambda arm: worse(task, arm["cells"][str(length)]["mean"]))]


def told_apart(task: Json, cells: Sequence[Json]) -> set[tuple[int, int]]:
    """The pairs of these cells, by number and the better first, that their seeds and rows tell apart.

    The paired test finds a difference at 5 % after Holm's correction over all pairs. Pairs that share fewer seeds than
    FEWEST count as pairs and are not told apart.
    """
    pairs = list(combinations(range(len(cells)), 2))
    ahead = [behind(task, cells[a], cells[b]) for a, b in pairs]
    corrected = statistics.holm([p_value(by) for by in ahead])
    return {
        (a, b) if by.mean > 0 else (b, a)
        for (a, b), by, p in zip(pairs, ahead, corrected, strict=True)
        if p < 1 - statistics.LEVEL
    }


def p_value(by: Paired) -> float:
    """The p-value of a pair; 1 with fewer seeds than FEWEST."""
    return by.p if len(by.seeds) >= FEWEST else 1.0


def behind(task: Json, better: Json, other: Json) -> Paired:
    """How far the other cell is behind, for each seed and for each row that both have."""
    shared = sorted(better["seeds"].keys() & other["seeds"].keys(), key=int)
    by_seed = [worse(task, other["seeds"][seed]) - worse(task, better["seeds"][seed]) for seed in shared]
    rows = zip(*both_rows(better, other), strict=True)
    return Paired(by_seed, [worse(task, theirs) - worse(task, ours) for ours, theirs in rows])


def both_rows(*cells: Json) -> list[Sequence[float]]:
    """The rows of cells that all have as many; otherwise none. All arms of a task are scored on the same rows."""
    rows = [cell.get("rows") or () for cell in cells]
    return rows if len({*map(len, rows)}) == 1 else [() for _ in cells]


def pairing(cells: Sequence[Json]) -> Words:
    """What the test of these cells pairs."""
    return say("paired by seed and row") if any(both_rows(*cells)) else say("paired by seed")


def fastest(findings: Json, kind: str, names: Sequence[str]) -> list[str]:
    """The one of `names` with the lowest median time, then those whose median lies within its quartiles. Times are relative
    to NoPE, which is left out.
    """
    rows = (findings["cost"] or {}).get("rows") or {}
    times = {name: rows[name][kind] for name in names if name != "nope" and (rows.get(name) or {}).get(kind)}
    ordered = sorted(times, key=lambda name: times[name]["median"])
    return [name for name in ordered if times[name]["median"] <= times[ordered[0]]["high"]]


def after_training(task: Json) -> tuple[int, dict[str, float], list[tuple[str, str]]] | None:
    """A length, the mean score there of each change of RoPE's frequencies, the best first, and the neighbours in that order
    that the seeds do not tell apart.

    The length is 4 times the trained one, otherwise the longest that all changes have. None if nothing can be compared, or
    RoPE did not learn the trained length.
    """
    cells = {
        changed["change"]: {length: cell for length, cell in changed["cells"].items() if cell.get("mean") is not None}
        for changed in task["after"]
    }
    shared = [n for n in task["lengths"] if n > task["length"] and all(str(n) in of for of in cells.values())]
    if len(cells) < 2 or not shared:
        return None
    rope = next((arm for arm in task["arms"] if arm["name"] == "rope"), None)
    if rope is None or not rope["learnt"]:
        return None
    length = 4 * task["length"] if 4 * task["length"] in shared else shared[-1]
    at = {name: of[str(length)] for name, of in cells.items()}
    ordered = sorted(at, key=lambda name: worse(task, at[name]["mean"]))
    apart = told_apart(task, [at[name] for name in ordered])
    unsure = [(ordered[n], ordered[n + 1]) for n in range(len(ordered) - 1) if (n, n + 1) not in apart]
    return length, {name: at[name]["mean"] for name in ordered}, unsure
