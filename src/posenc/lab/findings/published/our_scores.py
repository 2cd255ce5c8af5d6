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

from posenc.lab import tasks
from posenc.lab.findings.criteria import MISSING, NOT_LEARNT
from posenc.lab.findings.published.deciding import NOTHING, Groups, Ours, Score, Scores
from posenc.lab.findings.row_tokens import longest_bucket, row_tokens
from posenc.lab.findings.titles import change_title, title
from posenc.lab.findings.wording import because
from posenc.support.languages import Words, joined

Found = Mapping[str, Any]
TEXT = "language_model"
RETRIEVAL = ("passkey", "recall")
NEAR = 1.25  # a scored length may differ from the published one by this factor
BITS, PLAIN = Words(" bits", " 比特"), Words("", "")
STATES = {NOT_LEARNT: "此预算下未学会", MISSING: "未运行", "cannot": "无法做到", "failed": "训练失败"}


CONSULTED = "consulted"  # the key under which a check collects what it has read: (task, encoding)
MORE_STEPS = Words("more training steps", "更多训练步数")
UNFINISHED = Words("the trials that are missing: posenc lab run --resume", "补上缺少的试验：posenc lab run --resume")
LONGER = Words("a longer scored length", "评测更长的长度")
CUT_UP = Words(
    "cut_up: every length, in the language model of the experiment", "实验的语言模型任务中设置 cut_up: every length"
)


class Untested(Exception):
    """The claim cannot be judged by these results. `needs` says what it would take."""

    def __init__(self, en: str, zh: str, needs: Words = NOTHING) -> None:
        super().__init__(en)
        self.words, self.needs = Words(en, zh), needs


Judge = Callable[[Found], Ours]


# Looking up ---------------------------------------------------------------------------------------------------------


def task_of(found: Found, *names: str) -> Found:
    """The first of them that was run."""
    for name in names:
        for task in found["tasks"]:
            if task["name"] == name:
                return {**task, CONSULTED: found.get(CONSULTED, [])}
    called = joined((tasks.load(name).title for name in names), " or ", "或")
    needs = Words(f"an experiment with the task {names[0]}", f"含有任务 {names[0]} 的实验")
    raise Untested(f"not run: {called.en}", f"未运行：{called.zh}", needs)


def arm_of(task: Found, name: str, *, learnt: bool = True) -> Found:
    """The arm; by default it must have learnt the trained length."""
    for arm in task["arms"]:
        if arm["name"] == name:
            task.get(CONSULTED, []).append((task["name"], name))
            if learnt and not arm["learnt"]:
                raise no_number(name, arm["state"])
            return dict(arm)
    needs = Words(f"{name} among the encodings of the experiment", f"实验的编码中要有 {name}")
    raise Untested(f"{title(name).en}: took no part", f"{title(name).zh}：未参与", needs)


def length_of(task: Found, times: float | None) -> int:
    """The scored length nearest to that multiple of the trained length; the longest for None."""
    if times is None:
        if task["lengths"][-1] == task["length"]:
            raise Untested("no longer length was scored", "没有评测更长的长度", LONGER)
        return int(task["lengths"][-1])
    off = {length: abs(math.log(length / task["length"] / times)) for length in task["lengths"]}
    best = min(off, key=lambda length: off[length])
    if off[best] > math.log(NEAR):
        needs = Words(f"a scored length near {times:g} times the trained one", f"在训练长度约 {times:g} 倍处评测")
        raise Untested(f"no length near {times:g}× was scored", f"没有评测 {times:g}× 附近的长度", needs)
    return int(best)


def score(arm: Found, length: int) -> Score:
    return _score(arm["name"], arm["cells"].get(str(length)))


