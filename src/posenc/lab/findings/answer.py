"""What was found, in plain sentences; every number in them is computed from the findings.

trained ─ best at the trained length ─ stays, fades, breaks beyond it ─ what cannot, what was not learnt
order without positions ─ changes after training ─ exact tasks ─ cost ─ what to take ─ published ─ how sure
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from posenc.bilingual import Words, joined
from posenc.lab.findings.claim_checks import CHANGES
from posenc.lab.findings.statistics import BREAKS, ENOUGH, FLAT
from posenc.lab.findings.titles import after_training, best, main_task, title, worse
from posenc.lab.trial.training import CAUSAL_ONLY
from posenc.lab.verdict import NOT_LEARNT

Json = Mapping[str, Any]
Key = Callable[[Json], float]
COPYING = "copy"
MOSTLY = 0.5  # right in fewer rows, nothing is to be recommended


def sentences(found: Json) -> list[Words]:
    """The most important first, in so far as it was measured."""
    main = main_task(found)
    told = (
        _trained(found),
        _at_home(main),
        *_beyond(main),
        _cannot(main),
        _not_learnt(found),
        *_blind(found),
        _after(main),
        _exact(found, main),
        _cost(found),
        *_needs(found, main),
        _published(found),
        _missing(found),
        _seeds(found),
    )
    return [words for words in told if words is not None]


# What was done ------------------------------------------------------------------------------------------------------


def _trained(found: Json) -> Words:
    arms = {arm["name"] for task in found["tasks"] for arm in task["arms"]}
    names = [_title(task) for task in found["tasks"]]
    size, seeds = found["size"], len(found["seeds"])
    untrained = sum(arm["state"] == f"cannot: {CAUSAL_ONLY}" for task in found["tasks"] for arm in task["arms"]) * seeds
    trials = max(0, found["trials"]["found"] - untrained)
    return Words(
        f"{_count(trials, 'model was', 'models were')} trained, {_count(len(arms), 'encoding', 'encodings')} with "
        f"{_count(seeds, 'seed', 'seeds')} each, that differ by the encoding only: {size['n_layers']} layers, "
        f"width {size['d_model']}, {size['n_heads']} heads; {joined(names, ', ', '').en}.",
        f"共训练 {trials} 个模型：{len(arms)} 种编码，每种 {seeds} 个随机种子，彼此只有位置编码不同；"
        f"{size['n_layers']} 层，宽度 {size['d_model']}，{size['n_heads']} 个头。任务：{joined(names, '', '、').zh}。",
    )


# The main task ------------------------------------------------------------------------------------------------------


def _at_home(task: Json) -> Words | None:
    arms, home = [arm for arm in task["arms"] if arm["learnt"]], task["length"]
    if all(arm["state"] == "missing" for arm in task["arms"]):
        return Words(f"{_title(task).en}: not run yet.", f"{_title(task).zh}：尚未运行。")
    if not arms:
        return Words(
            f"{_title(task).en}: nothing was learnt at this budget, so nothing is said of longer lengths.",
            f"{_title(task).zh}：在此预算下没有一种编码学会，因此不评价更长的长度。",
        )
    best = min(arms, key=_worse(task, home))
    said, chance = _value(task, best["cells"][str(home)]["mean"]), _value(task, task["chance"][str(home)])
    return Words(
        f"{_title(task).en}, at the trained length {home}: {_name(best).en} is best with {said.en}, where chance gives "
        f"{chance.en}; {len(arms)} of {len(task['arms'])} learnt that length.",
        f"{_title(task).zh}，训练长度 {home}：{_name(best).zh} 最好，{said.zh}（随机水平为 {chance.zh}）；"
        f"{len(task['arms'])} 种中有 {len(arms)} 种学会了这个长度。",
    )


def _beyond(task: Json) -> Iterator[Words]:
    far = task["lengths"][-1]
    kinds = {kind: [arm for arm in task["arms"] if arm["behaviour"] == kind] for kind in ("flat", "fades", "breaks")}
    at = _times(task, far)
    flat, broken = _bounds(task)
    held = Words("on the same targets, ", "目标不变，") if task["measure"] == "bits" else Words("", "")
    texts = {
        "flat": Words(
            f"At {at.en} the trained length, {held.en}these stay ({flat.en}): {{rows}}.",
            f"到训练长度的 {at.zh}，{held.zh}仍然保持（{flat.zh}）的有：{{rows}}。",
        ),
        "fades": Words("These get worse slowly: {rows}.", "逐渐变差的有：{rows}。"),
        "breaks": Words(f"These break ({broken.en}): {{rows}}.", f"失效（{broken.zh}）的有：{{rows}}。"),
    }
    if not kinds["flat"] and (kinds["fades"] or kinds["breaks"]):
        yield Words(
            f"At {at.en} the trained length no encoding stays as good as it was ({flat.en}).",
            f"到训练长度的 {at.zh}，没有一种编码能保持原有水平（{flat.zh}）。",
        )
    for kind, text in texts.items():
        if arms := sorted(kinds[kind], key=lambda arm: arm["rise"][str(far)]["mean"]):
            rows = _listed(arms, lambda arm: _change(task, arm["rise"][str(far)]["mean"]))
            yield Words(text.en.format(rows=rows.en), text.zh.format(rows=rows.zh))


def _cannot(task: Json) -> Words | None:
    """Those that learnt the trained length and have no way to go further."""
    stopped = []
    for arm in task["arms"]:
        ends = [length for length, cell in arm["cells"].items() if (cell["state"] or "").startswith("cannot")]
        if ends and not (arm["state"] or "").startswith("cannot"):
            stopped.append((_name(arm), ends[0], arm["cells"][ends[0]]["state"].removeprefix("cannot: ")))
    if not stopped:
        return None
    said = joined(
        (Words(f"{name.en} ({why})", f"{name.zh}（从 {length} 起无法计算）") for name, length, why in stopped), ", ", "、"
    )
    return Words(f"Cannot read any further at all: {said.en}.", f"完全无法用于更长输入的有：{said.zh}。")


def _after(task: Json) -> Words | None:
    """At 4×, or the longest length at which all have a number."""
    if (found := after_training(task)) is None:
        return None
    length, at = found
    rows = joined((_row(CHANGES[change], _value(task, at[change])) for change in at), ", ", "，")
    times = _times(task, length)
    return Words(
        f"Changing the frequencies of the trained RoPE models, without training on, gives at {times.en}, the best first: "
        f"{rows.en}.",
        f"训练之后修改 RoPE 的频率、不再继续训练，在 {times.zh}处从好到差依次为：{rows.zh}。",
    )


# All tasks ----------------------------------------------------------------------------------------------------------


def _not_learnt(found: Json) -> Words | None:
    """Task by task; what cannot do without positions is another sentence."""
    said = []
    for task in found["tasks"]:
        arms = [arm for arm in task["arms"] if arm["state"] == NOT_LEARNT]
        if arms:
            rows = _listed(arms, lambda arm, task=task: _value(task, arm["cells"][str(task["length"])]["mean"]))  # type: ignore[misc]
            said.append(Words(f"{_title(task).en}: {rows.en}", f"{_title(task).zh}：{rows.zh}"))
    if not said:
        return None
    rows = joined(said, "; ", "；")
    return Words(
        f"Not learnt at this budget, and therefore not judged beyond the trained length: {rows.en}.",
        f"在此预算下没有学会，因此不评价其外推：{rows.zh}。",
    )


def _blind(found: Json) -> Iterator[Words]:
    """NoPE where attention looks both ways, against the others."""
    for task in found["tasks"]:
        home = str(task["length"])
        nope = next((arm for arm in task["arms"] if arm["name"] == "nope"), None)
        others = [arm for arm in task["arms"] if arm["learnt"] and arm["name"] != "nope"]
        if task["causal"] or nope is None or nope["cells"][home]["mean"] is None or not others:
            continue
        best = min(others, key=_worse(task, task["length"]))
        ours, theirs = (_value(task, arm["cells"][home]["mean"]) for arm in (nope, best))
        name, known = _name(best), Words("", "")
        if task["measure"] == "exact":
            guess = _value(task, task["chance"][home])
            known = Words(f"; guessing gives {guess.en}", f"；随机猜测：{guess.zh}")
        elif task["baseline"] is not None:
            least = _value(task, task["baseline"])
            known = Words(f"; knowing nothing of the context gives {least.en}", f"；完全不看上下文：{least.zh}")
        told = Words("learns it all the same", "也能学会") if nope["learnt"] else Words("does not learn it", "学不会")
        yield Words(
            f"{_title(task).en}, looking both ways: a model without positions {told.en} ({ours.en}), one with {name.en} "
            f"does ({theirs.en}){known.en}.",
            f"{_title(task).zh}（双向注意力）：没有位置的模型{told.zh}（{ours.zh}），用 {name.zh} 则能学会（{theirs.zh}）"
            f"{known.zh}。",
        )


def _exact(found: Json, main: Json) -> Words | None:
    """Who keeps nine tenths of its exact match farthest, task by task."""
    said = []
    for task in found["tasks"]:
        arms = [arm for arm in task["arms"] if arm["factor"] is not None]
        if task is main or task["measure"] != "exact" or not arms:
            continue
        most = max(arm["factor"]["value"] for arm in arms)
        if most <= 1:
            said.append(
                Words(f"{_title(task).en}: nobody beyond the trained length", f"{_title(task).zh}：超出训练长度后都做不到")
            )
            continue
        farthest = [arm for arm in arms if arm["factor"]["value"] == most]
        names = joined((_name(arm) for arm in farthest), ", ", "、")
        more = any(arm["factor"]["censored"] for arm in farthest)
        reach = Words(">" * more + f"{most:.3g}×", "超过 " * more + f"{most:.3g} 倍")
        said.append(Words(f"{_title(task).en}: {names.en} ({reach.en})", f"{_title(task).zh}：{names.zh}（{reach.zh}）"))
    if not said:
        return None
    rows = joined(said, "; ", "；")
    return Words(
        f"Farthest with at least {FLAT['exact']:.0%} of the exact match kept: {rows.en}.",
        f"完全匹配率保持 {FLAT['exact']:.0%} 以上时走得最远的：{rows.zh}。",
    )


def _cost(found: Json) -> Words | None:
    rows = _timed(found)
    if not rows:
        return None
    ordered = sorted(rows, key=rows.__getitem__)
    said = joined((_row(title(name), _same(f"{rows[name]:.2f}×")) for name in ordered), ", ", "、")
    return Words(
        f"Time of a training step relative to no encoding: {said.en}.", f"训练一步的耗时（没有编码时为 1×）：{said.zh}。"
    )


# What to take -------------------------------------------------------------------------------------------------------


def _needs(found: Json, main: Json) -> Iterator[Words]:
    """Together with whatever cannot be told from the best: at least one seed orders them the other way."""
    learnt = [arm for arm in main["arms"] if arm["learnt"]]
    said = []

    def need(en: str, zh: str, task: Json, arms: Sequence[Json], length: int) -> None:
        if arms := [arm for arm in arms if arm["cells"][str(length)]["mean"] is not None]:
            said.append(_row(Words(en, zh), joined(map(_name, best(task, arms, length)), " or ", " 或 "), ": ", "："))

    need("no longer than in training", "不超过训练长度", main, learnt, main["length"])
    if main["lengths"][-1] > main["length"]:
        times = _times(main, main["lengths"][-1])
        need(f"up to {times.en} as long", f"长达训练长度的 {times.zh}", main, learnt, main["lengths"][-1])
    rows = {name: time for name, time in _timed(found).items() if any(arm["name"] == name for arm in learnt)}
    if rows:
        least = found["cost"]["rows"][min(rows, key=rows.__getitem__)]["training"]["high"]
        cheap = sorted((name for name in rows if rows[name] <= least), key=rows.__getitem__)
        said.append(_row(Words("least time to train", "训练最省时"), joined(map(title, cheap), " or ", " 或 "), ": ", "："))
    for task in found["tasks"]:
        if task["name"] == COPYING and task["lengths"][-1] > task["length"]:
            twice = max(length for length in task["lengths"] if length <= max(2 * task["length"], task["length"] + 1))
            at = _times(task, twice)
            able = [arm for arm in task["arms"] if arm["learnt"]]
            reached = max((arm["cells"][str(twice)]["mean"] or 0.0 for arm in able), default=1.0)
            if reached < MOSTLY:
                none = Words(f"nobody ({reached:.0%} right at best)", f"无（最好者正确率 {reached:.0%}）")
                said.append(_row(Words(f"exact copying at {at.en}", f"在 {at.zh}处准确复制"), none, ": ", "："))
                continue
            need(f"exact copying at {at.en}", f"在 {at.zh}处准确复制", task, able, twice)
    if said:
        rows_said = joined(said, "; ", "；")
        yield Words(f"What to take here, by need: {rows_said.en}.", f"按需求选择（仅就本实验而言）：{rows_said.zh}。")


# How sure -----------------------------------------------------------------------------------------------------------


def _published(found: Json) -> Words | None:
    count = {verdict: sum(row["verdict"] == verdict for row in found["published"]) for verdict in ("agree", "disagree")}
    rest = len(found["published"]) - sum(count.values())
    if not found["published"]:
        return None
    return Words(
        f"Of {len(found['published'])} published claims, {count['agree']} agree with these numbers, {count['disagree']} "
        f"disagree, and {rest} could not be tested here.",
        f"在 {len(found['published'])} 条已发表的论断中，与此处数据一致的有 {count['agree']} 条，"
        f"不一致的有 {count['disagree']} 条，此处无法检验的有 {rest} 条。",
    )


def _missing(found: Json) -> Words | None:
    if not found["missing"]:
        return None
    n, of = len(found["missing"]), found["trials"]["expected"]
    return Words(
        f"{_count(n, 'trial', 'trials')} of {of} failed or did not run; their cells say so.",
        f"{of} 次训练中有 {n} 次失败或尚未运行，相应的格中已注明。",
    )


def _seeds(found: Json) -> Words:
    seeds = len(found["seeds"])
    if found["exploratory"]:
        return Words(
            f"With {_count(seeds, 'seed', 'seeds')} all this is exploratory: every seed is shown; an interval over seeds "
            f"needs {ENOUGH}.",
            f"只有 {seeds} 个随机种子，以上均为探索性结果：每个种子都列出；不足 {ENOUGH} 个时不给出种子间的区间。",
        )
    return Words(
        f"Intervals are of 95%, over {seeds} seeds and over documents.",
        f"区间为 95%，对 {seeds} 个随机种子和各文档自助抽样得出。",
    )


# Words --------------------------------------------------------------------------------------------------------------


def _title(task: Json) -> Words:
    return Words(**task["title"])


def _name(arm: Json) -> Words:
    return title(arm["name"])


def _row(name: Words, number: Words, en: str = " ", zh: str = " ") -> Words:
    return Words(f"{name.en}{en}{number.en}", f"{name.zh}{zh}{number.zh}")


def _same(text: str) -> Words:
    return Words(text, text)


def _listed(arms: Iterable[Json], number: Callable[[Json], Words]) -> Words:
    """ALiBi (+0.01 bits), Shaw (+0.08 bits)."""
    pairs = [(_name(arm), number(arm)) for arm in arms]
    return joined((Words(f"{name.en} ({said.en})", f"{name.zh}（{said.zh}）") for name, said in pairs), ", ", "、")


def _times(task: Json, length: int) -> Words:
    times = f"{length / task['length']:.3g}"
    return Words(f"{times}×", f"{times} 倍")


def _count(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"


def _worse(task: Json, length: int) -> Key:
    return lambda arm: worse(task, arm["cells"][str(length)]["mean"])


def _value(task: Json, number: float) -> Words:
    if task["measure"] == "bits":
        return Words(f"{number:.2f} bits", f"{number:.2f} 比特")
    return Words(f"{100 * number:.1f}% right", f"正确率 {100 * number:.1f}%")


def _change(task: Json, lost: float) -> Words:
    """Bits more, or points of exact match less."""
    if task["measure"] == "bits":
        return Words(f"{lost:+.2f} bits", f"{lost:+.2f} 比特")
    return Words(f"{-100 * lost:+.1f} points", f"{-100 * lost:+.1f} 个百分点")


def _bounds(task: Json) -> tuple[Words, Words]:
    """When an encoding stays, and when it breaks."""
    if task["measure"] == "bits":
        return (
            Words(f"at most {FLAT['bits']:g} bits worse", f"变差不超过 {FLAT['bits']:g} 比特"),
            Words(f"{BREAKS['bits']:g} bits worse or more", f"变差 {BREAKS['bits']:g} 比特以上"),
        )
    return (
        Words(f"at least {FLAT['exact']:.0%} of the exact match kept", f"完全匹配率保持 {FLAT['exact']:.0%} 以上"),
        Words(f"less than {BREAKS['exact']:.0%} of it kept", f"保持不到 {BREAKS['exact']:.0%}"),
    )


def _timed(found: Json) -> dict[str, float]:
    """Median time of a training step relative to NoPE, which is measured against itself and left out."""
    rows = (found["cost"] or {"rows": {}})["rows"]
    return {name: row["training"]["median"] for name, row in rows.items() if name != "nope" and row.get("training")}
