"""Compares encodings: which is better, and which do not differ measurably."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from posenc.lab.findings import criteria, statistics
from posenc.lab.findings.criteria import FEWEST

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
    ours, theirs = (one["cells"][str(length)]["seeds"] for one in (arm, other))
    differences = [worse(task, ours[seed]) - worse(task, theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
    return math.fsum(differences) / len(differences) if differences else 0.0


def best(task: Json, arms: Sequence[Json], length: int) -> list[Json]:
    """The best of `arms` at a length, then those that cannot be told from it. Every arm needs a score at that length.

    Over the seeds that both have: the 95 % interval of the mean difference (t, paired) holds 0; with fewer seeds than
    FEWEST, one seed is as good or better.
    """
    leader = first(task, arms, length)
    others = sorted(
        (arm for arm in arms if arm is not leader), key=lambda arm: worse(task, arm["cells"][str(length)]["mean"])
    )
    ours = leader["cells"][str(length)]["seeds"]

    def ties(arm: Json) -> bool:
        theirs = arm["cells"][str(length)]["seeds"]
        behind = [worse(task, theirs[seed]) - worse(task, ours[seed]) for seed in ours.keys() & theirs.keys()]
        if len(behind) < FEWEST:
            return any(one <= 0 for one in behind)
        return abs(math.fsum(behind)) / len(behind) <= (statistics.half_width(behind) or 0.0)

    return [leader, *filter(ties, others)]


def fastest(found: Json, kind: str, names: Sequence[str]) -> list[str]:
    """The one of `names` with the lowest median time, then those whose median lies within its quartiles. Times are relative
    to NoPE, which is left out.
    """
    rows = (found["cost"] or {}).get("rows") or {}
    times = {name: rows[name][kind] for name in names if name != "nope" and (rows.get(name) or {}).get(kind)}
    ordered = sorted(times, key=lambda name: times[name]["median"])
    return [name for name in ordered if times[name]["median"] <= times[ordered[0]]["high"]]


def after_training(task: Json) -> tuple[int, dict[str, float]] | None:
    """A length and the mean score there of each change of RoPE's frequencies, the best first.

    The length is 4 times the trained one, otherwise the longest that all changes have. None if nothing can be compared, or
    RoPE did not learn the trained length.
    """
    means = {
        one["change"]: {length: cell["mean"] for length, cell in one["cells"].items() if cell.get("mean") is not None}
        for one in task["after"]
    }
    shared = [n for n in task["lengths"] if n > task["length"] and all(str(n) in of for of in means.values())]
    if len(means) < 2 or not shared:
        return None
    rope = next((arm for arm in task["arms"] if arm["name"] == "rope"), None)
    if rope is None or not rope["learnt"]:
        return None
    length = 4 * task["length"] if 4 * task["length"] in shared else shared[-1]
    ordered = sorted(means, key=lambda name: worse(task, means[name][str(length)]))
    return length, {name: means[name][str(length)] for name in ordered}
