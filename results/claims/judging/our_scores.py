"""Our scores for a published claim.

    findings ─► our scores, mean and by seed ─► deciding
                      └ one is missing ─► not tested, and why

A length is taken at the same multiple of the trained one, or at the nearest scored one within a factor of 1.25. An encoding
that did not learn the trained length is left out and named, as long as enough others remain to compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

from judging.deciding import NOTHING, Groups, Ours, Score, Scores
from judging.say import say
from posenc.lab import tasks
from posenc.lab.experiment.change import TRAINED
from posenc.lab.findings.criteria import MISSING, NOT_LEARNT
from posenc.lab.findings.row_tokens import longest_bucket, row_tokens
from posenc.lab.findings.titles import change_title, title
from posenc.lab.findings.wording import because
from posenc.support.languages import Words, joined

Found = Mapping[str, Any]
TEXT = "language_model"
RETRIEVAL = ("passkey", "recall")
OWN = {"flip_flop.py:FlipFlop": say("Flip-flop memory")}  # tasks of this study
NEAR = 1.25  # a scored length may differ from the published one by this factor
BITS, PLAIN = say(" bits"), Words("")
STATES = {
    NOT_LEARNT: say("not learnt at this budget"),
    MISSING: say("not run"),
    "cannot": say("cannot", context="state"),
    "failed": say("failed", context="state"),
}


CONSULTED = "consulted"  # the key under which a check collects what it has read: (task, encoding)
MORE_STEPS = say("more training steps")
UNFINISHED = say("the trials that are missing: posenc lab run --resume")
LONGER = say("a longer scored length")
CUT_UP = say("cut_up: every length, in the language model of the experiment")


class Untested(Exception):
    """The claim cannot be judged by these results. `needs` says what it would take."""

    def __init__(self, words: Words, needs: Words = NOTHING) -> None:
        super().__init__(words.en)
        self.words, self.needs = words, needs


Judge = Callable[[Found], Ours]


# Looking up ---------------------------------------------------------------------------------------------------------


def task_of(findings: Found, *names: str) -> Found:
    """The first of them that was run."""
    for name in names:
        for task in findings["tasks"]:
            if task["name"] == name:
                return {**task, CONSULTED: findings.get(CONSULTED, [])}
    called = joined((OWN.get(name) or tasks.load(name).title for name in names), " or ", "或")
    needs = say("an experiment with the task {names}", names=names[0])
    raise Untested(say("not run: {called}", called=called), needs)


def arm_of(task: Found, name: str, *, learnt: bool = True) -> Found:
    """The arm; by default it must have learnt the trained length."""
    for arm in task["arms"]:
        if arm["name"] == name:
            task.get(CONSULTED, []).append((task["name"], name))
            if learnt and not arm["learnt"]:
                raise no_number(name, arm["state"])
            return dict(arm)
    needs = say("{name} among the encodings of the experiment", name=name)
    raise Untested(say("{name}: took no part", name=title(name)), needs)


def length_of(task: Found, times: float | None) -> int:
    """The scored length nearest to that multiple of the trained length; the longest for None."""
    if times is None:
        if task["lengths"][-1] == task["length"]:
            raise Untested(say("no longer length was scored"), LONGER)
        return int(task["lengths"][-1])
    off = {length: abs(math.log(length / task["length"] / times)) for length in task["lengths"]}
    best = min(off, key=lambda length: off[length])
    if off[best] > math.log(NEAR):
        needs = say("a scored length near {times:g} times the trained one", times=times)
        raise Untested(say("no length near {times:g}× was scored", times=times), needs)
    return int(best)


def score(arm: Found, length: int) -> Score:
    return _score(arm["name"], arm["cells"].get(str(length)))


def side_by_side(task: Found, arm: Found, length: int) -> Score:
    """The score of windows that do not overlap. With `cut_up: longest`, shorter ones are the first bytes of the longest."""
    cell = arm["non_overlapping"].get(str(length)) or arm["windows"].get(str(length))
    state = arm["cells"].get(str(length), {}).get("state")
    if cell is None and state is None:
        at = say("the trained length") if length == task["length"] else Words(times(task, length))
        name = title(arm["name"])
        raise Untested(say("{name}: not scored in windows side by side at {at}", name=name, at=at), CUT_UP)
    return _score(arm["name"], cell or arm["cells"].get(str(length)))


def _score(name: str, cell: Mapping[str, Any] | None) -> Score:
    if cell is None or cell["mean"] is None:
        raise no_number(name, None if cell is None else cell["state"])
    return Score(cell["mean"], cell["seeds"], cell.get("rows") or ())


def rise(arm: Found, length: int) -> Score:
    """The loss at a length beyond the trained one."""
    if str(length) not in arm["rise"]:
        raise no_number(arm["name"], arm["cells"].get(str(length), {}).get("state"))
    lost = arm["rise"][str(length)]
    return Score(lost["mean"], lost["seeds"], lost.get("rows") or ())


def no_number(name: str, state: str | None) -> Untested:
    state = state or "missing"
    kind, _, why = state.partition(": ")
    reason = STATES.get(kind, Words(kind))
    reason = joined((reason, because(why)), ": ", "：") if why else reason
    needs = {NOT_LEARNT: MORE_STEPS, MISSING: UNFINISHED}.get(state, NOTHING)
    return Untested(say("{name}: {state}", name=title(name), state=reason), needs)


def changed(task: Found, change: str, length: int) -> Score:
    """The trained RoPE model, with changed frequencies or unchanged."""
    arm = arm_of(task, "rope")
    for after in task["after"]:
        if after["change"] == change:
            return _score("rope", after["cells"].get(str(length)))
    if not change:
        return score(arm, length)
    needs = say("after: [{change}] in the experiment", change=change)
    name = change_title(change)
    raise Untested(say("{name} was not tried after training", name=name), needs)


def trained_on(task: Found, change: str) -> Found:
    """The RoPE model that was changed and then trained on, with its cells by length."""
    arm_of(task, "rope")
    for after in task["after"]:
        if after["change"].startswith(f"{change}{TRAINED}"):
            return {"name": "rope", **after}
    raise Untested(
        say("theirs was trained on at the longer length after the change; this experiment does not do that"),
        say("then: in the experiment, which trains on after the change"),
    )


# Telling -------------------------------------------------------------------------------------------------------------


def listed(
    scores: Scores, at: str | Words = "", form: str = ".2f", unit: Words = BITS, called: Callable[[str], Words] = title
) -> Words:
    """2×: Sinusoidal 3.22, RoPE 2.87 bits; the largest first."""
    ordered = sorted(scores.items(), key=lambda entry: -entry[1].mean)
    each = (Words("{name} {score}").filled(name=called(name), score=format(score.mean, form)) for name, score in ordered)
    names = joined([joined(each, ", ", "，"), unit], "", "")
    return say("{at}: {scores}", at=at, scores=names) if at else names


def times(task: Found, length: int) -> str:
    return f"{length / task['length']:.3g}×"


def place(task: Found, length: int) -> Words:
    return Words("{title} {times}").filled(title=Words(**task["title"]), times=times(task, length))


def untrained_buckets(task: Found, length: int, names: Container[str]) -> Words:
    """T5 beyond a trained length that its buckets reach past: they were not all trained. Otherwise empty."""
    if "t5" not in names or length <= task["length"]:
        return NOTHING
    trained, reach = row_tokens(task, task["length"]), longest_bucket(task)
    if trained >= reach:
        return NOTHING
    return say(
        "T5's buckets distinguish distances up to {reach}, and training at {trained} never uses those of "
        "longer distances; the T5 paper trained at 512",
        reach=reach,
        trained=trained,
    )


def reachable(groups: Groups, look_up: Callable[[str], Score]) -> tuple[dict[str, Score], Groups, Words]:
    """The existing scores, the groups without the missing ones, and the names left out.

    Raises Untested, with the reason of the first missing score, if fewer than two groups remain.
    """
    scores, gone = dict[str, Score](), list[Untested]()
    for name in (name for group in groups for name in group):
        try:
            scores[name] = look_up(name)
        except Untested as untested:
            gone.append(untested)
    left = [kept for group in groups if (kept := [name for name in group if name in scores])]
    if len(left) < min(2, len(groups)):
        raise gone[0]
    without = joined((error.words for error in gone), ", ", "，") if gone else NOTHING
    return scores, left, say("without {without}", without=without) if gone else NOTHING
