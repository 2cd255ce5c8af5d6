"""Findings about a table as sentences: good (correct), note, or wrong (an error)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from posenc.checking.recognition.formula import Arithmetic, Formula, Layout, Rounded
from posenc.support.languages import Words

Level = Literal["good", "note", "wrong"]


class Observation(NamedTuple):
    level: Level
    words: Words


def _said(level: Level, en: str, zh: str) -> Observation:
    return Observation(level, Words(en, zh))


LAYOUTS: dict[Layout, Words] = {
    "interleaved": Words(
        "alternating sines and cosines, s0 c0 s1 c1 …, as in the paper",
        "正弦与余弦交替：s0 c0 s1 c1 ……，与论文一致",
    ),
    "sin_cos": Words(
        "all sines, then all cosines (tensor2tensor, Whisper, fairseq)",
        "先全部正弦，再全部余弦（tensor2tensor、Whisper、fairseq）",
    ),
    "cos_sin": Words(
        "all cosines, then all sines (MusicGen; a RoPE cache that keeps cos and sin side by side looks the same)",
        "先全部余弦，再全部正弦（MusicGen；cos 与 sin 并排存放的 RoPE 缓存也是这样）",
    ),
    "interleaved_cos": Words(
        "alternating cosines and sines, c0 s0 c1 s1 …: real and imaginary parts of e^(ipω)",
        "余弦与正弦交替：c0 s0 c1 s1 ……，即复数 e^(ipω) 的实部与虚部",
    ),
    "rope_cos_half": Words(
        "a RoPE cache: cosines, both halves alike (half-split pairs)",
        "RoPE 缓存：余弦，前后两半相同（对半配对）",
    ),
    "rope_sin_half": Words(
        "a RoPE cache: sines, both halves alike (half-split pairs)",
        "RoPE 缓存：正弦，前后两半相同（对半配对）",
    ),
    "rope_cos_interleaved": Words(
        "a RoPE cache: cosines, each twice in a row (interleaved pairs)",
        "RoPE 缓存：余弦，每个连写两次（相邻配对）",
    ),
    "rope_sin_interleaved": Words(
        "a RoPE cache: sines, each twice in a row (interleaved pairs)",
        "RoPE 缓存：正弦，每个连写两次（相邻配对）",
    ),
    "rope_cos": Words("a RoPE cache: one cosine for each pair", "RoPE 缓存：每对一个余弦"),
    "rope_sin": Words("a RoPE cache: one sine for each pair", "RoPE 缓存：每对一个正弦"),
    "per_channel": Words(
        "alternating sines and cosines, but every channel has its own frequency",
        "正弦与余弦交替，但每个通道各用一个频率",
    ),
}

MISTAKES: dict[Arithmetic, Words] = {
    "float32": Words(
        "Position times frequency was multiplied in float32: the error grows with the position.",
        "位置与频率的乘积用 float32 计算：误差随位置增大。",
    ),
    "exp_log": Words(
        "This is the tutorial code in float32: frequencies from exp(−i·ln base) are off in their last digits, and the "
        "position multiplies that error.",
        "这是 float32 的教程写法：频率由 exp(−i·ln base) 得出，末几位已有误差，再被位置放大。",
    ),
    "power": Words(
        "Frequencies 1/base^(2i/d) and angles were computed in float32, as in most RoPE code: the error grows with the "
        "position.",
        "频率 1/底数^(2i/d) 与角度都用 float32 计算，多数 RoPE 代码如此：误差随位置增大。",
    ),
    "bfloat16_positions": Words(
        "Positions were cast to bfloat16 before the sines: beyond 256 several positions share one row. Compute in "
        "float64 and round the finished table.",
        "位置在求正弦之前就转成了 bfloat16：超过 256 后，多个位置共用同一行。应先用 float64 算完，再对整张表舍入。",
    ),
    "float16_positions": Words(
        "Positions were cast to float16 before the sines: beyond 2048 several positions share one row. Compute in "
        "float64 and round the finished table.",
        "位置在求正弦之前就转成了 float16：超过 2048 后，多个位置共用同一行。应先用 float64 算完，再对整张表舍入。",
    ),
    "bfloat16": Words(
        "Positions, frequencies and angles were all bfloat16: large angles are wrong by whole radians, and rows repeat.",
        "位置、频率与角度全用 bfloat16 计算：大的角度会差出若干弧度，还会出现重复的行。",
    ),
    "float16": Words(
        "Positions, frequencies and angles were all float16: large angles are wrong, and rows repeat beyond 2048.",
        "位置、频率与角度全用 float16 计算：大的角度不准，超过 2048 还会出现重复的行。",
    ),
}


def of_formula(
    formula: Formula, arithmetic: Arithmetic, transposed: bool, silent: tuple[int, ...], dtype_: Rounded
) -> list[Observation]:
    """Findings from the formula alone; `residual` gives those about the fit."""
    layout, per_channel = LAYOUTS[formula.layout], formula.layout == "per_channel"
    said = [Observation(grave(arithmetic), MISTAKES[arithmetic])] if arithmetic != "exact" else []
    if per_channel:
        said.append(_one_angle_each())
    said.append(_said("wrong" if per_channel else "good", f"Channels: {layout.en}.", f"通道顺序：{layout.zh}。"))
    said.append(_base(formula))
    if transposed:
        said.append(
            _said("note", "The table is transposed: positions run along its columns.", "表是转置的：位置沿列方向排列。")
        )
    if formula.offset:
        said.append(_said("note", f"Row 0 is position {formula.offset:g}.", f"第 0 行对应位置 {formula.offset:g}。"))
    if formula.scale != 1:
        said.append(
            _said(
                "note",
                f"From row to row the position grows by {formula.scale:.6g}, not by 1.",
                f"相邻两行的位置相差 {formula.scale:.6g}，而不是 1。",
            )
        )
    said += _denominator(formula)
    if formula.amplitude != 1:
        said.append(_amplitude(formula))
    if silent:
        which = ", ".join(map(str, silent[:8])) + (" …" if len(silent) > 8 else "")
        said.append(
            _said(
                "note",
                f"Rows of zeros: {which}; such a row is often kept for padding.",
                f"全零的行：{which}；这样的行常留给填充符。",
            )
        )
    return [*said, dtype(dtype_)]


def grave(arithmetic: Arithmetic) -> Level:
    """Severity of reduced precision: float32 loses digits, lower precisions merge positions."""
    return "note" if arithmetic in ("float32", "exp_log", "power") else "wrong"


def _one_angle_each() -> Observation:
    return _said(
        "wrong",
        "Sine and cosine of a pair must share one angle. Here they do not, so no rotation leads from one row to the next. "
        "A common error: the exponent uses the index of the channel instead of that of its pair.",
        "一对正弦与余弦本应共用同一个角度。这里各用各的，行与行之间就不再是旋转。"
        "这是流传很广的笔误：指数里写的是通道号，而不是它所在的对的编号。",
    )


def _base(formula: Formula) -> Observation:
    if not formula.base_seen:
        return _said(
            "note",
            "There is only one pair, and its frequency is 1 for every base, so the base cannot be determined.",
            "只有一个通道对，无论底数是多少，频率都是 1，因此无法确定底数。",
        )
    base = f"{formula.base:,.6g}".replace(",", " ") if formula.base < 1e6 else f"{formula.base:.6g}"
    return _said("good", f"Base {base}.", f"底数 {base}。")


def _denominator(formula: Formula) -> list[Observation]:
    said = []
    if formula.denominator == "d/2-1":
        said.append(
            _said(
                "note",
                "The exponent is divided by d/2 − 1, so that the last frequency is exactly 1/base (tensor2tensor). The "
                "paper divides by d/2.",
                "指数的分母是 d/2 − 1，最后一个频率恰为 1/底数（tensor2tensor 的做法）。论文用的是 d/2。",
            )
        )
    if formula.odd == "drop":
        said.append(_said("note", "The width is odd: the last cosine is left out.", "通道数为奇数：去掉了最后一个余弦。"))
    if formula.odd == "zero":
        said.append(
            _said(
                "note",
                "The width is odd: the last channel is filled with zeros (fairseq).",
                "通道数为奇数：最后一个通道补零（fairseq 的做法）。",
            )
        )
    return said


def _amplitude(formula: Formula) -> Observation:
    width, size = formula.width, formula.amplitude
    if size == (2 / width) ** 0.5:
        return _said(
            "note", "Every row has length 1: the numbers are multiplied by √(2/d).", "每行的长度都是 1：所有数乘了 √(2/d)。"
        )
    name = {width**0.5: "√d = ", width**-0.5: "1/√d = "}.get(size, "")
    return _said("note", f"All numbers are multiplied by {name}{size:.6g}.", f"所有数都乘以 {name}{size:.6g}。")


def residual(off: np.ndarray, unexplained: float, arithmetic: Arithmetic, allowed: float) -> Observation:
    """Findings about the difference between the numbers and the formula."""
    worst = float(off.max())
    row, column = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
    en, zh = f"at row {row}, channel {column}", f"在第 {row} 行、通道 {column}"
    if worst == 0:
        return _said("good", "All numbers equal the formula exactly.", "没有一个数与公式不同。")
    if worst <= allowed:
        return _said(
            "good",
            f"Largest difference from the formula: {worst:.1e}, within rounding.",
            f"与公式的最大差异：{worst:.1e}，不超过舍入误差。",
        )
    if arithmetic != "exact":
        left_en, left_zh = (
            (f"{unexplained:.1e} is left", f"只剩 {unexplained:.1e}") if unexplained else ("nothing is left", "丝毫不差")
        )
        return _said(
            grave(arithmetic),
            f"Largest difference from the exact table: {worst:.2g}, {en}; made with that arithmetic, {left_en}.",
            f"与精确表的最大差异：{worst:.2g}，{zh}；按上述算法重算，{left_zh}。",
        )
    wrong = int((off > allowed).sum())
    return _said(
        "wrong",
        f"{wrong} of {off.size} numbers differ from the formula by more than rounding, at most by {worst:.2g} {en}.",
        f"{off.size} 个数中有 {wrong} 个与公式的差超过舍入误差，最大 {worst:.2g}，{zh}。",
    )


def dtype(name: Rounded) -> Observation:
    return _said("note", f"Every number is exactly a {name} number.", f"每个数都能用 {name} 精确表示。")


def repeated(numbers: np.ndarray) -> Observation:
    """Findings about repeated rows."""
    first: dict[bytes, int] = {}
    pair = None
    for row, values in enumerate(numbers + 0.0):  # -0 and 0 are the same number
        if (seen := first.setdefault(values.tobytes(), row)) != row and pair is None:
            pair = (seen, row)
    if pair is None:
        return _said("good", f"All {len(numbers)} rows differ.", f"{len(numbers)} 行互不相同。")
    return _said(
        "wrong",
        f"Only {len(first)} of {len(numbers)} rows differ: row {pair[1]} is the first that repeats another, row {pair[0]}.",
        f"{len(numbers)} 行中只有 {len(first)} 行不同：第一处重复是第 {pair[1]} 行，与第 {pair[0]} 行相同。",
    )


def no_sinusoid() -> Observation:
    return _said(
        "note",
        "This is not a known sinusoidal table. Its general properties:",
        "这不是这里认得的任何一种正弦表。从数值中能看出的有：",
    )


def other_speeds(layout: Layout) -> Observation:
    words = LAYOUTS[layout]
    return _said(
        "note",
        "Its pairs rotate uniformly, but the frequencies are not a geometric progression: scaled (YaRN, Llama 3) or "
        f"learned ones. Channels: {words.en}.",
        "各通道对匀速旋转，但频率不成等比数列：可能是缩放过的频率（YaRN、Llama 3），也可能是学到的。"
        f"通道顺序：{words.zh}。",
    )


def rows(numbers: np.ndarray) -> list[Observation]:
    """Findings about any table: the norms of its rows and the similarity of neighbouring rows."""
    norms = np.linalg.norm(numbers, axis=1)
    least, most, mean = f"{norms.min():.4g}", f"{norms.max():.4g}", f"{norms.mean():.4g}"
    said = [
        _said(
            "note",
            f"Rows have lengths from {least} to {most}, {mean} on average; those of a sinusoid are all alike.",
            f"各行的长度从 {least} 到 {most}，平均 {mean}；正弦表的各行一样长。",
        )
    ]
    if norms.min() == 0 or len(numbers) < 4:
        return said
    unit = numbers / norms[:, None]
    half = len(unit) // 2
    near, far = float((unit[1:] * unit[:-1]).sum(1).mean()), float((unit[half:] * unit[:-half]).sum(1).mean())
    like = Words(
        f"Cosine similarity of neighbouring rows: {near:.3f} on average; half a table apart: {far:.3f}.",
        f"相邻行的余弦相似度平均为 {near:.3f}；相隔半张表为 {far:.3f}。",
    )
    if near - far > 0.1:
        so = Words(
            " Neighbouring rows are similar, as in many learned tables.", "相邻的行更相似，许多学习得到的表都是这样。"
        )
    else:
        so = Words(" Neighbouring rows are not more similar than distant ones.", "相邻的行并不比相隔很远的行更相似。")
    return [*said, _said("note", like.en + so.en, like.zh + so.zh)]


def constant(numbers: np.ndarray) -> Observation:
    if not numbers.any():
        return _said("wrong", "Every number is 0, so positions are not distinguished.", "所有数都是 0：分不出任何位置。")
    return _said("wrong", "All rows are equal, so positions are not distinguished.", "所有行都相同：分不出任何位置。")


def not_finite(numbers: np.ndarray, finite: np.ndarray) -> Observation:
    row, column = (int(i) for i in np.argwhere(~finite)[0])
    count, first = int((~finite).sum()), numbers[row, column]
    return _said(
        "wrong",
        f"{count} of {numbers.size} numbers are not finite; the first is {first} at row {row}, column {column}.",
        f"{numbers.size} 个数中有 {count} 个不是有限数；第一个是第 {row} 行第 {column} 列的 {first}。",
    )


def out_of_range(size: float) -> Observation:
    return _said(
        "wrong",
        f"The largest absolute value is {size:.2g}, too large for a table of positions.",
        f"绝对值最大的数是 {size:.2g}，位置编码表里不会有这样的数。",
    )
