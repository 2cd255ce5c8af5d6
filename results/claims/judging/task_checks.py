"""Checks of published claims about tasks other than the language model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from judging.deciding import NOTHING, Groups, Link, Means, Ours, Score, above, best_first, decide, paired, worst_first
from judging.our_scores import (
    PLAIN,
    RETRIEVAL,
    TEXT,
    Found,
    Judge,
    Untested,
    arm_of,
    changed,
    length_of,
    listed,
    place,
    reachable,
    rise,
    score,
    task_of,
    times,
    untrained_buckets,
)
from judging.say import say
from posenc.lab.findings import statistics
from posenc.lab.findings.criteria import BREAKS, FLAT
from posenc.lab.findings.titles import change_title, title
from posenc.support.languages import Words

MASKED, COPY, ORDER = "masked_language_model", "copy", "word_order"
CHANCE = 0.05  # exact match: a score this near to one half counts as chance


def blind(task_name: str, links: Callable[[Found, Sequence[str]], Sequence[Link]], unit: Words) -> Judge:
    """Compares NoPE with the encodings that learnt the task: links(task, their names)."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, task_name)
        learnt = [arm for arm in task["arms"] if arm["learnt"] and arm["name"] != "nope"]
        if not learnt:
            raise Untested(say("{title}: nothing else learnt it", title=Words(**task["title"])))
        read = [arm_of(task, "nope", learnt=False), *(arm_of(task, arm["name"]) for arm in learnt)]
        scores = {arm["name"]: score(arm, task["length"]) for arm in read}
        return decide(scores, links(task, [arm["name"] for arm in learnt]), listed(scores, unit=unit))

    return judge


def masked_fails(task: Found, others: Sequence[str]) -> list[Link]:
    """NoPE has more bits than every other."""
    return [_behind(other, BREAKS["bits"]) for other in others]


def _behind(other: str, by: float) -> Link:
    says = Words("{nope} ≥ {other} + {by:g}").filled(nope=title("nope"), other=title(other), by=by)
    return Link(says, lambda at: at["nope"] - at[other] - by, shows="nope", names=("nope", other))


def at_chance(task: Found, others: Sequence[str]) -> list[Link]:
    chance = task["chance"][str(task["length"])]
    says = say("NoPE within {chance:g} of chance", chance=CHANCE)
    return [Link(says, lambda at: CHANCE - abs(at["nope"] - chance), shows="nope", names=("nope",))]


