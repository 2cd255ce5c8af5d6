"""Findings and facts that follow from the encodings themselves, in both languages: caches, scales, layouts, precision."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from posenc.configs import PositionSpec, Remark, Rotation, Use
from posenc.configs.report.limit import limit
from posenc.configs.report.meaning import meaning
from posenc.frequencies import Frequencies
from posenc.support.languages import Words


def note(en: str, zh: str, key: str = "") -> Remark:
    return Remark("note", key, Words(en, zh))


def warning(en: str, zh: str, key: str = "") -> Remark:
    return Remark("warning", key, Words(en, zh))


def remarks(spec: PositionSpec) -> Iterator[Remark]:
    """Remarks that follow from the encodings themselves; those about the file's keys come with the spec."""
    for use in distinct_uses(spec):
        if use.rotation is not None and "d_head" in dict(use.arguments):  # embeddings that turn: no heads
            yield from _rotary(use, use.rotation, spec)
        if use.name in REMARKS:
            yield from REMARKS[use.name](use)
    attending = [n for n, layer in enumerate(spec.layers) if layer.attends]
    without = [n for n in attending if not spec.layers[n].uses]
    if without and any(spec.layers[n].uses for n in attending[1:]):
        yield note(
            f"{len(without)} of {len(attending)} attention layers have no positions of their own: {listed(without)}",
            f"{len(attending)} 个注意力层中有 {len(without)} 个没有自己的位置：{listed(without)}",
        )


def facts(spec: PositionSpec) -> Iterator[Words]:
    """What holds for nearly every rotary model: which channels pair, and what low precision does to positions."""
    for use in distinct_uses(spec):
        if use.rotation is not None and "d_head" in dict(use.arguments):
            yield _layout_fact(dict(use.arguments))
            yield from _precision(use.rotation, spec)


def distinct_uses(spec: PositionSpec) -> list[Use]:
    """Every encoding of the spec's own layers once, in order of appearance."""
    return list(dict.fromkeys(use for layer in spec.layers for use in layer.uses))


def listed(numbers: list[int], most: int = 8) -> str:
    """Numbers in few words: runs as 0–5, steps as "every 4th"."""
    if len(numbers) > 2:
        steps = {b - a for a, b in itertools.pairwise(numbers)}
        if steps == {1}:
            return f"{numbers[0]}–{numbers[-1]}"
        if len(steps) == 1:
            return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]} (every {_ordinal(steps.pop())})"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    named = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(named[:most]) + (f", … {numbers[-1]}" if len(named) > most else "")


def _ordinal(n: int) -> str:
    return f"{n}{'th' if 10 <= n % 100 < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def _rotary(use: Use, rotation: Rotation, spec: PositionSpec) -> Iterator[Remark]:
    made, said = rotation.frequencies().at_length(1), dict(use.said_by)
    yield from _layout(dict(use.arguments), rotation, made)
    if rotation.kind in SCALINGS:
        yield from SCALINGS[rotation.kind](rotation, made, spec, said)


def _precision(rotation: Rotation, spec: PositionSpec) -> Iterator[Words]:
    length = limit(spec).usable
    if length is None:
        return
    figures = meaning(rotation.frequencies().at_length(length), length)
    yield Words(
        f"fp32 angles, as in most programs, have an error of {figures.float32_error:.1e} in cos at position {length - 1}; "
        "spec.encoding(exact='model') computes them as the model was trained, 'fp64' exactly",
        f"多数程序用 fp32 计算角度，在位置 {length - 1} 处 cos 的误差为 {figures.float32_error:.1e}；"
        "spec.encoding(exact='model') 与模型训练时相同，'fp64' 为精确值",
    )
    if length > 257:
        yield Words(
            f"positions in bf16 collide from 257 on: {figures.bfloat16_positions} of {length} stay distinct; "
            "keep positions and angles in fp32 or better",
            f"bf16 的位置从 257 起重合：{length} 个中只有 {figures.bfloat16_positions} 个互不相同；位置和角度至少用 fp32",
        )


def _layout_fact(options: dict[str, Any]) -> Words:
    layout = options.get("layout", "interleaved")
    pairs = "i, i + d/2" if layout == "half" else "2i, 2i + 1"
    return Words(
        f"layout {layout}: channels ({pairs}) form a pair. For programs with the other layout, the rows of the query and "
        "key projections must be permuted: posenc convert",
        f"布局 {layout}：通道（{pairs}）成对。若程序使用另一种布局，须重排查询和键投影的行：posenc convert",
    )


def _layout(options: dict[str, Any], rotation: Rotation, made: Frequencies) -> Iterator[Remark]:
    layout, d_head = options.get("layout", "interleaved"), options["d_head"]
    returns = options.get("returns", layout)
    if returns not in (None, layout):
        yield warning(
            f"channels pair as {layout} and are returned as {returns}: scores are the same as in any program with these "
            "pairs, cached keys are not",
            f"通道按 {layout} 成对，返回时按 {returns} 排列：分数与采用同样配对的程序相同，缓存的键不同",
        )
    if options.get("reverse"):
        yield warning(
            "rotates by R(-p): weights of this family fail in programs that rotate by R(p)",
            "按 R(-p) 旋转：这一家族的权重在按 R(p) 旋转的程序中不能用",
        )
    width = 2 * len(made)
    if width < d_head:
        last = bool(options.get("trailing"))
        yield note(
            f"the {'last' if last else 'first'} {width} of {d_head} channels rotate; exponents are over {rotation.width}",
            f"{d_head} 个通道中只有{'后' if last else '前'} {width} 个旋转；指数的分母是 {rotation.width}",
        )


