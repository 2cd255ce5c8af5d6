"""How a published claim is judged by what was found here: each judge looks up our numbers and decides an inequality.

    findings ─► our numbers, mean and by seed ─► does the inequality hold of the means? of how many single seeds?
                      └ one is missing ─► not tested, and why

A length is taken at the same multiple of the trained one, or the nearest scored within a factor 1.25. What an encoding
did not learn it is not judged by: it is left out and named, where enough is left to compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from posenc.bilingual import Words, joined
from posenc.lab import tasks
from posenc.lab.findings import statistics
from posenc.lab.findings.titles import title
from posenc.lab.verdict import BREAKS, FLAT, NOT_LEARNT

Found = Mapping[str, Any]
TEXT, MASKED, COPY, ORDER = "language_model", "masked_language_model", "copy", "word_order"
RETRIEVAL = ("passkey", "recall")
NEAR = 1.25  # a scored length stands for a published one up to this factor
COMPETITIVE = 0.1  # bits; log₂(20.97 / 20.42) = 0.04 in the paper
ALIKE = 0.05  # cosine: less is the noise of a small table
CHANCE = 0.05  # exact match: so near to one half is chance
NOTHING, BITS, PLAIN = Words("", ""), Words(" bits", " 比特"), Words("", "")
CHANGES = {
    "": Words("unchanged", "不改"),
    "interpolation": Words("interpolation", "位置插值"),
    "ntk": Words("NTK", "NTK"),
    "yarn": Words("YaRN", "YaRN"),
}
STATES = {NOT_LEARNT: "此预算下未学会", "missing": "未运行", "cannot": "无法做到", "failed": "训练失败"}


class Untested(Exception):
    """The claim cannot be judged by these results."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.words = Words(en, zh)


class Score(NamedTuple):
    """A number, and the same for every seed."""

    mean: float
    seeds: Mapping[str, float]


class Ours(NamedTuple):
    """Our numbers, whether the claim holds of them, and what else to know."""

    words: Words
    holds: bool
    why: Words = NOTHING


Judge = Callable[[Found], Ours]
Scores = Mapping[str, Score]  # by name
Means = Mapping[str, float]
Groups = Sequence[Sequence[str]]


# Looking up ---------------------------------------------------------------------------------------------------------


def task_of(found: Found, *names: str) -> Found:
    """The first of them that was run."""
    for name in names:
        for task in found["tasks"]:
            if task["name"] == name:
                return dict(task)
    called = joined((tasks.load(name).title for name in names), " or ", "或")
    raise Untested(f"not run: {called.en}", f"未运行：{called.zh}")


def arm_of(task: Found, name: str, *, learnt: bool = True) -> Found:
    """The arm, which by default has to have learnt the trained length."""
    for arm in task["arms"]:
        if arm["name"] == name:
            if learnt and not arm["learnt"]:
                raise no_number(name, arm["state"])
            return dict(arm)
    raise Untested(f"{title(name).en} took no part", f"{title(name).zh} 未参与")


def length_of(task: Found, times: float | None) -> int:
    """The scored length nearest to so many trained ones; the longest for None."""
    if times is None:
        if task["lengths"][-1] == task["length"]:
            raise Untested("no longer length was scored", "没有评测更长的长度")
        return int(task["lengths"][-1])
    off = {length: abs(math.log(length / task["length"] / times)) for length in task["lengths"]}
    best = min(off, key=lambda length: off[length])
    if off[best] > math.log(NEAR):
        raise Untested(f"no length near {times:g}× was scored", f"没有评测 {times:g}× 附近的长度")
    return int(best)


def score(arm: Found, length: int, cells: str = "cells") -> Score:
    return _score(arm["name"], arm[cells].get(str(length)))


def _score(name: str, cell: Mapping[str, Any] | None) -> Score:
    if cell is None or cell["mean"] is None:
        raise no_number(name, None if cell is None else cell["state"])
    return Score(cell["mean"], cell["seeds"])


def rise(arm: Found, length: int) -> Score:
    """What is lost at a length beyond the trained one."""
    if str(length) not in arm["rise"]:
        raise no_number(arm["name"], arm["cells"].get(str(length), {}).get("state"))
    lost = arm["rise"][str(length)]
    return Score(lost["mean"], lost["seeds"])