def side_by_side(task: Found, arm: Found, length: int) -> Score:
    """The score of windows that do not overlap. With `cut_up: longest`, only the longest length has one."""
    cell, state = arm["non_overlapping"].get(str(length)), arm["cells"].get(str(length), {}).get("state")
    if cell is None and state is None:
        at = Words("the trained length", "训练长度") if length == task["length"] else Words(*(times(task, length),) * 2)
        name = title(arm["name"])
        en, zh = (
            f"{name.en}: not scored in windows side by side at {at.en}",
            f"{name.zh}：没有在{at.zh}上以首尾相接的窗口评测",
        )
        raise Untested(en, zh, CUT_UP)
    return _score(arm["name"], cell or arm["cells"].get(str(length)))


def _score(name: str, cell: Mapping[str, Any] | None) -> Score:
    if cell is None or cell["mean"] is None:
        raise no_number(name, None if cell is None else cell["state"])
    return Score(cell["mean"], cell["seeds"])


def rise(arm: Found, length: int) -> Score:
    """The loss at a length beyond the trained one."""
    if str(length) not in arm["rise"]:
        raise no_number(arm["name"], arm["cells"].get(str(length), {}).get("state"))
    lost = arm["rise"][str(length)]
    return Score(lost["mean"], lost["seeds"])


def no_number(name: str, state: str | None) -> Untested:
    state = state or "missing"
    kind, _, why = state.partition(": ")
    zh = STATES.get(kind, kind) + f"：{because(why).zh}" * bool(why)
    en = "not run" if state == "missing" else state
    needs = {NOT_LEARNT: MORE_STEPS, MISSING: UNFINISHED}.get(state, NOTHING)
    return Untested(f"{title(name).en}: {en}", f"{title(name).zh}：{zh}", needs)


def changed(task: Found, change: str, length: int) -> Score:
    """The trained RoPE model, with changed frequencies or unchanged."""
    arm = arm_of(task, "rope")
    for after in task["after"]:
        if after["change"] == change:
            return _score("rope", after["cells"].get(str(length)))
    if not change:
        return score(arm, length)
    needs = Words(f"after: [{change}] in the experiment", f"实验设置 after: [{change}]")
    name = change_title(change)
    raise Untested(f"{name.en} was not tried after training", f"训练后未试：{name.zh}", needs)


# Telling -------------------------------------------------------------------------------------------------------------


def listed(
    scores: Scores, at: str | Words = "", form: str = ".2f", unit: Words = BITS, called: Callable[[str], Words] = title
) -> Words:
    """2×: Sinusoidal 3.22, RoPE 2.87 bits; the largest first."""
    ordered = sorted(scores.items(), key=lambda entry: -entry[1].mean)
    each = (Words(*(f"{word} {one.mean:{form}}" for word in called(name))) for name, one in ordered)
    said, where = joined(each, ", ", "，"), at if isinstance(at, Words) else Words(at, at)
    return Words(f"{where.en}{': ' * bool(at)}{said.en}{unit.en}", f"{where.zh}{'：' * bool(at)}{said.zh}{unit.zh}")


def times(task: Found, length: int) -> str:
    return f"{length / task['length']:.3g}×"


def place(task: Found, length: int) -> Words:
    return Words(*(f"{word} {times(task, length)}" for word in Words(**task["title"])))


def untrained_buckets(task: Found, length: int, names: Container[str]) -> Words:
    """T5 beyond a trained length that its buckets reach past: they were not all trained. Otherwise empty."""
    if "t5" not in names or length <= task["length"]:
        return NOTHING
    trained, reach = row_tokens(task, task["length"]), longest_bucket(task)
    if trained >= reach:
        return NOTHING
    return Words(
        f"T5's buckets distinguish distances up to {reach}, and training at {trained} never uses those of longer "
        "distances; the T5 paper trained at 512",
        f"T5 的距离桶一直区分到 {reach}，训练长度却是 {trained}，更远的桶从未训练过；T5 论文的训练长度是 512",
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
    without = joined((one.words for one in gone), ", ", "，") if gone else NOTHING
    return scores, left, Words(f"without {without.en}", f"未计入 {without.zh}") if gone else NOTHING
