"""What a small budget can tell about a pair of encodings, and what it cannot.

    separates    every seed has the same order, this many seeds would show it, and the means have the same order at every
                 larger scale of the ladder
    changes      the same, but a larger scale has the other order
    unsettled    everything else

Two seeds would show an order if both had it with a chance of CHANCE, by Student's distribution of one more difference of
the pair. From FEWEST seeds on, the difference must be what a paired t-test with this many seeds finds
(`statistics.detectable`), by the variance of the pair. So a verdict does not depend on which other encodings take part.

Where the results of the preset `ladder` are shipped, seeds and differences are those of the ladder's scale with the most
tokens among those with at most twice as many as here. Otherwise they are those of the comparison itself, and nothing is
known about larger scales. Encodings that the ladder did not train are named; nothing is known about their order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import combinations
from statistics import stdev
from typing import Any, NamedTuple

from scipy.stats import t

from posenc.lab.findings import statistics
from posenc.lab.findings.criteria import FEWEST
from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import counted, numbered
from posenc.lab.say import say
from posenc.support.languages import Words, joined

Json = Mapping[str, Any]
Scores = Mapping[str, Mapping[str, float]]  # by encoding and seed
DIGEST = "ladder.json"  # report/ladder.json of the ladder's folder, shipped with the package
NOTHING_TO_COMPARE = say(
    "This budget can tell nothing about which encoding is better: fewer than two learnt the trained length."
)
CHANCE = 0.95
MOST = 6  # pairs in a sentence
NEAR = 2.0  # a scale with up to this many times the tokens still speaks for a comparison


class Verdicts(NamedTuple):
    """Pairs of encodings at one length, the better one first; `separates` with the mean difference, the largest first."""

    times: float
    separates: list[tuple[str, str, float]]
    changes: list[tuple[str, str]]
    unsettled: list[tuple[str, str]]


def shipped() -> Json | None:
    """The findings of the ladder that this posenc brings; None if it brings none."""
    path = resources.files("posenc.lab.findings").joinpath(DIGEST)
    data: Json | None = json.loads(path.read_text("utf-8")) if path.is_file() else None
    return data


def budget_limits(task: Json, seeds: int, ladder: Json | None) -> dict[str, Any]:
    """What the main task of a comparison with this many seeds can tell, at the trained and at the longest length."""
    number = None if ladder is None or ladder["task"]["name"] != task["name"] else scale_for(task, ladder)
    names = [arm["name"] for arm in task["arms"] if arm["learnt"]]
    lengths = list(dict.fromkeys((task["length"], task["lengths"][-1])))
    if number is None or ladder is None:
        scores = [{arm["name"]: arm["cells"][str(n)]["seeds"] for arm in task["arms"]} for n in lengths]
        each = [_verdicts(n / task["length"], names, [score], seeds) for n, score in zip(lengths, scores, strict=True)]
        scale, trained, unknown = None, None, list[str]()
    else:
        home, far = str(ladder["task"]["length"]), str(ladder["task"]["lengths"][-1])
        above = range(number, len(ladder["rungs"]))
        each = []
        for length in dict.fromkeys((home, far)):
            rungs = [{name: ladder["arms"][name][n]["seeds"][length] for name in ladder["arms"]} for n in above]
            each.append(_verdicts(int(length) / int(home), names, rungs, seeds))
        scale, trained = ladder["rungs"][number]["tokens"], int(home)
        unknown = [name for name in names if name not in ladder["arms"]]
    return {
        "tokens": task["trained_tokens"],
        "scale": scale,
        "scale_length": trained,
        "unknown": unknown,
        "shipped": ladder is not None,
        "seeds": seeds,
        "lengths": [verdicts._asdict() for verdicts in each],
    }


def scale_for(task: Json, ladder: Json) -> int | None:
    """The number of the rung that speaks for a comparison; None if the smallest rung has more than twice its tokens."""
    tokens = task["trained_tokens"] or 0
    near = [n for n, rung in enumerate(ladder["rungs"]) if rung["tokens"] and rung["tokens"] <= NEAR * tokens]
    return max(near, key=lambda n: (ladder["rungs"][n]["tokens"], -ladder["rungs"][n]["size"]["d_model"]), default=None)


def _verdicts(times: float, names: Sequence[str], rungs: Sequence[Scores], seeds: int) -> Verdicts:
    """`rungs` are the scores at the scale that counts and then at every larger one."""
    here = rungs[0]
    known = [name for name in names if here.get(name)]
    pairs = {
        (a, b): [here[a][seed] - here[b][seed] for seed in here[a].keys() & here[b].keys()]
        for a, b in combinations(known, 2)
    }
    verdicts = Verdicts(times, [], [], [])
    for (a, b), differences in pairs.items():
        if not _one_way(differences) or not _shown(differences, seeds):
            verdicts.unsettled.append((a, b))
            continue
        better, worse = (a, b) if _mean(differences) < 0 else (b, a)
        later = [rung for rung in rungs[1:] if rung.get(a) and rung.get(b)]
        if all(_mean(list(rung[better].values())) < _mean(list(rung[worse].values())) for rung in later):
            verdicts.separates.append((better, worse, abs(_mean(differences))))
        else:
            verdicts.changes.append((better, worse))
    verdicts.separates.sort(key=lambda pair: -pair[2])
    return verdicts


def _shown(differences: Sequence[float], seeds: int) -> bool:
    """Whether this many seeds would show the order of a pair whose differences are these."""
    n = len(differences)
    if n < 2 or seeds < 2:
        return False
    if seeds >= FEWEST:
        least = statistics.detectable([differences], seeds)
        return least is not None and abs(_mean(differences)) >= least
    spread = stdev(differences) * math.sqrt(1 + 1 / n)
    return spread == 0 or float(t.cdf(abs(_mean(differences)) / spread, n - 1)) ** seeds >= CHANCE


def _one_way(differences: Sequence[float]) -> bool:
    return all(difference > 0 for difference in differences) or all(difference < 0 for difference in differences)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# As sentences ---------------------------------------------------------------------------------------------------------


def sentences(limits: Json) -> list[Words]:
    """What this budget can separate, what it cannot rank, and where the evidence comes from."""
    seen = say("here") if limits["scale"] is None else say("in the ladder")
    told = [words for verdicts in limits["lengths"] for words in _at_length(verdicts, limits["seeds"], seen)]
    if limits["unknown"]:
        told.append(_not_in_the_ladder(limits["unknown"]))
    return [_evidence(limits), *told] if told else [NOTHING_TO_COMPARE]


def _not_in_the_ladder(names: Sequence[str]) -> Words:
    rows = joined([title(name) for name in names], ", ", "、")
    return say("The ladder did not train {rows}: whether this budget can rank them is not known.", rows=rows)


def _evidence(limits: Json) -> Words:
    seeds, tokens = limits["seeds"], limits["tokens"] or 0
    trained = say("{seeds} and {tokens:,} tokens per model", seeds=numbered(seeds, "seed", "seeds"), tokens=tokens)
    if limits["scale"] is not None:
        return say(
            "What this budget ({trained}) can tell is taken from posenc's ladder at {scale:,} tokens per "
            "model and its larger scales; its text is generated prose, and its models trained at length "
            "{scale_length}.",
            trained=trained,
            scale=limits["scale"],
            scale_length=limits["scale_length"],
        )
    why = (
        say("posenc ships no results of its ladder")
        if not limits["shipped"]
        else say("even the smallest scale of posenc's ladder trained longer")
    )
    return say(
        "What this budget ({trained}) can tell is taken from these seeds alone: {why}, so nothing is "
        "known here about more training or larger models.",
        trained=trained,
        why=why,
    )


def _at_length(verdicts: Json, seeds: int, seen: Words) -> list[Words]:
    at = say("At {times:g} times the trained length", times=verdicts["times"])
    if verdicts["times"] == 1:
        at = say("At the trained length")
    if not (verdicts["separates"] or verdicts["changes"] or verdicts["unsettled"]):
        return []  # no two encodings have a score
    told = list[Words]()
    if verdicts["separates"]:
        apart = [say(" ({by:.2f} bits)", by=by) for _, _, by in verdicts["separates"]]
        rows = _listed([say("{a} from {b}", a=title(a), b=title(b)) for a, b, _ in verdicts["separates"]], apart)
        told.append(say("{at}, it can separate {rows}.", at=at, rows=rows))
    else:
        told.append(say("{at}, it can separate no pair of encodings.", at=at))
    if verdicts["unsettled"]:
        rows = _listed([say("{a} and {b}", a=title(a), b=title(b)) for a, b in verdicts["unsettled"]])
        told.append(
            say(
                "{at}, it cannot rank {rows}: {seen}, their seeds have both orders, or they are so close that "
                "{seeds} may not show which is better.",
                at=at,
                rows=rows,
                seen=seen,
                seeds=numbered(seeds, "seed", "seeds"),
            )
        )
    if verdicts["changes"]:
        rows = _listed([say("{a} before {b}", a=title(a), b=title(b)) for a, b in verdicts["changes"]])
        told.append(say("{at}, an order changes with more training or a larger model: {rows}.", at=at, rows=rows))
    return told


def _listed(pairs: list[Words], notes: list[Words] | None = None) -> Words:
    """At most MOST pairs, and the number of the others."""
    shown = [joined(of, "", "") for of in zip(pairs, notes or [Words("")] * len(pairs), strict=True)][:MOST]
    rows, rest = joined(shown, ", ", "、"), len(pairs) - len(shown)
    if not rest:
        return rows
    return say("{rows} and {more}", rows=rows, more=Words(counted(rest, "more pair", "more pairs"), str(len(pairs))))