def no_number(name: str, state: str | None) -> Untested:
    state = state or "missing"
    zh = STATES.get(state) or STATES.get(state.partition(":")[0], state)
    en = "not run" if state == "missing" else state
    return Untested(f"{title(name).en}: {en}", f"{title(name).zh}：{zh}")


def changed(task: Found, change: str, length: int) -> Score:
    """The trained RoPE model with its frequencies changed, or as it is."""
    arm = arm_of(task, "rope")
    for after in task["after"]:
        if after["change"] == change:
            return _score("rope", after["cells"].get(str(length)))
    if not change:
        return score(arm, length)
    raise Untested(f"{CHANGES[change].en} was not tried after training", f"训练后未试：{CHANGES[change].zh}")


# Deciding -----------------------------------------------------------------------------------------------------------


def decide(scores: Scores, holds: Callable[[Means], bool], words: Words, *notes: Words) -> Ours:
    """By the means; how many single seeds say the same is told beside."""
    shared = set.intersection(*(set(one.seeds) for one in scores.values()))
    agree = sum(holds({name: one.seeds[seed] for name, one in scores.items()}) for seed in shared)
    told = Words(
        f"holds for {agree} of {len(shared)} seed{'s' * (len(shared) != 1)}", f"{len(shared)} 个种子中有 {agree} 个成立"
    )
    why = joined([told, *(note for note in notes if note.en)], "; ", "；")
    return Ours(words, holds({name: one.mean for name, one in scores.items()}), why)


def descending(groups: Groups) -> Callable[[Means], bool]:
    """Everyone of a group lies above everyone of the next."""
    return lambda at: all(
        min(at[name] for name in above) > max(at[name] for name in below) for above, below in pairwise(groups)
    )


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


