"""The findings as sentences in both languages; every number is computed from the findings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from posenc.lab.findings import property_sentences, recipes
from posenc.lab.findings.comparing import after_training, behind, best, first, pairing, ranked
from posenc.lab.findings.criteria import CONVERGED, ENOUGH, FEWEST, FLAT, MISSING, NOT_LEARNT, ROUNDING
from posenc.lab.findings.titles import change_title, main_task, title
from posenc.lab.findings.wording import (
    because,
    bounds,
    counted_seeds,
    difference,
    listed,
    loss,
    name,
    numbered,
    score,
    task_title,
    times,
    trained_seeds,
    trains_on,
)
from posenc.lab.records.record import LAST_WINDOW
from posenc.lab.say import say
from posenc.lab.tasks.task import CUT
from posenc.lab.trial.training import CAUSAL_ONLY
from posenc.support.languages import Words, joined

Json = Mapping[str, Any]


def sentences(findings: Json) -> list[Words]:
    """The most important first; nothing is said about what was not measured."""
    main = main_task(findings)
    told = (
        _trained(findings),
        _at_trained_length(main),
        _detectable(main),
        _still_improving(findings),
        _last_fifth_of_ranked(main),
        *_at_longest_length(main),
        _gain(main),
        _cannot(main),
        _not_learnt(findings),
        *_without_positions(findings),
        _after_training(main),
        _exact_tasks(findings, main),
        _training_time(findings),
        *property_sentences.sentences(findings),
        _missing(findings),
        _seeds(findings),
    )
    return [words for words in told if words is not None]


# What was trained ---------------------------------------------------------------------------------------------------


def _trained(findings: Json) -> Words:
    arms = {arm["name"] for task in findings["tasks"] for arm in task["arms"]}
    names = [task_title(task) for task in findings["tasks"]]
    size, each = findings["size"], counted_seeds(findings)
    cannot = sum(arm["state"] == f"cannot: {CAUSAL_ONLY}" for task in findings["tasks"] for arm in task["arms"])
    untrained = cannot * len(findings["seeds"])
    failed = findings["trials"]["failed"]
    there, planned = (max(0, findings["trials"][which] - untrained) for which in ("found", "expected"))
    there = max(0, there - failed)
    trained = say("{models} trained", models=numbered(there, "model was", "models were"))
    if there < planned:
        trained = say("{there} of {planned} models have been trained", there=there, planned=planned)
    which, begun = say("{encodings}", encodings=numbered(len(arms), "encoding", "encodings")), len(trained_seeds(findings))
    if 0 < begun < len(arms):
        which = say("{begun} of {n_arms} encodings", begun=begun, n_arms=len(arms))
    return say(
        "{trained}: {which} with {each} each. {differ}. All have {layers}, d_model {d_model} and {heads}. Tasks: {tasks}.",
        trained=trained,
        which=which,
        each=each,
        differ=recipes.differ(findings),
        layers=numbered(size["n_layers"], "layer", "layers"),
        d_model=size["d_model"],
        heads=numbered(size["n_heads"], "head", "heads"),
        tasks=joined(names, ", ", "、"),
    )


# The main task ------------------------------------------------------------------------------------------------------


def _at_trained_length(task: Json) -> Words:
    arms, home, called = [arm for arm in task["arms"] if arm["learnt"]], task["length"], task_title(task)
    if all(arm["state"] == MISSING for arm in task["arms"]):
        return say("{called}: not run yet.", called=called)
    if not any(cell["mean"] is not None for arm in task["arms"] for cell in arm["cells"].values()):
        return say("{called}: no model has a score.", called=called)
    if not arms:
        return say("{called}: no encoding learnt the trained length at this budget, so none is ranked.", called=called)
    chance, ran = score(task, task["chance"][str(home)]), _ran(task)
    if not (finished := ranked(task)):
        return say(
            "{called}: {n_arms} of {ran} learnt the trained length {home}; chance gives {chance}. The best "
            "ones still improved at the end of training, so none is called the best.",
            called=called,
            n_arms=len(arms),
            ran=ran,
            home=home,
            chance=chance,
        )
    leader, *equals = best(task, finished, home)
    best_score = score(task, leader["cells"][str(home)]["mean"])
    learnt = say("{n_arms} of {ran} learnt this length.", n_arms=len(arms), ran=ran)
    if equals:
        others = joined(map(name, equals), ", ", "、")
        return say(
            "{called}: at the trained length {home}, {leader} has the best mean, {score}. It is undecided against {others} "
            "({pairing}, Holm's correction over all pairs); chance gives {chance}. {learnt}",
            pairing=pairing([arm["cells"][str(home)] for arm in finished]),
            called=called,
            home=home,
            leader=name(leader),
            score=best_score,
            others=others,
            chance=chance,
            learnt=learnt,
        )
    return say(
        "{called}: at the trained length {home}, {leader} is best with {score}{ahead}; chance gives {chance}. {learnt}",
        ahead=_ahead(task, leader, finished),
        called=called,
        home=home,
        leader=name(leader),
        score=best_score,
        chance=chance,
        learnt=learnt,
    )


def _ahead(task: Json, leader: Json, arms: Sequence[Json]) -> Words:
    """How far the best is ahead of the next, with the interval; nothing without a next."""
    home = str(task["length"])
    cells = {arm["name"]: arm["cells"][home] for arm in arms}
    ahead = [(behind(task, cells[leader["name"]], cells[arm["name"]]), arm) for arm in arms if arm is not leader]
    if not ahead:
        return Words("")
    by, nearest = min(ahead, key=lambda pair: math.fsum(pair[0].seeds))
    return say(", ahead of the next, {next}, by {by} (95 % interval)", next=name(nearest), by=difference(task, by))


def _ran(task: Json) -> Words:
    """The encodings, or those of them that have run."""
    planned, ran = len(task["arms"]), sum(arm["state"] != MISSING for arm in task["arms"])
    if ran < planned:
        return say("the {encodings} run", encodings=numbered(ran, "encoding that has", "encodings that have"))
    return say("{planned} encodings", planned=planned)


def _at_longest_length(task: Json) -> Iterator[Words]:
    far = task["lengths"][-1]
    kinds = {kind: [arm for arm in task["arms"] if arm["behaviour"] == kind] for kind in ("flat", "fades", "breaks")}
    at = times(task, far)
    flat, broken = bounds(task)
    held = say("on the same targets, ") if task["measure"] == "bits" else Words("")
    if task["against"] == LAST_WINDOW and task["measure"] == "bits":
        held = say("against the same model cut to the trained length, ")
    if not kinds["flat"] and (kinds["fades"] or kinds["breaks"]):
        yield say("At {at} the trained length, no encoding stays as good as it was ({flat}).", at=at, flat=flat)
    texts = {
        "flat": say(
            "At {at} the trained length, {held}these stay as good ({flat}): {{rows}}.", at=at, held=held, flat=flat
        ),
        "fades": say("These get worse slowly: {rows}."),
        "breaks": say("These break ({broken}): {{rows}}.", broken=broken),
    }
    for kind, text in texts.items():
        if arms := sorted(kinds[kind], key=lambda arm: arm["rise"][str(far)]["mean"]):
            rows = listed(arms, lambda arm: _lost(task, arm, far))
            yield text.filled(rows=rows)


def _lost(task: Json, arm: Json, far: int) -> Words:
    """+0.12 bits; with few seeds beside others, +0.12 bits, 1 seed; of an arm that is not ranked, still improving."""
    lost, seeds = loss(task, arm["rise"][str(far)]["mean"]), len(arm["rise"][str(far)]["seeds"])
    most = max(len(arm["rise"][str(far)]["seeds"]) for arm in task["arms"] if str(far) in arm["rise"])
    if seeds < min(FEWEST, most):
        lost = say("{lost}, {seeds}", lost=lost, seeds=numbered(seeds, "seed", "seeds"))
    return say("{lost}, still improving", lost=lost) if arm["converged"] is False else lost


def _gain(task: Json) -> Words | None:
    """What the longest context is worth on the same targets, by the encoding that gains most from it."""
    far = task["lengths"][-1]
    if task["against"] == LAST_WINDOW:
        return _gained(task, str(far))
    gains = {name(arm): -arm["rise"][str(far)]["mean"] for arm in task["arms"] if str(far) in arm["rise"]}
    if task["measure"] != "bits" or not gains:
        return None
    most_of, at = max(gains, key=lambda who: gains[who]), times(task, far)
    most = max(gains[most_of], 0)
    if most >= FLAT["bits"]:
        return say(
            "On the same targets, {most_of} gains most from the trained length to {at}: {most:.3f} bits.",
            most_of=most_of,
            at=at,
            most=most,
        )
    above = math.ceil(1000 * (most - ROUNDING)) / 1000
    more = say("more than {above:.3f} bits", above=above)
    if round(most, 3) == 0:
        more = say("anything")
    return say(
        "On the same targets, mean over seeds, no encoding gains {more} from the trained length to {at}: these models do "
        "not use the added context, whatever the text offers, and staying as good shows only that nothing breaks.",
        more=more,
        at=at,
    )


def _gained(task: Json, far: str) -> Words | None:
    """What each encoding that learnt the trained length gains beyond it, the most first, with the known predictors."""
    arms = [arm for arm in task["arms"] if arm["learnt"] and far in arm["gained"]]
    if not arms:
        return None
    arms.sort(key=lambda arm: -arm["gained"][far]["mean"])
    rows = listed(arms, lambda arm: _share(task, arm, arm["gained"][far]))
    said = say(
        "On the same targets, against the same model cut to the trained length {home}, context up to {far} gains: {rows}.",
        home=task["length"],
        far=far,
        rows=rows,
    )
    controls = task["controls"]
    if controls is None or controls["refused"]:
        return said
    best, cut = controls["optimum"], controls["predictors"][CUT]
    offered = say(
        "The optimum gains {best:.3f} bits on these rows (95 % interval {low:.3f} to {high:.3f}), cut to the trained "
        "length {cut:.0f} %.",
        best=best["mean"],
        low=best["interval"][0],
        high=best["interval"][1],
        cut=100 * cut["share"],
    )
    if task["measure"] == "exact":
        return said
    return joined([said, offered], " ", "")


def _share(task: Json, arm: Json, found: Json) -> Words:
    """85 %, 83 to 87, of the optimum's gain; 0.24 bits where that is not known."""
    told = loss(task, -found["mean"]) if found["share"] is None else _of_optimum(found)
    return say("{lost}, still improving", lost=told) if arm["converged"] is False else told