def copies(groups: Groups, *notes: Words, equal: bool = False) -> Judge:
    """Mean exact match of copy above the trained length, to twice it, the best group first; `equal` allows ties."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, COPY)
        scores, left, without = reachable(groups, lambda name: _beyond(task, name))
        return decide(
            scores,
            best_first(left, equal=equal),
            listed(scores, form=".3f", unit=PLAIN),
            without,
            untrained_buckets(task, 2 * task["length"], scores),
            *notes,
        )

    return judge


def _beyond(task: Found, name: str) -> Score:
    lengths = [length for length in task["lengths"] if task["length"] < length <= 2 * task["length"]]
    if not lengths:
        raise Untested(say("no longer length up to 2× was scored"))
    arm = arm_of(task, name)
    each = [score(arm, length) for length in lengths]
    seeds = set.intersection(*(set(score.seeds) for score in each))
    mean = sum(score.mean for score in each) / len(each)
    rows = zip(*(score.rows for score in each), strict=True) if len({len(score.rows) for score in each}) == 1 else ()
    return Score(
        mean,
        {seed: sum(score.seeds[seed] for score in each) / len(each) for seed in seeds},
        [sum(of) / len(each) for of in rows],
    )


def mean_ranks(*groups: Sequence[str]) -> Judge:
    """Over every exact-match task, seed and longer length at which all have a score; the worst group first."""

    def judge(findings: Found) -> Ours:
        names = {name for group in groups for name in group}
        blocks = defaultdict[str, list[Means]](list)
        for task in (task for task in findings["tasks"] if task["measure"] == "exact"):
            cells = {arm["name"]: arm["cells"] for arm in task["arms"] if arm["learnt"] and arm["name"] in names}
            for length in (str(length) for length in task["lengths"] if length > task["length"]):
                for seed in map(str, findings["seeds"]):
                    values = {name: cell[length]["seeds"].get(seed) for name, cell in cells.items()}
                    blocks[seed].append({name: value for name, value in values.items() if value is not None})
        every = statistics.mean_ranks("exact", [block for of in blocks.values() for block in of], sorted(names))
        if every is None:
            raise Untested(say("no exact task was learnt by all five"))
        by_seed = {seed: statistics.mean_ranks("exact", of, sorted(names)) for seed, of in blocks.items()}
        ranks = {
            name: Score(mean, {seed: means[name] for seed, means in by_seed.items() if means is not None})
            for name, mean in every.items()
        }
        whole = sum(block.keys() >= names for of in blocks.values() for block in of)
        complete = say("{whole} complete cells", whole=whole)
        buckets = (
            untrained_buckets(task, task["lengths"][-1], names) for task in findings["tasks"] if task["measure"] == "exact"
        )
        untrained = next((note for note in buckets if note.en), NOTHING)
        return decide(ranks, worst_first(groups), listed(ranks, unit=PLAIN), complete, untrained)

    return judge


def retrieves_nothing(findings: Found) -> Ours:
    """RoPE at twice the trained length."""
    task = task_of(findings, *RETRIEVAL)
    length, arm = length_of(task, 2), arm_of(task, "rope")
    scores = paired({"far": score(arm, length), "home": score(arm, task["length"])})
    home, far, at = f"{scores['home'].mean:.2f}", f"{scores['far'].mean:.2f}", times(task, length)
    name = Words(**task["title"])
    words = say("{name}: RoPE 1× {home}, {at} {far}", name=name, home=home, at=at, far=far)
    says = say("{at} < half of 1×", at=at)
    return decide(scores, [Link(says, lambda at: BREAKS["exact"] * at["home"] - at["far"], strict=True)], words)


def flat_is_not_use(findings: Found) -> Ours:
    """ALiBi is flat on text but retrieves less than NoPE."""
    text, task = task_of(findings, TEXT), task_of(findings, *RETRIEVAL)
    lost, length = rise(arm_of(text, "alibi"), length_of(text, None)), length_of(task, None)
    scores = paired({name: score(arm_of(task, name), length) for name in ("nope", "alibi")})
    scores_listed = listed(scores, place(task, length), unit=PLAIN)
    words = say("{scores}; ALiBi on text {mean:+.3f} bits", scores=scores_listed, mean=lost.mean)
    flat = Link(say("ALiBi on text ≤ {bits:g}", bits=FLAT["bits"]), _flat)
    return decide({**scores, "lost": lost}, [flat, above("nope", "alibi", shows="alibi")], words)


def _flat(at: Means) -> float:
    return FLAT["bits"] - at["lost"]


def changes_retrieve(findings: Found) -> Ours:
    task = task_of(findings, *RETRIEVAL)
    length = length_of(task, None)
    scores = paired({change: changed(task, change, length) for change in ("ntk", "yarn", "interpolation")})
    words = listed(scores, place(task, length), unit=PLAIN, called=change_title)
    return decide(scores, best_first([["ntk", "yarn"], ["interpolation"]], called=change_title), words)


def exact_order(task_name: str, at: float, *groups: Sequence[str]) -> Judge:
    """Exact match at a multiple of the trained length, the best group first. Whether it was learnt does not matter: a claim
    on an exact task is also about what an encoding fails to learn.
    """

    def judge(findings: Found) -> Ours:
        task = task_of(findings, task_name)
        length = length_of(task, at)
        scores, left, without = reachable(groups, lambda name: score(arm_of(task, name, learnt=False), length))
        return decide(scores, best_first(left), listed(scores, place(task, length), ".3f", PLAIN), without)

    return judge


def keeps(task_name: str, name: str, at: float) -> Judge:
    """Exact match at a multiple of the trained length is nearly that of the trained length."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, task_name)
        length, arm = length_of(task, at), arm_of(task, name)
        scores = paired({"home": score(arm, task["length"]), "far": score(arm, length)})
        home, far = (f"{scores[where].mean:.2f}" for where in ("home", "far"))
        words = say("{name} 1× {home}, {at} {far}", name=title(name), home=home, at=times(task, length), far=far)
        says = say("{task} ≥ {exact:g} of 1×", task=times(task, length), exact=FLAT["exact"])
        return decide(scores, [Link(says, lambda at: at["far"] - FLAT["exact"] * at["home"])], words)

    return judge


def retrieves_best(name: str, others: Sequence[str]) -> Judge:
    """Retrieval at the longest length."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, *RETRIEVAL)
        length = length_of(task, None)
        scores, left, without = reachable([[name], others], lambda other: score(arm_of(task, other, learnt=False), length))
        return decide(scores, best_first(left), listed(scores, place(task, length), ".3f", PLAIN), without)

    return judge