def reachable(groups: Groups, look_up: Callable[[str], Score]) -> tuple[dict[str, Score], Groups, Words]:
    """The scores that there are, the groups without the rest, and whom it leaves out.

    Raises Untested, with the reason of the first that is missing, where fewer than two groups are left.
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


# Judges of text -----------------------------------------------------------------------------------------------------


def order(at: float, *groups: Sequence[str]) -> Judge:
    """Bits on the same targets, at so many trained lengths, the worst group first."""

    def judge(found: Found) -> Ours:
        task = task_of(found, TEXT)
        length = length_of(task, at)
        scores, left, without = reachable(groups, lambda name: score(arm_of(task, name), length))
        return decide(scores, descending(left), listed(scores, times(task, length)), without)

    return judge


def loses(name: str, at: float | None, holds: Callable[[float], bool]) -> Judge:
    """Bits lost by one encoding, at so many trained lengths or at the longest."""

    def judge(found: Found) -> Ours:
        task = task_of(found, TEXT)
        length = length_of(task, at)
        scores = {name: rise(arm_of(task, name), length)}
        return decide(scores, lambda lost: holds(lost[name]), listed(scores, times(task, length), "+.3f"))

    return judge


def loses_most(first: str, others: Sequence[str], at: float) -> Judge:
    """And loses something at all."""

    def judge(found: Found) -> Ours:
        task = task_of(found, TEXT)
        length = length_of(task, at)
        scores, left, without = reachable([[first], others], lambda name: rise(arm_of(task, name), length))
        more = descending(left)
        said = listed(scores, times(task, length), "+.3f")
        return decide(scores, lambda lost: more(lost) and lost[first] > FLAT, said, without)

    return judge


def stays_flat(name: str) -> Judge:
    def judge(found: Found) -> Ours:
        task = task_of(found, TEXT)
        arm, _ = arm_of(task, name), length_of(task, None)
        lost = {times(task, length): rise(arm, length) for length in task["lengths"] if task["length"] < length}
        said = joined((Words(*(f"{at} {one.mean:+.3f}",) * 2) for at, one in lost.items()), ", ", "，")
        return decide(lost, lambda at: max(at.values()) <= FLAT, joined([said, BITS], "", ""))

    return judge


def gains_side_by_side(name: str) -> Judge:
    """Longer windows help where they are laid side by side, and much less where the targets stay the same."""

    def judge(found: Found) -> Ours:
        task = task_of(found, TEXT)
        arm, length = arm_of(task, name), length_of(task, None)
        home, far = (score(arm, at, "non_overlapping") for at in (task["length"], length))
        shared = far.seeds.keys() & home.seeds.keys()
        apart = Score(far.mean - home.mean, {seed: far.seeds[seed] - home.seeds[seed] for seed in shared})
        same = rise(arm, length)
        words = Words(
            f"{times(task, length)}: {apart.mean:+.3f} bits in windows side by side, {same.mean:+.3f} on the same targets",
            f"{times(task, length)}：窗口首尾相接时 {apart.mean:+.3f} 比特，目标相同时 {same.mean:+.3f} 比特",
        )
        return decide({"apart": apart, "same": same}, lambda at: at["apart"] < 0 and at["same"] > at["apart"] / 2, words)

    return judge


def best_at_longest(name: str) -> Judge:
    def judge(found: Found) -> Ours:
        task = task_of(found, TEXT)
        length = length_of(task, None)
        others = [arm["name"] for arm in task["arms"] if arm["learnt"] and arm["name"] != name]
        if not others:
            raise Untested("nothing else learnt the trained length", "没有其他编码学会训练长度")
        scores, left, without = reachable([others], lambda other: score(arm_of(task, other), length))
        scores[name] = score(arm_of(task, name), length)
        return decide(scores, descending([*left, [name]]), listed(scores, times(task, length)), without)

    return judge


def ends_with_training(name: str) -> Judge:
    """It cannot be asked at the first longer length."""

    def judge(found: Found) -> Ours:
        task = task_of(found, TEXT)
        arm, _ = arm_of(task, name), length_of(task, None)
        length = next(length for length in task["lengths"] if length > task["length"])
        state = arm["cells"][str(length)]["state"] or "has a number"
        zh = "无法计算" if state.startswith("cannot") else "有数值"
        return Ours(Words(f"{times(task, length)}: {state}", f"{times(task, length)}：{zh}"), state.startswith("cannot"))

    return judge


def competitive(name: str, other: str) -> Judge:
    """At the trained length."""

    def judge(found: Found) -> Ours:
        task = task_of(found, TEXT)
        scores = {word: score(arm_of(task, word), task["length"]) for word in (name, other)}
        return decide(scores, lambda at: at[name] - at[other] <= COMPETITIVE, listed(scores, "1×"))

    return judge


def changes(at: float, names: Sequence[str], holds: Callable[[Means], bool], *notes: Words) -> Judge:
    """Bits of the changed models, and of the unchanged one at the trained length as `home`."""

    def judge(found: Found) -> Ours:
        task = task_of(found, TEXT)
        length = length_of(task, at)
        scores = {change: changed(task, change, length) for change in names}
        home = changed(task, "", task["length"])
        said = listed(scores, times(task, length), called=CHANGES.__getitem__)
        words = Words(f"{said.en}; 1×: {home.mean:.2f}", f"{said.zh}；1×：{home.mean:.2f}")
        return decide({**scores, "home": home}, holds, words, *notes)

    return judge


# Judges of other tasks ----------------------------------------------------------------------------------------------


def blind(task_name: str, holds: Callable[[Found, float, float], bool], unit: Words) -> Judge:
    """NoPE against the worst of those that learnt the task: holds(task, NoPE's, theirs)."""

    def judge(found: Found) -> Ours:
        task = task_of(found, task_name)
        learnt = [arm for arm in task["arms"] if arm["learnt"] and arm["name"] != "nope"]
        if not learnt:
            raise Untested(f"{task['title']['en']}: nothing else learnt it", f"{task['title']['zh']}：没有其他编码学会")
        scores = {arm["name"]: score(arm, task["length"]) for arm in (arm_of(task, "nope", learnt=False), *learnt)}
        worst = max if task["measure"] == "bits" else min

        def found_to_hold(at: Means) -> bool:
            return holds(task, at["nope"], worst(at[arm["name"]] for arm in learnt))

        return decide(scores, found_to_hold, listed(scores, unit=unit))

    return judge


def masked_fails(task: Found, nope: float, theirs: float) -> bool:
    return nope - theirs >= BREAKS


def at_chance(task: Found, nope: float, theirs: float) -> bool:
    return bool(abs(nope - task["chance"][str(task["length"])]) <= CHANCE)


def copies(groups: Groups, *notes: Words, equal: bool = False) -> Judge:
    """Mean exact match of copy above the trained length, to twice it, the best group first; `equal` holds as well."""

    def judge(found: Found) -> Ours:
        task = task_of(found, COPY)
        scores, left, without = reachable(groups, lambda name: _beyond(task, name))
        strict = descending(left)

        def holds(at: Means) -> bool:
            return strict(at) or (equal and len(set(at.values())) == 1)

        return decide(scores, holds, listed(scores, form=".3f", unit=PLAIN), without, *notes)

    return judge


def _beyond(task: Found, name: str) -> Score:
    lengths = [length for length in task["lengths"] if task["length"] < length <= 2 * task["length"]]
    if not lengths:
        raise Untested("no longer length up to 2× was scored", "没有评测 2× 以内的更长长度")
    arm = arm_of(task, name)
    each = [score(arm, length) for length in lengths]
    seeds = set.intersection(*(set(one.seeds) for one in each))
    mean = sum(one.mean for one in each) / len(each)
    return Score(mean, {seed: sum(one.seeds[seed] for one in each) / len(each) for seed in seeds})


def mean_ranks(*groups: Sequence[str]) -> Judge:
    """Over every exact task, seed and length beyond the trained one at which all have a number; the worst group first."""

    def judge(found: Found) -> Ours:
        names = {name for group in groups for name in group}
        blocks = []
        for task in (task for task in found["tasks"] if task["measure"] == "exact"):
            cells = {arm["name"]: arm["cells"] for arm in task["arms"] if arm["learnt"] and arm["name"] in names}
            for length in (str(length) for length in task["lengths"] if length > task["length"]):
                for seed in map(str, found["seeds"]):
                    values = {name: cell[length]["seeds"].get(seed) for name, cell in cells.items()}
                    blocks.append({name: value for name, value in values.items() if value is not None})
        ranks = statistics.mean_ranks("exact", blocks, sorted(names))
        if ranks is None:
            raise Untested("no exact task was learnt by all five", "没有一个精确匹配的任务被五种编码全部学会")
        whole = sum(block.keys() >= names for block in blocks)
        words = listed({name: Score(rank, {}) for name, rank in ranks.items()}, unit=PLAIN)
        return Ours(words, descending(groups)(ranks), Words(f"{whole} complete cells", f"{whole} 个完整单元"))

    return judge


def retrieves_nothing(found: Found) -> Ours:
    """RoPE at twice the trained length."""
    task = task_of(found, *RETRIEVAL)
    length, arm = length_of(task, 2), arm_of(task, "rope")
    scores = {"far": score(arm, length), "home": score(arm, task["length"])}
    home, far, at = f"{scores['home'].mean:.2f}", f"{scores['far'].mean:.2f}", times(task, length)
    name = Words(**task["title"])
    words = Words(f"{name.en}: RoPE 1× {home}, {at} {far}", f"{name.zh}：RoPE 1× {home}，{at} {far}")
    return decide(scores, lambda at: at["far"] < statistics.BREAKS["exact"] * at["home"], words)


def flat_is_not_use(found: Found) -> Ours:
    """ALiBi is flat on text, and yet retrieves less than NoPE."""
    text, task = task_of(found, TEXT), task_of(found, *RETRIEVAL)
    lost, length = rise(arm_of(text, "alibi"), length_of(text, None)), length_of(task, None)
    scores = {name: score(arm_of(task, name), length) for name in ("nope", "alibi")}
    said = listed(scores, place(task, length), unit=PLAIN)
    words = Words(f"{said.en}; ALiBi on text {lost.mean:+.3f} bits", f"{said.zh}；ALiBi 在文本上 {lost.mean:+.3f} 比特")
    return decide({**scores, "lost": lost}, lambda at: at["lost"] <= FLAT and at["nope"] > at["alibi"], words)


def changes_retrieve(found: Found) -> Ours:
    task = task_of(found, *RETRIEVAL)
    length = length_of(task, 2)
    scores = {change: changed(task, change, length) for change in ("ntk", "yarn", "interpolation")}
    words = listed(scores, place(task, length), unit=PLAIN, called=CHANGES.__getitem__)
    return decide(scores, descending([["ntk", "yarn"], ["interpolation"]]), words)


# Judges of cost and of what is seen inside --------------------------------------------------------------------------


def slower(*groups: Sequence[str]) -> Judge:
    """Time of a training step relative to NoPE, the slowest group first."""

    def judge(found: Found) -> Ours:
        if found["cost"] is None:
            raise Untested("cost was not measured", "没有测量代价")
        rows, device = found["cost"]["rows"], found["cost"]["device"]

        def look_up(name: str) -> Score:
            if name not in rows:
                raise Untested(f"{title(name).en}: not measured", f"{title(name).zh}：未测量")
            return Score(rows[name]["training"]["median"], {})

        scores, left, without = reachable(groups, look_up)
        told = joined([Words(f"measured on {device}", f"在 {device} 上测量"), *[without] * bool(without.en)], "; ", "；")
        words = listed(scores, unit=Words("× the time of NoPE", "（以 NoPE 的耗时为 1）"))
        return Ours(words, descending(left)({name: one.mean for name, one in scores.items()}), told)

    return judge


def looks_at(link: str, than: str) -> Judge:
    """At the end of training, mean over layers and heads, in the best encoding at that task."""

    def judge(found: Found) -> Ours:
        task = task_of(found, ORDER)
        best = task["gate"]["best"]
        if best is None:
            raise Untested(f"{task['title']['en']}: not run", f"{task['title']['zh']}：未运行")
        arm_of(task, best)
        rows = [row for row in task["links"] if row["arm"] == best]
        last = max((row["step"] for row in rows), default=None)
        seen = {name: [row for row in rows if row["link"] == name and row["step"] == last] for name in (link, than)}
        if not all(seen.values()):
            raise Untested("attention between these words was not recorded", "没有记录这些词之间的注意力")
        at = {name: sum(row["probability"] for row in of) / len(of) for name, of in seen.items()}
        even = sum(row["even"] for row in seen[link]) / len(seen[link])
        name = title(best)
        words = Words(
            f"{name.en}: {link} {at[link]:.3f}, {than} {at[than]:.3f}, even {even:.3f}",
            f"{name.zh}：{link} {at[link]:.3f}，{than} {at[than]:.3f}，均匀分配时 {even:.3f}",
        )
        why = Words("first seed, mean over layers and heads", "第一个种子，各层各头平均")
        return Ours(words, at[link] > max(even, at[than]), why)

    return judge


def neighbours_grow_alike(found: Found) -> Ours:
    for task in found["tasks"]:
        if (seen := task["similarity"]) is not None and len(seen["steps"]) > 1:
            arm_of(task, seen["arm"])
            before, after = (nearness(seen["matrices"][at]) for at in (0, -1))
            first, last = seen["steps"][0], seen["steps"][-1]
            words = Words(
                f"cosine of neighbours less that of distant rows: {before:+.3f} at step {first}, {after:+.3f} at {last}",
                f"相邻行与远处行的余弦相似度之差：第 {first} 步 {before:+.3f}，第 {last} 步 {after:+.3f}",
            )
            return Ours(words, after - before >= ALIKE, Words("first seed", "第一个种子"))
    raise Untested("no learned table was watched in training", "没有在训练中记录可学习的位置表")


def nearness(matrix: Sequence[Sequence[float]]) -> float:
    """Mean cosine of neighbours, less that of rows half a table apart or more."""
    near = [matrix[n][n + 1] for n in range(len(matrix) - 1)]
    far = [value for n, line in enumerate(matrix) for m, value in enumerate(line) if m - n >= max(len(matrix) // 2, 2)]
    return sum(near) / len(near) - sum(far) / len(far) if near and far else 0.0


def looks_near(name: str) -> Judge:
    """Attention of the trained model: the nearer half of the recorded distances against the farther."""

    def judge(found: Found) -> Ours:
        task = task_of(found, TEXT)
        arm_of(task, name)
        rows = [row for row in task["attention"] if row["arm"] == name]
        last = max((row["step"] for row in rows), default=None)
        heads = [row["probability"] for row in rows if row["step"] == last and len(row["probability"]) > 1]
        if not heads:
            raise Untested(f"attention of {title(name).en} was not recorded", f"没有记录 {title(name).zh} 的注意力")
        near = sum(sum(head[: len(head) // 2]) / (len(head) // 2) for head in heads) / len(heads)
        far = sum(sum(head[len(head) // 2 :]) / (len(head) - len(head) // 2) for head in heads) / len(heads)
        words = Words(
            f"mean probability {near:.4f} over the nearer half of the distances, {far:.4f} over the farther",
            f"较近一半距离上的平均概率为 {near:.4f}，较远一半为 {far:.4f}",
        )
        why = Words(
            "first seed, mean over layers and heads; it is of the text as much as of the encoding",
            "第一个种子，各层各头平均；既反映编码，也反映文本本身",
        )
        return Ours(words, near > far, why)

    return judge


def untested(words: Words) -> Judge:
    """What the lab does not do is said, not left out."""

    def judge(found: Found) -> Ours:
        raise Untested(*words)

    return judge
