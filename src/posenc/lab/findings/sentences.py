"""The findings as sentences in both languages; every number is computed from the findings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from posenc.lab.findings import budget_limits, property_sentences
from posenc.lab.findings.comparing import after_training, best, first, ranked
from posenc.lab.findings.criteria import CONVERGED, ENOUGH, FEWEST, FLAT, MISSING, NOT_LEARNT, ROUNDING
from posenc.lab.findings.published.counting import of_notes, of_papers
from posenc.lab.findings.titles import change_title, main_task, title
from posenc.lab.findings.wording import (
    because,
    bounds,
    counted,
    counted_seeds,
    listed,
    loss,
    name,
    score,
    task_title,
    times,
    trained_seeds,
)
from posenc.lab.trial.training import CAUSAL_ONLY
from posenc.support.languages import Words, joined

Json = Mapping[str, Any]


def sentences(found: Json) -> list[Words]:
    """The most important first; nothing is said about what was not measured."""
    main = main_task(found)
    told = (
        _trained(found),
        _at_trained_length(main),
        _detectable(main),
        *(budget_limits.sentences(found["limits"]) if "limits" in found else ()),
        _still_improving(found),
        _last_fifth_of_ranked(main),
        *_at_longest_length(main),
        _gain(main),
        _cannot(main),
        _not_learnt(found),
        *_without_positions(found),
        _after_training(main),
        _exact_tasks(found, main),
        _training_time(found),
        *property_sentences.sentences(found),
        _published(found),
        _missing(found),
        _seeds(found),
    )
    return [words for words in told if words is not None]


# What was trained ---------------------------------------------------------------------------------------------------


def _trained(found: Json) -> Words:
    arms = {arm["name"] for task in found["tasks"] for arm in task["arms"]}
    names = [task_title(task) for task in found["tasks"]]
    size, each = found["size"], counted_seeds(found)
    cannot = sum(arm["state"] == f"cannot: {CAUSAL_ONLY}" for task in found["tasks"] for arm in task["arms"])
    untrained = cannot * len(found["seeds"])
    failed = found["trials"]["failed"]
    there, planned = (max(0, found["trials"][which] - untrained) for which in ("found", "expected"))
    there = max(0, there - failed)
    trained = Words(f"{counted(there, 'model was', 'models were')} trained", f"共训练 {there} 个模型")
    if there < planned:
        trained = Words(f"{there} of {planned} models have been trained", f"计划 {planned} 个模型，已训练 {there} 个")
    which, begun = Words(counted(len(arms), "encoding", "encodings"), f"{len(arms)} 种编码"), len(trained_seeds(found))
    if 0 < begun < len(arms):
        which = Words(f"{begun} of {len(arms)} encodings", f"{len(arms)} 种编码中的 {begun} 种")
    return Words(
        f"{trained.en}: {which.en} with {each.en} each. "
        f"The models differ by the encoding only: {counted(size['n_layers'], 'layer', 'layers')}, "
        f"d_model {size['d_model']}, {size['n_heads']} heads. Tasks: {joined(names, ', ', '').en}.",
        f"{trained.zh}：{which.zh}，每种 {each.zh}，彼此只有位置编码不同；"
        f"{size['n_layers']} 层，d_model {size['d_model']}，{size['n_heads']} 个头。任务：{joined(names, '', '、').zh}。",
    )


# The main task ------------------------------------------------------------------------------------------------------


def _at_trained_length(task: Json) -> Words:
    arms, home, called = [arm for arm in task["arms"] if arm["learnt"]], task["length"], task_title(task)
    if all(arm["state"] == MISSING for arm in task["arms"]):
        return Words(f"{called.en}: not run yet.", f"{called.zh}：尚未运行。")
    if not any(cell["mean"] is not None for arm in task["arms"] for cell in arm["cells"].values()):
        return Words(f"{called.en}: no model has a score.", f"{called.zh}：没有一个模型有分数。")
    if not arms:
        return Words(
            f"{called.en}: no encoding learnt the trained length at this budget, so none is ranked.",
            f"{called.zh}：在此预算下没有一种编码学会训练长度，因此不作排名。",
        )
    chance, ran = score(task, task["chance"][str(home)]), _ran(task)
    if not (finished := ranked(task)):
        return Words(
            f"{called.en}: {len(arms)} of {ran.en} learnt the trained length {home}; chance gives "
            f"{chance.en}. The best ones still improved at the end of training, so none is called the best.",
            f"{called.zh}：{ran.zh}中有 {len(arms)} 种学会了训练长度 {home}（随机水平：{chance.zh}）。"
            "训练结束时较好的几种仍在改善，因此不说哪一种最好。",
        )
    leader, *equals = best(task, finished, home)
    said = score(task, leader["cells"][str(home)]["mean"])
    learnt = Words(f"{len(arms)} of {ran.en} learnt this length.", f"{ran.zh}中有 {len(arms)} 种学会了这个长度。")
    if equals:
        others = joined(map(name, equals), ", ", "、")
        return Words(
            f"{called.en}: at the trained length {home}, {name(leader).en} has the best mean, {said.en}, and the seeds do "
            f"not tell it from {others.en}; chance gives {chance.en}. {learnt.en}",
            f"{called.zh}：在训练长度 {home} 上，{name(leader).zh} 的平均最好，{said.zh}，但这些种子不足以把它与 "
            f"{others.zh} 区分开（随机水平：{chance.zh}）。{learnt.zh}",
        )
    return Words(
        f"{called.en}: at the trained length {home}, {name(leader).en} is best with {said.en}; chance gives {chance.en}. "
        f"{learnt.en}",
        f"{called.zh}：在训练长度 {home} 上，{name(leader).zh} 最好，{said.zh}（随机水平：{chance.zh}）。{learnt.zh}",
    )


def _ran(task: Json) -> Words:
    """The encodings, or those of them that have run."""
    planned, ran = len(task["arms"]), sum(arm["state"] != MISSING for arm in task["arms"])
    if ran < planned:
        return Words(f"the {counted(ran, 'encoding that has', 'encodings that have')} run", f"已运行的 {ran} 种编码")
    return Words(f"{planned} encodings", f"{planned} 种编码")


def _at_longest_length(task: Json) -> Iterator[Words]:
    far = task["lengths"][-1]
    kinds = {kind: [arm for arm in task["arms"] if arm["behaviour"] == kind] for kind in ("flat", "fades", "breaks")}
    at = times(task, far)
    flat, broken = bounds(task)
    held = Words("on the same targets, ", "目标不变，") if task["measure"] == "bits" else Words("", "")
    if not kinds["flat"] and (kinds["fades"] or kinds["breaks"]):
        yield Words(
            f"At {at.en} the trained length, no encoding stays as good as it was ({flat.en}).",
            f"到训练长度的 {at.zh}，没有一种编码能保持原有水平（{flat.zh}）。",
        )
    texts = {
        "flat": Words(
            f"At {at.en} the trained length, {held.en}these stay as good ({flat.en}): {{rows}}.",
            f"到训练长度的 {at.zh}，{held.zh}仍然保持（{flat.zh}）的有：{{rows}}。",
        ),
        "fades": Words("These get worse slowly: {rows}.", "逐渐变差的有：{rows}。"),
        "breaks": Words(f"These break ({broken.en}): {{rows}}.", f"失效（{broken.zh}）的有：{{rows}}。"),
    }
    for kind, text in texts.items():
        if arms := sorted(kinds[kind], key=lambda arm: arm["rise"][str(far)]["mean"]):
            rows = listed(arms, lambda arm: _lost(task, arm, far))
            yield Words(text.en.format(rows=rows.en), text.zh.format(rows=rows.zh))


def _lost(task: Json, arm: Json, far: int) -> Words:
    """+0.12 bits; with few seeds beside others, +0.12 bits, 1 seed; of an arm that is not ranked, still improving."""
    lost, seeds = loss(task, arm["rise"][str(far)]["mean"]), len(arm["rise"][str(far)]["seeds"])
    most = max(len(one["rise"][str(far)]["seeds"]) for one in task["arms"] if str(far) in one["rise"])
    if seeds < min(FEWEST, most):
        lost = Words(f"{lost.en}, {counted(seeds, 'seed', 'seeds')}", f"{lost.zh}，{seeds} 个种子")
    return Words(f"{lost.en}, still improving", f"{lost.zh}，仍在改善") if arm["converged"] is False else lost


def _gain(task: Json) -> Words | None:
    """What the longest context is worth on the same targets, by the encoding that gains most from it."""
    far = task["lengths"][-1]
    gains = {name(arm): -arm["rise"][str(far)]["mean"] for arm in task["arms"] if str(far) in arm["rise"]}
    if task["measure"] != "bits" or not gains:
        return None
    most_of, at = max(gains, key=lambda who: gains[who]), times(task, far)
    most = max(gains[most_of], 0)
    if most >= FLAT["bits"]:
        return Words(
            f"On the same targets, {most_of.en} gains most from the trained length to {at.en}: {most:.3f} bits.",
            f"目标不变时，从训练长度到其 {at.zh}，{most_of.zh} 得益最大：{most:.3f} 比特。",
        )
    above = math.ceil(1000 * (most - ROUNDING)) / 1000
    more = Words(f"more than {above:.3f} bits", f"得益超过 {above:.3f} 比特")
    if round(most, 3) == 0:
        more = Words("anything", "得益")
    return Words(
        f"On the same targets, mean over seeds, no encoding gains {more.en} from the trained length to {at.en}, so staying "
        "as good here shows that nothing breaks, not that far context is used.",
        f"目标不变时，从训练长度到其 {at.zh}，按种子平均没有一种编码{more.zh}，因此这里的“保持”只说明没有失效，"
        "不说明用到了远处的上文。",
    )


def _cannot(task: Json) -> Words | None:
    """Encodings that learnt the trained length and cannot represent longer ones."""
    stopped = []
    for arm in task["arms"]:
        ends = [length for length, cell in arm["cells"].items() if (cell["state"] or "").startswith("cannot")]
        if ends and not (arm["state"] or "").startswith("cannot"):
            why = because(arm["cells"][ends[0]]["state"].removeprefix("cannot: "))
            stopped.append(Words(f"{name(arm).en} ({why.en})", f"{name(arm).zh}（{why.zh}）"))
    if not stopped:
        return None
    rows = joined(stopped, ", ", "、")
    return Words(f"These cannot process longer inputs: {rows.en}.", f"无法用于更长输入的有：{rows.zh}。")


def _after_training(task: Json) -> Words | None:
    if (found := after_training(task)) is None:
        return None
    length, means = found
    scores = {change: score(task, means[change]) for change in means}
    each = (Words(*(f"{name} {of}" for name, of in zip(change_title(c), scores[c], strict=True))) for c in means)
    rows, at = joined(each, ", ", "，"), times(task, length)
    return Words(
        f"With the frequencies or positions of the trained RoPE models changed, and no further training, the scores at "
        f"{at.en} are, the best first: {rows.en}.",
        f"训练之后修改 RoPE 的频率或位置、不再继续训练，在训练长度的 {at.zh}处从好到差依次为：{rows.zh}。",
    )


# All tasks ----------------------------------------------------------------------------------------------------------


def _not_learnt(found: Json) -> Words | None:
    said = []
    for task in found["tasks"]:
        arms = [arm for arm in task["arms"] if arm["state"] == NOT_LEARNT]
        if arms:
            rows = listed(arms, lambda arm, task=task: score(task, arm["cells"][str(task["length"])]["mean"]))  # type: ignore[misc]
            said.append(Words(f"{task_title(task).en}: {rows.en}", f"{task_title(task).zh}：{rows.zh}"))
    if not said:
        return None
    rows = joined(said, "; ", "；")
    return Words(
        f"Not learnt at this budget, and therefore not ranked: {rows.en}. More training may change this.",
        f"在此预算下没有学会，因此不作排名：{rows.zh}。增加训练可能改变结果。",
    )


def _detectable(task: Json) -> Words | None:
    if not task["detectable"]:
        return None
    said = joined((_least(task, one["least"], one["seeds"]) for one in task["detectable"]), ", ", "，")
    return Words(
        f"The smallest difference between two encodings that their seeds could show at the trained length is {said.en} "
        "(paired by seed, 5 % level, 80 % power, mean variance of the pairs, no correction for many pairs). It covers the "
        "spread of seeds, not that of documents. A pair whose differences vary less can show less.",
        f"在训练长度上，种子能够分辨的两种编码之间的最小差异：{said.zh}"
        "（按种子配对，5% 水平，80% 功效，取各对方差的平均，未作多重比较校正）。它只计种子之间的波动，不计文档之间的波动。"
        "差异波动较小的一对能分辨得更细。",
    )


def _least(task: Json, least: float, seeds: int) -> Words:
    """0.02 bits for pairs with 5 seeds in common."""
    bits = task["measure"] == "bits"
    said = (
        Words(f"{least:.2g} bits", f"{least:.2g} 比特")
        if bits
        else Words(f"{100 * least:.1f} points", f"{100 * least:.1f} 个百分点")
    )
    return Words(f"{said.en} for pairs with {seeds} seeds in common", f"共有 {seeds} 个种子的两种编码为 {said.zh}")


def _still_improving(found: Json) -> Words | None:
    said = []
    for task in found["tasks"]:
        if arms := [arm for arm in task["arms"] if arm["learnt"] and arm["converged"] is False]:
            rows = listed(arms, _last_fifth)
            said.append(Words(f"{task_title(task).en}: {rows.en}", f"{task_title(task).zh}：{rows.zh}"))
    if not said:
        return None
    rows = joined(said, "; ", "；")
    return Words(
        f"Still improving at the end of training, by more than {CONVERGED:g} bits of training loss in the last fifth of "
        f"the steps, and therefore not ranked: {rows.en}.",
        f"训练结束时仍在改善（最后五分之一的步数里训练损失下降超过 {CONVERGED:g} 比特），因此不作排名：{rows.zh}。",
    )


def _last_fifth(arm: Json) -> Words:
    return Words(f"{_fell(arm):.2f} bits", f"{_fell(arm):.2f} 比特")


def _fell(arm: Json) -> float:
    """Bits by which the training loss fell in the last fifth of the steps, mean over seeds."""
    slopes: Mapping[str, float] = arm["slopes"]
    return math.fsum(slopes.values()) / len(slopes)


def _last_fifth_of_ranked(task: Json) -> Words | None:
    """How much the ranked encodings still improved, where that is more than their seeds can show."""
    fell = [_fell(arm) for arm in ranked(task) if arm["slopes"]]
    least = min((one["least"] for one in task["detectable"]), default=math.inf)
    if task["measure"] != "bits" or not fell or max(fell) <= least:
        return None
    return Words(
        f"The training loss of the ranked encodings fell by {min(fell):.2f} to {max(fell):.2f} bits in that fifth. "
        "This is more than the smallest difference that their seeds could show, so small differences at the trained length "
        "may change with more training.",
        f"参与排名的编码在最后五分之一里训练损失仍下降 {min(fell):.2f} 至 {max(fell):.2f} 比特，"
        "大于种子能够分辨的最小差异：训练长度上的微小差别可能随训练增加而改变。",
    )


def _without_positions(found: Json) -> Iterator[Words]:
    """Compares NoPE with the best encoding under bidirectional attention."""
    for task in found["tasks"]:
        home, called = str(task["length"]), task_title(task)
        nope = next((arm for arm in task["arms"] if arm["name"] == "nope"), None)
        others = [arm for arm in task["arms"] if arm["learnt"] and arm["name"] != "nope"]
        if task["causal"] or nope is None or nope["cells"][home]["mean"] is None or not others:
            continue
        leader = first(task, others, task["length"])
        ours, theirs = (score(task, arm["cells"][home]["mean"]) for arm in (nope, leader))
        known = Words("", "")
        if task["measure"] == "exact":
            guess = score(task, task["chance"][home])
            known = Words(f"; guessing gives {guess.en}", f"；随机猜测：{guess.zh}")
        elif task["baseline"] is not None:
            least = score(task, task["baseline"])
            known = Words(f"; a model that ignores the context gets {least.en}", f"；完全不看上下文：{least.zh}")
        limit = Words("", "") if nope["learnt"] else Words(", which counts as not learnt", "，算作未学会")
        yield Words(
            f"{called.en}, bidirectional: a model without positions has {ours.en}{limit.en}; one with {name(leader).en} "
            f"has {theirs.en}{known.en}.",
            f"{called.zh}（双向注意力）：没有位置的模型为 {ours.zh}{limit.zh}；用 {name(leader).zh} 的模型为 {theirs.zh}"
            f"{known.zh}。",
        )


def _exact_tasks(found: Json, main: Json) -> Words | None:
    """The encodings with the largest valid length factor, for each other task."""
    said = []
    for task in found["tasks"]:
        arms, called = [arm for arm in ranked(task) if arm["factor"] is not None], task_title(task)
        if task is main or task["measure"] != "exact" or not arms:
            continue
        most = max(arm["factor"]["value"] for arm in arms)
        if most <= 1:
            said.append(Words(f"{called.en}: none beyond the trained length", f"{called.zh}：超出训练长度后都做不到"))
            continue
        furthest = [arm for arm in arms if arm["factor"]["value"] == most]
        names = joined((name(arm) for arm in furthest), ", ", "、")
        more = any(arm["factor"]["censored"] for arm in furthest)
        reach = Words(">" * more + f"{most:.3g}×", "超过 " * more + f"{most:.3g} 倍")
        said.append(Words(f"{called.en}: {names.en} ({reach.en})", f"{called.zh}：{names.zh}（{reach.zh}）"))
    if not said:
        return None
    rows = joined(said, "; ", "；")
    return Words(
        f"Largest factor of the trained length with at least {FLAT['exact']:.0%} of the exact match kept: {rows.en}.",
        f"完全匹配率保持 {FLAT['exact']:.0%} 以上时，与训练长度之比最大的：{rows.zh}。",
    )


def _training_time(found: Json) -> Words | None:
    rows = (found["cost"] or {"rows": {}})["rows"]
    times_of = {who: row["training"]["median"] for who, row in rows.items() if who != "nope" and row.get("training")}
    if not times_of:
        return None
    ordered = sorted(times_of, key=times_of.__getitem__)
    each = (Words(f"{title(who).en} {times_of[who]:.2f}×", f"{title(who).zh} {times_of[who]:.2f}×") for who in ordered)
    rows_said = joined(each, ", ", "、")
    return Words(
        f"Time of a training step relative to no encoding: {rows_said.en}.",
        f"训练一步的耗时（没有编码时为 1×）：{rows_said.zh}。",
    )


# How certain it is --------------------------------------------------------------------------------------------------


def _published(found: Json) -> Words | None:
    if not found["published"]:
        return None
    papers, notes = of_papers(found["published"]), of_notes(found["published"])
    agree, disagree, undecided, untested = papers.values()
    return Words(
        f"Of {sum(papers.values())} published claims, these numbers support {agree} and contradict {disagree}; these seeds "
        f"leave {undecided} undecided, and {untested} could not be tested here. Of {sum(notes.values())} statements of the "
        f"founding notes, they support {notes['agree']} and contradict {notes['disagree']}.",
        f"在 {sum(papers.values())} 条已发表的论断中，与此处数据一致的有 {agree} 条，不一致的有 {disagree} 条，"
        f"这些种子不足以判定的有 {undecided} 条，此处无法检验的有 {untested} 条。"
        f"在项目最初笔记的 {sum(notes.values())} 条陈述中，一致的有 {notes['agree']} 条，"
        f"不一致的有 {notes['disagree']} 条。",
    )


def _missing(found: Json) -> Words | None:
    if not found["missing"]:
        return None
    failed = sum(row["why"].startswith("failed") for row in found["missing"])
    told = [Words(f"{failed} failed", f"{failed} 次失败")] if failed else []
    if waiting := len(found["missing"]) - failed:
        told.append(Words(f"{waiting} did not run", f"{waiting} 次没有运行"))
    rows, of = joined(told, " and ", "，"), found["trials"]["expected"]
    return Words(
        f"Of {counted(of, 'trial', 'trials')}, {rows.en}; their cells say so.",
        f"{of} 次训练中，{rows.zh}；相应的格中已注明。",
    )


def _seeds(found: Json) -> Words:
    seeds = len(found["seeds"])
    if found["exploratory"]:
        return Words(
            f"With {counted(seeds, 'seed', 'seeds')}, these results are exploratory: intervals over seeds need {ENOUGH}. "
            "Every seed is shown.",
            f"只有 {seeds} 个随机种子，以上为探索性结果：不足 {ENOUGH} 个时不给出种子间的区间。每个种子都已列出。",
        )
    fewer = Words("", "")
    if found["fewest_seeds"] < ENOUGH:
        fewer = Words(
            f" Encodings with fewer seeds than {ENOUGH} have none over seeds: every seed is given. Two encodings are "
            "compared over the seeds that both have.",
            f"不足 {ENOUGH} 个种子的编码不给出种子间的区间，只列出每个种子。两种编码只在共有的种子上比较。",
        )
    return Words(
        f"Intervals are 95% intervals, over {seeds} seeds and over documents. All encodings are scored on the same "
        "documents, which make up most of an interval: intervals may overlap although every seed has the same difference. "
        f"The part of the seeds is narrow: the bootstrap of {ENOUGH} normal seeds covers the true mean in about 84 % of "
        f"cases (simulated).{fewer.en}",
        f"区间为 95%，对 {seeds} 个随机种子和各文档自助抽样得出。所有编码在相同的文档上计分，而文档占了区间的大部分："
        f"两个区间重叠，差异仍可能在每个种子上都一样。种子的部分偏窄：对 {ENOUGH} 个正态分布的种子，"
        f"自助抽样区间覆盖真实均值的比例约为 84%（模拟所得）。{fewer.zh}",
    )