def _of_optimum(found: Json) -> Words:
    low, high = found["share_interval"]
    return say(
        "{share:.0f} % of what the optimum gains, {low:.0f} to {high:.0f}",
        share=100 * found["share"],
        low=100 * low,
        high=100 * high,
    )


def _cannot(task: Json) -> Words | None:
    """Encodings that learnt the trained length and cannot represent longer ones."""
    stopped = []
    for arm in task["arms"]:
        ends = [length for length, cell in arm["cells"].items() if (cell["state"] or "").startswith("cannot")]
        if ends and not (arm["state"] or "").startswith("cannot"):
            why = because(arm["cells"][ends[0]]["state"].removeprefix("cannot: "))
            stopped.append(say("{arm} ({why})", arm=name(arm), why=why))
    if not stopped:
        return None
    rows = joined(stopped, ", ", "、")
    return say("These cannot process longer inputs: {rows}.", rows=rows)


def _after_training(task: Json) -> Words | None:
    if (compared := after_training(task)) is None:
        return None
    length, means, unsure = compared
    scores = {change: score(task, means[change]) for change in means}
    each = (joined((change_title(change), scores[change]), " ", " ") for change in means)
    rows, at = joined(each, ", ", "，"), times(task, length)
    return say(
        "With the frequencies or positions of the trained RoPE models changed, {training}, "
        "the scores at {at} are, the best first: {rows}{undecided}.",
        training=say("trained on where a name says so") if any(map(trains_on, means)) else say("and no further training"),
        at=at,
        rows=rows,
        undecided=_undecided(unsure),
    )


