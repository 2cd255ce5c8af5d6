"""The report of a ladder as Markdown in one language: scores by rung, stability of the order, what was learnt where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.lab.findings.criteria import CONVERGED
from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import counted
from posenc.lab.report.ladder_pictures import ladder_pictures
from posenc.lab.report.markdown import escaped, grid
from posenc.support.languages import Language, Words, joined

Json = Mapping[str, Any]

TITLE = Words("Is it the encoding or the budget?", "差别来自编码还是预算？")
INTRODUCTION = Words(
    "The same experiment at several scales. An order of encodings is stated only with the scale at which it was seen.",
    "同一实验在多个规模上运行。编码的先后只连同其规模一起陈述。",
)
SCORES_TEXT = Words(
    f"↓: still improving. The training loss fell by more than {CONVERGED:g} bits in the last fifth of the steps, or the "
    f"next rung with more steps is better by more than {CONVERGED:g}.",
    f"↓：仍在改善。训练损失在最后五分之一的步数里下降超过 {CONVERGED:g} 比特，"
    f"或步数更多的下一级比它好 {CONVERGED:g} 以上。",
)
RUNG, STEPS, SIZE, TOKENS, TRIALS = (
    Words("rung", "级"),
    Words("steps", "步数"),
    Words("layers × width", "层数 × 宽度"),
    Words("tokens per model", "每个模型的词元数"),
    Words("trials found", "已有试验"),
)
SCORES = Words("Scores at the trained length, and at the longest", "训练长度与最长长度上的分数")
ORDER = Words("Is the order stable?", "先后是否稳定？")
ORDER_TEXT = Words(
    "Spearman's rank correlation of the mean scores between neighbouring rungs, with the middle 95 % over draws of seeds. "
    "Neighbours are the same model with more steps, or a larger model with the same steps. "
    "A pair changed places if every seed orders it one way at one rung and the other way at the next.",
    "相邻两级平均分数的斯皮尔曼秩相关，括号内为对种子重抽样的中间 95%。"
    "相邻指同一模型训练更多步，或步数相同而模型更大。若一对编码在一级上各种子都是一个次序、"
    "在下一级上都是相反次序，则记为换位。",
)
ORDER_SEEDS = Words(
    "The intervals come from {seeds} and are coarse: few different draws are possible. Of pairs without any difference, "
    "one in {chance} changes places by chance.",
    "区间只来自 {seeds}，因此很粗：可能的抽样结果不多。毫无差别的编码对，每 {chance} 对也会有一对因偶然而换位。",
)
HEAD = (
    Words("from → to", "从 → 到"),
    Words("length", "长度"),
    Words("encodings", "编码数"),
    Words("Spearman", "斯皮尔曼"),
    Words("pairs that changed places", "换位的编码对"),
    Words("changed by the means alone", "仅均值换位"),
)
KEPT = Words(
    "At length {length}, {kept} of {of} pairs have the same order in every seed of every rung, from {least:,} to {most:,} "
    "tokens and up to {size}: {pairs}. Nothing is known beyond these scales.",
    "长度 {length} 处，{of} 对中有 {kept} 对在每一级的每个种子上次序都相同"
    "（{least:,} 至 {most:,} 个词元，模型最大 {size}）：{pairs}。超出这些规模则一无所知。",
)
NONE_KEPT = Words(
    "At length {length}, no pair has the same order in every seed of every rung.",
    "长度 {length} 处，没有一对在每一级的每个种子上次序都相同。",
)
KEPT_LEARNT = Words(
    "Of the {of} pairs of encodings that had learnt the trained length at every rung, {kept} did. The other pairs compare "
    "with an encoding that had not learnt it at some rung.",
    "在每一级都学会训练长度的编码共 {of} 对，其中 {kept} 对如此；其余各对里有编码在某一级尚未学会。",
)
ALL_IMPROVING = Words(
    "Training had not converged for any encoding at any rung, so this is an order at these budgets and not a ranking.",
    "各级各编码的训练都没有收敛，因此这只是这些预算下的次序，不是排名。",
)
LEARNT = Words("What was learnt from which rung on", "从哪一级起学会")
NEVER = Words("at no rung", "各级均未学会")
ENCODING, NONE, NOT_LEARNT = (
    Words("encoding", "编码"),
    Words("none", "无"),
    Words("not learnt", "未学会"),
)


def ladder_report(found: Json, language: Language) -> str:
    def read(words: Words) -> str:
        return escaped(words.in_language(language))

    called = Words(**found["task"]["title"])
    parts = [f"# {read(TITLE)}", read(INTRODUCTION), f"**{read(called)}**", _rungs(found, language)]
    parts += [
        f"## {read(SCORES)}",
        *(
            f"![{read(SCORES)}]({name})"
            for name in ladder_pictures(found)
            if name.endswith(".zh-CN.svg") == (language == "zh")
        ),
        _scores(found, language),
        read(SCORES_TEXT),
        f"## {read(ORDER)}",
        read(ORDER_TEXT),
        read(_seeds(found)),
        _order(found, language),
    ]
    parts += [_kept(found, one, language) for one in found["kept"]]
    parts += [f"## {read(LEARNT)}", _learnt(found, language)]
    return "\n\n".join(parts) + "\n"


def _seeds(found: Json) -> Words:
    fewest = min(rung["seeds"] for rung in found["rungs"])
    seeds = Words(counted(fewest, "seed", "seeds"), f"{fewest} 个种子")
    chance = 2 ** (2 * fewest - 1)  # all seeds one way below, all the other way above
    return Words(*(said.format(seeds=number, chance=chance) for said, number in zip(ORDER_SEEDS, seeds, strict=True)))


def _rungs(found: Json, language: Language) -> str:
    rows = [
        [
            escaped(rung["name"]),
            f"{rung['steps']:,}",
            f"{rung['size']['n_layers']} × {rung['size']['d_model']}",
            f"{rung['tokens'] or 0:,}",
            f"{rung['trials']['found']} / {rung['trials']['expected']}",
        ]
        for rung in found["rungs"]
    ]
    return grid([words.in_language(language) for words in (RUNG, STEPS, SIZE, TOKENS, TRIALS)], rows)


def _scores(found: Json, language: Language) -> str:
    lengths = list(dict.fromkeys((found["task"]["length"], found["task"]["lengths"][-1])))
    head = [ENCODING.in_language(language)]
    head += [f"{escaped(rung['name'])}: {length}" for length in lengths for rung in found["rungs"]]
    rows = []
    for name, arms in found["arms"].items():
        cells = [_score(found, arm, length, language) for length in lengths for arm in arms]
        rows.append([escaped(title(name).in_language(language)), *cells])
    return grid(head, rows)


def _score(found: Json, arm: Json, length: int, language: Language) -> str:
    mean = arm["means"][str(length)]
    if mean is None:
        return "–"
    said = f"{mean:.2f}" if found["task"]["measure"] == "bits" else f"{100 * mean:.1f}"
    if not arm["learnt"]:
        return f"{said} ({NOT_LEARNT.in_language(language)})"
    return f"{said} ↓" if arm["converged"] is False else said


def _order(found: Json, language: Language) -> str:
    rows = []
    for step in found["steps"]:
        interval = step["interval"]
        spearman = "–" if interval is None else f"{step['spearman']:.2f} ({interval[0]:.2f}–{interval[1]:.2f})"
        pairs = [_pairs(step[kind], language) for kind in ("swapped", "unsure")]
        who = f"{escaped(step['from'])} → {escaped(step['to'])}"
        rows.append([who, str(step["length"]), str(len(step["encodings"])), spearman, *pairs])
    return grid([words.in_language(language) for words in HEAD], rows)


def _kept(found: Json, one: Json, language: Language) -> str:
    """Which pairs never changed places, and the scales at which that was seen."""
    worse: dict[str, list[str]] = {}
    for better, other in one["pairs"]:
        worse.setdefault(better, []).append(other)
    behind = sorted(worse.items(), key=lambda item: -len(item[1]))
    pairs = [
        Words(f"{title(better).en} before {rest.en}", f"{title(better).zh} 优于 {rest.zh}")
        for better, others in behind
        for rest in [joined(map(title, others), ", ", "、")]
    ]
    tokens, sizes = [rung["tokens"] or 0 for rung in found["rungs"]], [rung["size"] for rung in found["rungs"]]
    largest = max(sizes, key=lambda size: size["n_layers"] * size["d_model"] ** 2)
    said = KEPT if pairs else NONE_KEPT
    return escaped(
        said.in_language(language).format(
            length=one["length"],
            kept=len(one["pairs"]),
            of=one["of"],
            least=min(tokens),
            most=max(tokens),
            size=f"{largest['n_layers']} × {largest['d_model']}",
            pairs=joined(pairs, "; ", "；").in_language(language),
        )
        + _gap(language)
        + KEPT_LEARNT.in_language(language).format(of=one["of_learnt"], kept=len(one["pairs_learnt"]))
        + (_gap(language) + ALL_IMPROVING.in_language(language) if _none_converged(found) else "")
    )


def _none_converged(found: Json) -> bool:
    return all(rung["converged"] is False for rungs in found["arms"].values() for rung in rungs)


def _gap(language: Language) -> str:
    return " " if language == "en" else ""


def _pairs(pairs: list[list[str]], language: Language) -> str:
    each = [joined(map(title, pair), " / ", " / ").in_language(language) for pair in pairs]
    return escaped(", ".join(each)) if each else NONE.in_language(language)


def _learnt(found: Json, language: Language) -> str:
    rows = [
        [escaped(title(name).in_language(language)), escaped(rung) if rung else NEVER.in_language(language)]
        for name, rung in found["learnt_from"].items()
    ]
    return grid([ENCODING.in_language(language), RUNG.in_language(language)], rows)
