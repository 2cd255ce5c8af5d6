"""Checks of published claims about language models: scores and losses by length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judging.deciding import Link, Ours, Score, above, at_least, decide, difference, paired, worst_first
from judging.our_scores import (
    BITS,
    TEXT,
    Found,
    Judge,
    Untested,
    arm_of,
    changed,
    length_of,
    listed,
    reachable,
    rise,
    score,
    side_by_side,
    task_of,
    times,
    trained_on,
    untrained_buckets,
)
from judging.say import say
from posenc.lab.findings.criteria import FLAT
from posenc.lab.findings.titles import change_title, title, training
from posenc.lab.findings.wording import because
from posenc.support.languages import Words, joined

# Bits a byte. The paper reports log₂(20.97 / 20.42) = 0.04 bits a word. A word of WikiText has about 5.6 bytes with its
# space, so this is 0.007 bits a byte; the limit is 0.1 bits a word.
COMPETITIVE = 0.02
SIDE_BY_SIDE = say("windows side by side, as theirs, so that each length has other bytes at its ends")
FIRST_BYTES = say("windows as theirs: of each window of {longest} bytes the first ones, by the loss at each position")
SAME_TARGETS = say("the same targets at every length")
THEY_CUT = say("theirs cuts the text into windows side by side; here every length has the same targets")


def in_windows(at: Sequence[float] | None, names: Sequence[str], judge: Judge) -> Judge:
    """Judges the scores of windows side by side, as Press et al. have them, at these multiples of the trained length (None:
    every scored length from it on). They are those of the text cut up into such windows; where it was not cut up, of the
    first bytes of the longest window at exactly these multiples. Without either, the scores on the same targets are judged.
    """

    def judged(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        for seen, remark in ((_cut_up(task, names, at), SIDE_BY_SIDE), (_first_bytes(task, names, at), FIRST_BYTES)):
            if seen is not None:
                ours = judge({**findings, "tasks": [seen]})
                return ours.noted(remark.filled(longest=task["lengths"][-1]))
        ours = judge(findings)
        return ours.noted(SAME_TARGETS)._replace(setting=THEY_CUT)

    return judged


def _cut_up(task: Found, names: Sequence[str], at: Sequence[float] | None) -> Found | None:
    """The task with the scores of the text cut up in the place of those on the same targets, None without all."""
    longer = [length for length in task["lengths"] if length >= task["length"]]
    lengths = longer if at is None else [length_of(task, multiple) for multiple in at]
    return _in_windows(task, names, lengths, "non_overlapping")


def _first_bytes(task: Found, names: Sequence[str], at: Sequence[float] | None) -> Found | None:
    """The task with the scores of the first bytes of the longest window, at exactly these multiples; None without all."""
    longer = [length for length in task["lengths"] if length >= task["length"]]
    lengths = longer if at is None else [round(multiple * task["length"]) for multiple in at]
    seen = _in_windows(task, names, lengths, "windows")
    return None if seen is None else {**seen, "lengths": lengths}


def _in_windows(task: Found, names: Sequence[str], lengths: Sequence[int], which: str) -> Found | None:
    """The task with the scores `which` at these lengths, None without those of an encoding that has scores."""
    arms, widths = [], list(map(str, lengths))
    for arm in (arm for arm in task["arms"] if arm["name"] in names):
        ends = arm["cells"][str(task["lengths"][-1])]
        wanted = [n for n in widths if arm["learnt"] and arm["cells"].get(n, ends)["mean"] is not None]
        if not arm[which].keys() >= set(wanted):
            return None
        cells = {n: arm[which][n] for n in wanted}
        home = cells.get(str(task["length"]))
        longer = [n for n in wanted if int(n) > task["length"]]
        lost = {} if home is None else {n: _lost(home, cells[n]) for n in longer}
        arms.append({**arm, "cells": {**arm["cells"], **cells}, "rise": lost})
    return {**task, "arms": arms}


def _lost(home: Found, far: Found) -> dict[str, Any]:
    scores = (Score(cell["mean"], cell["seeds"], cell.get("rows") or ()) for cell in (far, home))
    return difference(*scores)._asdict()


def order(at: float, *groups: Sequence[str]) -> Judge:
    """Bits on the same targets at a multiple of the trained length, the worst group first."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        length = length_of(task, at)
        scores, left, without = reachable(groups, lambda name: score(arm_of(task, name), length))
        return decide(
            scores, worst_first(left), listed(scores, times(task, length)), without, untrained_buckets(task, length, scores)
        )

    return judge