def _proportional(rotation: Rotation, made: Frequencies, spec: PositionSpec, said: dict[str, str]) -> Iterator[Remark]:
    turning, pairs = sum(1 for value in made if value), len(made)
    yield warning(
        f"proportional is not partial: {turning} of {pairs} pairs rotate, paired (i, i + {pairs}), with exponents over all "
        f"{2 * pairs} channels",
        f"proportional 不同于 partial：{pairs} 对中 {turning} 对旋转，"
        f"配对为（i, i + {pairs}），指数的分母是全部 {2 * pairs} 个通道",
        _in_file(said, "rotary_dim"),
    )


def _in_file(said: dict[str, str], argument: str) -> str:
    """The key of the file that gives an argument; "" for a default or a constant."""
    key = said.get(argument, "")
    return "" if key.startswith(("default of", "constant of")) else key


def _yarn(rotation: Rotation, made: Frequencies, spec: PositionSpec, said: dict[str, str]) -> Iterator[Remark]:
    scale, given = made.cos_sin_scale, dict(rotation.parameters)
    yield note(
        f"yarn: cos and sin are multiplied by {scale:.6g}, so logits by {scale**2:.6g}; the softmax scale by "
        f"{made.softmax_scale:.6g}. A program needs both",
        f"yarn：cos 和 sin 乘以 {scale:.6g}，注意力分数因此乘以 {scale**2:.6g}；"
        f"softmax 的缩放乘以 {made.softmax_scale:.6g}。两者缺一不可",
    )
    if spec.trained_length is None or "factor" not in given:
        return
    implied = spec.trained_length / given["original_length"]
    if implied not in (1.0, given["factor"]):
        yield warning(
            f"factor is {given['factor']:g}, but max_position_embeddings / original_max_position_embeddings is {implied:g}",
            f"factor 为 {given['factor']:g}，但 max_position_embeddings / original_max_position_embeddings 为 {implied:g}",
            _in_file(said, "factor"),
        )


def _longrope(rotation: Rotation, made: Frequencies, spec: PositionSpec, said: dict[str, str]) -> Iterator[Remark]:
    length = dict(rotation.parameters)["original_length"]
    yield warning(
        f"two sets of frequencies: past {length} tokens the other one applies to all positions, so keys cached before are "
        "wrong. Choose once per request: at_length(n)",
        f"有两组频率：超过 {length} 个词元后，所有位置改用另一组，此前缓存的键就不对了。每个请求只选一次：at_length(n)",
    )


def _dynamic(rotation: Rotation, made: Frequencies, spec: PositionSpec, said: dict[str, str]) -> Iterator[Remark]:
    length = dict(rotation.parameters)["trained_length"]
    yield warning(
        f"frequencies change with every length past {length}, but cached keys keep the old ones. Choose once per request: "
        "at_length(n)",
        f"超过 {length} 后，频率随长度改变，而缓存的键仍是旧频率。每个请求只选一次：at_length(n)",
    )


def _learned(use: Use) -> Iterator[Remark]:
    arguments = dict(use.arguments)
    rows, offset = arguments.get("max_positions"), arguments.get("row_offset", 0)
    if isinstance(rows, int):
        yield warning(f"a table of {rows} positions: a longer input is an error", f"表只有 {rows} 个位置：更长的输入会出错")
    if offset:
        yield note(
            f"position p reads row p + {offset}: the table has {offset} more rows than positions",
            f"位置 p 读第 p + {offset} 行：表的行数比位置多 {offset}",
        )


def _alibi(use: Use) -> Iterator[Remark]:
    yield note(
        "defined for any length; distances must be exact: bf16 keeps only 641 of the first 2048 distinct",
        "对任何长度都有定义；距离必须精确：bf16 只能区分前 2048 个中的 641 个",
    )


def _t5(use: Use) -> Iterator[Remark]:
    arguments = dict(use.arguments)
    far = arguments.get("max_distance", 128)
    yield note(
        f"defined for any length; from {far} positions on, all distances share the last bucket, so distant tokens have no "
        "order",
        f"对任何长度都有定义；距离 {far} 以上共用最后一个桶，因此远处的词元没有顺序",
    )
    if arguments.get("scale") == 1.0:
        yield note(
            "logits are not divided by √d_head; a fused kernel needs scale = 1",
            "注意力分数不除以 √d_head；融合算子需要 scale = 1",
        )


def _floor_log(use: Use) -> Iterator[Remark]:
    arguments = dict(use.arguments)
    offset, length = arguments.get("offset", 1), arguments.get("length", 8192)
    other = (
        ("Ministral 3 and Mistral 4 count p", "Ministral 3 和 Mistral 4 从 p 数起")
        if offset
        else ("Llama 4 counts p + 1", "Llama 4 从 p + 1 数起")
    )
    yield note(
        f"queries are scaled in steps, at ⌊(p + {offset})/{length}⌋; {other[0]}: every step is one position apart",
        f"查询按 ⌊(p + {offset})/{length}⌋ 分级缩放；{other[1]}：每一级相差一个位置",
    )


SCALINGS = {"proportional": _proportional, "yarn": _yarn, "longrope": _longrope, "dynamic": _dynamic}
REMARKS = {"Learned": _learned, "ALiBi": _alibi, "T5": _t5, "FloorLogTemperature": _floor_log}
