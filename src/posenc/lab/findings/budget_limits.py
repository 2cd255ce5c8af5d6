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
from posenc.lab.findings.wording import counted
from posenc.support.languages import Words, joined

Json = Mapping[str, Any]
Scores = Mapping[str, Mapping[str, float]]  # by encoding and seed
DIGEST = "ladder.json"  # report/ladder.json of the ladder's folder, shipped with the package
NOTHING_TO_COMPARE = Words(
    "This budget can tell nothing about which encoding is better: fewer than two learnt the trained length.",
    "此预算无法说明哪种编码更好：学会训练长度的不足两种。",
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
    found: Json | None = json.loads(path.read_text("utf-8")) if path.is_file() else None
    return found


def budget_limits(task: Json, seeds: int, ladder: Json | None) -> dict[str, Any]:
    """What the main task of a comparison with this many seeds can tell, at the trained and at the longest length."""
    number = None if ladder is None or ladder["task"]["name"] != task["name"] else scale_for(task, ladder)
    names = [arm["name"] for arm in task["arms"] if arm["learnt"]]
    lengths = list(dict.fromkeys((task["length"], task["lengths"][-1])))
    if number is None or ladder is None:
        scores = [{arm["name"]: arm["cells"][str(n)]["seeds"] for arm in task["arms"]} for n in lengths]
        each = [_verdicts(n / task["length"], names, [one], seeds) for n, one in zip(lengths, scores, strict=True)]
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
        "lengths": [one._asdict() for one in each],
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
    found = Verdicts(times, [], [], [])
    for (a, b), differences in pairs.items():
        if not _one_way(differences) or not _shown(differences, seeds):
            found.unsettled.append((a, b))
            continue
        better, worse = (a, b) if _mean(differences) < 0 else (b, a)
        later = [rung for rung in rungs[1:] if rung.get(a) and rung.get(b)]
        if all(_mean(list(rung[better].values())) < _mean(list(rung[worse].values())) for rung in later):
            found.separates.append((better, worse, abs(_mean(differences))))
        else:
            found.changes.append((better, worse))
    found.separates.sort(key=lambda pair: -pair[2])
    return found


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
    return all(one > 0 for one in differences) or all(one < 0 for one in differences)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# As sentences ---------------------------------------------------------------------------------------------------------


def sentences(limits: Json) -> list[Words]:
    """What this budget can separate, what it cannot rank, and where the evidence comes from."""
    seen = Words("here", "此处") if limits["scale"] is None else Words("in the ladder", "在阶梯实验中")
    told = [words for one in limits["lengths"] for words in _at_length(one, limits["seeds"], seen)]
    if limits["unknown"]:
        told.append(_not_in_the_ladder(limits["unknown"]))
    return [_evidence(limits), *told] if told else [NOTHING_TO_COMPARE]


def _not_in_the_ladder(names: Sequence[str]) -> Words:
    rows = joined([title(name) for name in names], ", ", "、")
    return Words(
        f"The ladder did not train {rows.en}: whether this budget can rank them is not known.",
        f"阶梯实验没有训练 {rows.zh}：此预算能否排出它们的先后，尚不可知。",
    )


def _evidence(limits: Json) -> Words:
    seeds, tokens = limits["seeds"], limits["tokens"] or 0
    trained = Words(
        f"{counted(seeds, 'seed', 'seeds')} and {tokens:,} tokens per model", f"{seeds} 个种子、每个模型 {tokens:,} 个词元"
    )
    if limits["scale"] is not None:
        return Words(
            f"What this budget ({trained.en}) can tell is taken from posenc's ladder at {limits['scale']:,} tokens per "
            f"model and its larger scales; its text is generated prose, and its models trained at length "
            f"{limits['scale_length']}.",
            f"此预算（{trained.zh}）能说明什么，依据是 posenc 的阶梯实验：每个模型 {limits['scale']:,} 个词元的一级，"
            f"及更大的各级；其文本是生成的散文，训练长度为 {limits['scale_length']}。",
        )
    why = (
        Words("posenc ships no results of its ladder", "posenc 未附带阶梯实验的结果")
        if not limits["shipped"]
        else Words("even the smallest scale of posenc's ladder trained longer", "posenc 阶梯实验最小的一级也训练得更久")
    )
    return Words(
        f"What this budget ({trained.en}) can tell is taken from these seeds alone: {why.en}, so nothing is known here "
        "about more training or larger models.",
        f"此预算（{trained.zh}）能说明什么，只依据这些种子：{why.zh}，因此无法说明更多训练或更大模型时如何。",
    )


def _at_length(one: Json, seeds: int, seen: Words) -> list[Words]:
    at = Words(f"At {one['times']:g} times the trained length", f"在训练长度的 {one['times']:g} 倍处")
    if one["times"] == 1:
        at = Words("At the trained length", "在训练长度上")
    if not (one["separates"] or one["changes"] or one["unsettled"]):
        return []  # no two encodings have a score
    told = list[Words]()
    if one["separates"]:
        apart = [Words(f" ({by:.2f} bits)", f"（{by:.2f} 比特）") for _, _, by in one["separates"]]
        rows = _listed([_pair(a, b, "from", "与") for a, b, _ in one["separates"]], apart)
        told.append(Words(f"{at.en}, it can separate {rows.en}.", f"{at.zh}，它能区分：{rows.zh}。"))
    else:
        told.append(Words(f"{at.en}, it can separate no pair of encodings.", f"{at.zh}，它不能区分任何一对编码。"))
    if one["unsettled"]:
        rows = _listed([_pair(a, b, "and", "与") for a, b in one["unsettled"]])
        told.append(
            Words(
                f"{at.en}, it cannot rank {rows.en}: {seen.en}, their seeds have both orders, or they are so close that "
                f"{counted(seeds, 'seed', 'seeds')} may not show which is better.",
                f"{at.zh}，它排不出先后的有：{rows.zh}；{seen.zh}，它们的种子两种次序都有，"
                f"或相差太小，{seeds} 个种子不一定能看出哪种更好。",
            )
        )
    if one["changes"]:
        rows = _listed([_pair(a, b, "before", "优于") for a, b in one["changes"]])
        told.append(
            Words(
                f"{at.en}, an order changes with more training or a larger model: {rows.en}.",
                f"{at.zh}，训练更多或模型更大时次序会改变：{rows.zh}。",
            )
        )
    return told


def _pair(a: str, b: str, en: str, zh: str) -> Words:
    return Words(f"{title(a).en} {en} {title(b).en}", f"{title(a).zh} {zh} {title(b).zh}")


def _listed(pairs: list[Words], notes: list[Words] | None = None) -> Words:
    """At most MOST pairs, and the number of the others."""
    notes = notes or [Words("", "")] * len(pairs)
    shown = [Words(pair.en + note.en, pair.zh + note.zh) for pair, note in zip(pairs, notes, strict=True)][:MOST]
    rest = len(pairs) - len(shown)
    more = Words(f" and {counted(rest, 'more pair', 'more pairs')}", f"等 {len(pairs)} 对") if rest else Words("", "")
    rows = joined(shown, ", ", "、")
    return Words(rows.en + more.en, rows.zh + more.zh)