def loses(name: str, at: float | None, link: Link) -> Judge:
    """Bits lost by one encoding at a multiple of the trained length, or at the longest."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        length = length_of(task, at)
        scores = {name: rise(arm_of(task, name), length)}
        return decide(scores, [link], listed(scores, times(task, length), "+.3f"))

    return judge


def loses_most(first: str, others: Sequence[str], at: float) -> Judge:
    """Loses most of all, and more than nothing."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        length = length_of(task, at)
        scores, _, without = reachable([[first], others], lambda name: rise(arm_of(task, name), length))
        words, others_left = listed(scores, times(task, length), "+.3f"), (name for name in scores if name != first)
        links = [*(above(first, other, shows=other) for other in others_left), at_least(first, FLAT["bits"])]
        return decide(scores, links, words, without, untrained_buckets(task, length, scores))

    return judge


def stays_flat(name: str) -> Judge:
    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        arm, _ = arm_of(task, name), length_of(task, None)
        lost = {times(task, length): rise(arm, length) for length in task["lengths"] if task["length"] < length}
        rises = joined((Words(f"{at} {score.mean:+.3f}") for at, score in lost.items()), ", ", "，")
        links = [_flat(at) for at in lost]
        return decide(lost, links, joined([rises, BITS], "", ""))

    return judge


def _flat(at: str) -> Link:
    return Link(Words(f"{at} ≤ {FLAT['bits']:g}"), lambda lost: FLAT["bits"] - lost[at])


def gains_side_by_side(name: str) -> Judge:
    """Longer windows help when windows do not overlap, and much less on the same targets."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        arm, length = arm_of(task, name), length_of(task, None)
        home, far = (side_by_side(task, arm, at) for at in (task["length"], length))
        apart, same = difference(far, home), rise(arm, length)
        words = say(
            "{task}: {mean:+.3f} bits in windows side by side, {same:+.3f} on the same targets",
            task=times(task, length),
            mean=apart.mean,
            same=same.mean,
        )
        gains = Link(say("side by side < 0"), lambda at: -at["apart"], strict=True)
        half = Link(say("same targets > half of side by side"), lambda at: at["same"] - at["apart"] / 2, strict=True)
        return decide({"apart": apart, "same": same}, [gains, half], words)

    return judge


def best_at_longest(name: str) -> Judge:
    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        length = length_of(task, None)
        others = [arm["name"] for arm in task["arms"] if arm["learnt"] and arm["name"] != name]
        if not others:
            raise Untested(say("nothing else learnt the trained length"))
        scores, left, without = reachable([others], lambda other: score(arm_of(task, other), length))
        scores = {**scores, name: score(arm_of(task, name), length)}
        return decide(
            scores,
            worst_first([*left, [name]]),
            listed(scores, times(task, length)),
            without,
            untrained_buckets(task, length, scores),
        )

    return judge


def ends_with_training(name: str) -> Judge:
    """The encoding is undefined at the first longer length."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        arm, _ = arm_of(task, name), length_of(task, None)
        length = next(length for length in task["lengths"] if length > task["length"])
        state = arm["cells"][str(length)]["state"] or "has a number"
        kind, _, why = state.partition(": ")
        ending = say("cannot: {why}", why=because(why)) if kind == "cannot" else say("has a number")
        return Ours(say("{at}: {state}", at=times(task, length), state=ending), kind == "cannot")

    return judge


def competitive(name: str, other: str) -> Judge:
    """Whether `name` needs at most COMPETITIVE bits more than `other` at the trained length."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        scores = paired({word: score(arm_of(task, word), task["length"]) for word in (name, other)})
        near = Link(_at_most_behind(name, other), lambda at: COMPETITIVE - (at[name] - at[other]), shows=name)
        return decide(scores, [near], listed(scores, "1×"))

    return judge


def _at_most_behind(name: str, other: str) -> Words:
    return Words("{name} - {other} ≤ {most:g}").filled(name=title(name), other=title(other), most=COMPETITIVE)


def changes(at: float, names: Sequence[str], links: Sequence[Link]) -> Judge:
    """Bits of the changed models, and of the unchanged one at the trained length as `home`."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        length = length_of(task, at)
        return _with_home(task, length, {change: changed(task, change, length) for change in names}, links)

    return judge


def changes_trained_on(at: float, names: Sequence[str], links: Sequence[Link]) -> Judge:
    """`changes`, of models that were trained on after the change."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        length, after = length_of(task, at), {change: trained_on(task, change) for change in names}
        ours = _with_home(task, length, {change: score(arm, length) for change, arm in after.items()}, links)
        how = joined(filter(None, dict.fromkeys(training(arm["change"]) for arm in after.values())), "; ", "；")
        return ours.noted(say("trained on after the change: {how}", how=how))

    return judge


def _with_home(task: Found, length: int, scores: dict[str, Score], links: Sequence[Link]) -> Ours:
    home = changed(task, "", task["length"])
    words = say("{scores}; 1×: {mean:.2f}", scores=listed(scores, times(task, length), called=change_title), mean=home.mean)
    return decide({**scores, "home": home}, links, words)