def _undecided(pairs: Sequence[tuple[str, str]]) -> Words:
    """Which neighbours of an order are not told apart."""
    if not pairs:
        return Words("")
    pairs_listed = joined((say("{a} and {b}", a=change_title(a), b=change_title(b)) for a, b in pairs), ", ", "、")
    return say("; undecided after Holm's correction: {pairs}", pairs=pairs_listed)


# All tasks ----------------------------------------------------------------------------------------------------------


def _not_learnt(findings: Json) -> Words | None:
    tasks = []
    for task in findings["tasks"]:
        arms = [arm for arm in task["arms"] if arm["state"] == NOT_LEARNT]
        if arms:
            rows = listed(arms, lambda arm, task=task: score(task, arm["cells"][str(task["length"])]["mean"]))  # type: ignore[misc]
            tasks.append(say("{task}: {rows}", task=task_title(task), rows=rows))
    if not tasks:
        return None
    rows = joined(tasks, "; ", "；")
    return say("Not learnt at this budget, and therefore not ranked: {rows}. More training may change this.", rows=rows)


def _detectable(task: Json) -> Words | None:
    if not task["detectable"]:
        return None
    differences = joined((_least(task, group["least"], group["seeds"]) for group in task["detectable"]), ", ", "，")
    return say(
        "The smallest difference between two encodings that their seeds could show at the trained length "
        "is {differences} ({pairing}, 5 % level, 80 % power, mean variance of the pairs, no correction for many pairs). "
        "A pair whose differences vary less can show less.",
        differences=differences,
        pairing=pairing([arm["cells"][str(task["length"])] for arm in task["arms"] if arm["learnt"]]),
    )


def _least(task: Json, least: float, seeds: int) -> Words:
    """0.02 bits for pairs with 5 seeds in common."""
    bits = task["measure"] == "bits"
    difference = say("{least:.2g} bits", least=least) if bits else say("{points:.1f} points", points=100 * least)
    return say("{difference} for pairs with {seeds} seeds in common", difference=difference, seeds=seeds)


def _still_improving(findings: Json) -> Words | None:
    tasks = []
    for task in findings["tasks"]:
        if arms := [arm for arm in task["arms"] if arm["learnt"] and arm["converged"] is False]:
            rows = listed(arms, _last_fifth)
            tasks.append(say("{task}: {rows}", task=task_title(task), rows=rows))
    if not tasks:
        return None
    rows = joined(tasks, "; ", "；")
    return say(
        "Still improving at the end of training, by more than {converged:g} bits of training loss, or of the loss at "
        "the longest length, in the last fifth of the steps, and therefore not ranked: {rows}.",
        converged=CONVERGED,
        rows=rows,
    )


def _last_fifth(arm: Json) -> Words:
    fell, changes = _fell(arm), arm["far_changes"].values()
    if fell > CONVERGED or not changes:
        return say("{arm:.2f} bits", arm=fell)
    return say("{moved:+.2f} bits at the longest length", moved=math.fsum(changes) / len(changes))


def _fell(arm: Json) -> float:
    """Bits by which the training loss fell in the last fifth of the steps, mean over seeds."""
    slopes: Mapping[str, float] = arm["slopes"]
    return math.fsum(slopes.values()) / len(slopes)


def _last_fifth_of_ranked(task: Json) -> Words | None:
    """How much the ranked encodings still improved, where that is more than their seeds can show."""
    fell = [_fell(arm) for arm in ranked(task) if arm["slopes"]]
    least = min((group["least"] for group in task["detectable"]), default=math.inf)
    if task["measure"] != "bits" or not fell or max(fell) <= least:
        return None
    return say(
        "The training loss of the ranked encodings fell by {least:.2f} to {most:.2f} bits in that fifth. "
        "This is more than the smallest difference that their seeds could show, so small differences at "
        "the trained length may change with more training.",
        least=min(fell),
        most=max(fell),
    )


def _without_positions(findings: Json) -> Iterator[Words]:
    """Compares NoPE with the best encoding under bidirectional attention."""
    for task in findings["tasks"]:
        home, called = str(task["length"]), task_title(task)
        nope = next((arm for arm in task["arms"] if arm["name"] == "nope"), None)
        others = [arm for arm in task["arms"] if arm["learnt"] and arm["name"] != "nope"]
        if task["causal"] or nope is None or nope["cells"][home]["mean"] is None or not others:
            continue
        leader = first(task, others, task["length"])
        ours, theirs = (score(task, arm["cells"][home]["mean"]) for arm in (nope, leader))
        known = Words("")
        if task["measure"] == "exact":
            guess = score(task, task["chance"][home])
            known = say("; guessing gives {guess}", guess=guess)
        elif task["baseline"] is not None:
            least = score(task, task["baseline"])
            known = say("; a model that ignores the context gets {least}", least=least)
        limit = Words("") if nope["learnt"] else say(", which counts as not learnt")
        yield say(
            "{called}, bidirectional: a model without positions has {ours}{limit}; one with {leader} has {theirs}{known}.",
            called=called,
            ours=ours,
            limit=limit,
            leader=name(leader),
            theirs=theirs,
            known=known,
        )


def _exact_tasks(findings: Json, main: Json) -> Words | None:
    """The encodings with the largest length factor, for each other task."""
    tasks = []
    for task in findings["tasks"]:
        arms, called = [arm for arm in ranked(task) if arm["factor"] is not None], task_title(task)
        if task is main or task["measure"] != "exact" or not arms:
            continue
        most = max(arm["factor"]["value"] for arm in arms)
        if most <= 1:
            tasks.append(say("{called}: none beyond the trained length", called=called))
            continue
        furthest = [arm for arm in arms if arm["factor"]["value"] == most]
        names = joined((name(arm) for arm in furthest), ", ", "、")
        more = any(arm["factor"]["censored"] for arm in furthest)
        reach = say(">{most:.3g}×", most=most) if more else say("{most:.3g}×", most=most)
        tasks.append(say("{called}: {names} ({reach})", called=called, names=names, reach=reach))
    if not tasks:
        return None
    rows = joined(tasks, "; ", "；")
    return say(
        "Largest factor of the trained length with at least {exact:.0%} of the exact match kept: {rows}.",
        exact=FLAT["exact"],
        rows=rows,
    )


def _training_time(findings: Json) -> Words | None:
    rows = (findings["cost"] or {"rows": {}})["rows"]
    times_of = {who: row["training"]["median"] for who, row in rows.items() if who != "nope" and row.get("training")}
    if not times_of:
        return None
    ordered = sorted(times_of, key=times_of.__getitem__)
    each = (say("{who} {times_of:.2f}×", who=title(who), times_of=times_of[who]) for who in ordered)
    rows_said = joined(each, ", ", "、")
    return say("Time of a training step relative to no encoding: {rows_said}.", rows_said=rows_said)


# How certain it is --------------------------------------------------------------------------------------------------


def _missing(findings: Json) -> Words | None:
    if not findings["missing"]:
        return None
    failed = sum(row["why"].startswith("failed") for row in findings["missing"])
    told = [say("{failed} failed", failed=failed)] if failed else []
    if waiting := len(findings["missing"]) - failed:
        told.append(say("{waiting} did not run", waiting=waiting))
    rows, of = joined(told, " and ", "，"), findings["trials"]["expected"]
    return say("Of {trials}, {rows}; their cells say so.", trials=numbered(of, "trial", "trials"), rows=rows)


def _seeds(findings: Json) -> Words | None:
    there = trained_seeds(findings)
    if not there:
        return None
    if findings["exploratory"] or max(there) < ENOUGH:
        return say(
            "With {seeds}, these results are exploratory: intervals over seeds need {enough}. Every seed is shown.",
            seeds=counted_seeds(findings),
            enough=ENOUGH,
        )
    fewer = Words("")
    if min(there) < ENOUGH:
        fewer = say(
            " Encodings with fewer seeds than {enough} have none over seeds: every seed is given. Two "
            "encodings are compared over the seeds that both have.",
            enough=ENOUGH,
        )
    return say(
        "Intervals are 95% intervals, over {seeds} and over documents. All encodings are scored on "
        "the same documents, which make up most of an interval: intervals may overlap although every "
        "seed has the same difference. The part of the seeds is narrow: the bootstrap of {enough} normal "
        "seeds covers the true mean in about 84 % of cases (simulated).{fewer}",
        seeds=counted_seeds(findings),
        enough=ENOUGH,
        fewer=fewer,
    )
