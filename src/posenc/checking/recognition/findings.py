"""Findings about a table as sentences: good (correct), note, or wrong (an error)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from posenc.checking.recognition.formula import Arithmetic, Formula, Layout, Rounded
from posenc.checking.say import say
from posenc.support.languages import Words, joined

Level = Literal["good", "note", "wrong"]


class Observation(NamedTuple):
    level: Level
    words: Words


LAYOUTS: dict[Layout, Words] = {
    "interleaved": say("alternating sines and cosines, s0 c0 s1 c1 …, as in the paper"),
    "sin_cos": say("all sines, then all cosines (tensor2tensor, Whisper, fairseq)"),
    "cos_sin": say(
        "all cosines, then all sines (MusicGen; a RoPE cache that keeps cos and sin side by side looks the same)"
    ),
    "interleaved_cos": say("alternating cosines and sines, c0 s0 c1 s1 …: real and imaginary parts of e^(ipω)"),
    "rope_cos_half": say("a RoPE cache: cosines, both halves alike (half-split pairs)"),
    "rope_sin_half": say("a RoPE cache: sines, both halves alike (half-split pairs)"),
    "rope_cos_interleaved": say("a RoPE cache: cosines, each twice in a row (interleaved pairs)"),
    "rope_sin_interleaved": say("a RoPE cache: sines, each twice in a row (interleaved pairs)"),
    "rope_cos": say("a RoPE cache: one cosine for each pair"),
    "rope_sin": say("a RoPE cache: one sine for each pair"),
    "per_channel": say("alternating sines and cosines, but every channel has its own frequency"),
}

MISTAKES: dict[Arithmetic, Words] = {
    "float32": say("Position times frequency was multiplied in float32: the error grows with the position."),
    "exp_log": say(
        "This is the tutorial code in float32: frequencies from exp(−i·ln base) are off in their last digits, and the "
        "position multiplies that error."
    ),
    "power": say(
        "Frequencies 1/base^(2i/d) and angles were computed in float32, as in most RoPE code: the error grows with the "
        "position."
    ),
    "bfloat16_positions": say(
        "Positions were cast to bfloat16 before the sines: beyond 256 several positions share one row. Compute in "
        "float64 and round the finished table."
    ),
    "float16_positions": say(
        "Positions were cast to float16 before the sines: beyond 2048 several positions share one row. Compute in "
        "float64 and round the finished table."
    ),
    "bfloat16": say(
        "Positions, frequencies and angles were all bfloat16: large angles are wrong by whole radians, and rows repeat."
    ),
    "float16": say(
        "Positions, frequencies and angles were all float16: large angles are wrong, and rows repeat beyond 2048."
    ),
}


def of_formula(
    formula: Formula, arithmetic: Arithmetic, transposed: bool, silent: tuple[int, ...], dtype_: Rounded
) -> list[Observation]:
    """Findings from the formula alone; `residual` gives those about the fit."""
    layout, per_channel = LAYOUTS[formula.layout], formula.layout == "per_channel"
    told = [Observation(grave(arithmetic), MISTAKES[arithmetic])] if arithmetic != "exact" else []
    if per_channel:
        told.append(_one_angle_each())
    told.append(Observation("wrong" if per_channel else "good", say("Channels: {layout}.", layout=layout)))
    told.append(_base(formula))
    if transposed:
        told.append(Observation("note", say("The table is transposed: positions run along its columns.")))
    if formula.offset:
        told.append(Observation("note", say("Row 0 is position {offset:g}.", offset=formula.offset)))
    if formula.scale != 1:
        told.append(
            Observation("note", say("From row to row the position grows by {scale:.6g}, not by 1.", scale=formula.scale))
        )
    told += _denominator(formula)
    if formula.amplitude != 1:
        told.append(_amplitude(formula))
    if silent:
        which = ", ".join(map(str, silent[:8])) + (" …" if len(silent) > 8 else "")
        told.append(Observation("note", say("Rows of zeros: {which}; such a row is often kept for padding.", which=which)))
    return [*told, dtype(dtype_)]


def grave(arithmetic: Arithmetic) -> Level:
    """Severity of reduced precision: float32 loses digits, lower precisions merge positions."""
    return "note" if arithmetic in ("float32", "exp_log", "power") else "wrong"


def _one_angle_each() -> Observation:
    return Observation(
        "wrong",
        say(
            "Sine and cosine of a pair must share one angle. Here they do not, so no rotation leads from one row "
            "to the next. "
            "A common error: the exponent uses the index of the channel instead of that of its pair."
        ),
    )


def _base(formula: Formula) -> Observation:
    if not formula.base_seen:
        return Observation(
            "note", say("There is only one pair, and its frequency is 1 for every base, so the base cannot be determined.")
        )
    base = f"{formula.base:,.6g}".replace(",", " ") if formula.base < 1e6 else f"{formula.base:.6g}"
    return Observation("good", say("Base {base}.", base=base))


def _denominator(formula: Formula) -> list[Observation]:
    observations = []
    if formula.denominator == "d/2-1":
        observations.append(
            Observation(
                "note",
                say(
                    "The exponent is divided by d/2 − 1, so that the last frequency is exactly 1/base (tensor2tensor). The "
                    "paper divides by d/2."
                ),
            )
        )
    if formula.odd == "drop":
        observations.append(Observation("note", say("The width is odd: the last cosine is left out.")))
    if formula.odd == "zero":
        observations.append(Observation("note", say("The width is odd: the last channel is filled with zeros (fairseq).")))
    return observations


def _amplitude(formula: Formula) -> Observation:
    width, size = formula.width, formula.amplitude
    if size == (2 / width) ** 0.5:
        return Observation("note", say("Every row has length 1: the numbers are multiplied by √(2/d)."))
    name = {width**0.5: "√d = ", width**-0.5: "1/√d = "}.get(size, "")
    return Observation("note", say("All numbers are multiplied by {name}{size:.6g}.", name=name, size=size))


def residual(off: np.ndarray, unexplained: float, arithmetic: Arithmetic, allowed: float) -> Observation:
    """Findings about the difference between the numbers and the formula."""
    worst = float(off.max())
    row, column = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
    where = say("at row {row}, channel {column}", row=row, column=column)
    if worst == 0:
        return Observation("good", say("All numbers equal the formula exactly."))
    if worst <= allowed:
        return Observation("good", say("Largest difference from the formula: {worst:.1e}, within rounding.", worst=worst))
    if arithmetic != "exact":
        left = say("{left:.1e} is left", left=unexplained) if unexplained else say("nothing is left")
        return Observation(
            grave(arithmetic),
            say(
                "Largest difference from the exact table: {worst:.2g}, {where}; made with that arithmetic, {left}.",
                worst=worst,
                where=where,
                left=left,
            ),
        )
    wrong = int((off > allowed).sum())
    return Observation(
        "wrong",
        say(
            "{wrong} of {size} numbers differ from the formula by more than rounding, at most by {worst:.2g} {where}.",
            wrong=wrong,
            size=off.size,
            worst=worst,
            where=where,
        ),
    )


def dtype(name: Rounded) -> Observation:
    return Observation("note", say("Every number is exactly a {name} number.", name=name))


def repeated(numbers: np.ndarray) -> Observation:
    """Findings about repeated rows."""
    first: dict[bytes, int] = {}
    pair = None
    for row, values in enumerate(numbers + 0.0):  # -0 and 0 are the same number
        if (seen := first.setdefault(values.tobytes(), row)) != row and pair is None:
            pair = (seen, row)
    if pair is None:
        return Observation("good", say("All {n_numbers} rows differ.", n_numbers=len(numbers)))
    return Observation(
        "wrong",
        say(
            "Only {n_first} of {n_numbers} rows differ: row {pair} is the first that repeats another, row {repeated}.",
            n_first=len(first),
            n_numbers=len(numbers),
            pair=pair[1],
            repeated=pair[0],
        ),
    )


def no_sinusoid() -> Observation:
    return Observation("note", say("This is not a known sinusoidal table. Its general properties:"))


def other_speeds(layout: Layout) -> Observation:
    words = LAYOUTS[layout]
    return Observation(
        "note",
        say(
            "Its pairs rotate uniformly, but the frequencies are not a geometric progression: scaled (YaRN, "
            "Llama 3) or learned ones. Channels: {words}.",
            words=words,
        ),
    )


def rows(numbers: np.ndarray) -> list[Observation]:
    """Findings about any table: the norms of its rows and the similarity of neighbouring rows."""
    norms = np.linalg.norm(numbers, axis=1)
    least, most, mean = f"{norms.min():.4g}", f"{norms.max():.4g}", f"{norms.mean():.4g}"
    observations = [
        Observation(
            "note",
            say(
                "Rows have lengths from {least} to {most}, {mean} on average; those of a sinusoid are all alike.",
                least=least,
                most=most,
                mean=mean,
            ),
        )
    ]
    if norms.min() == 0 or len(numbers) < 4:
        return observations
    unit = numbers / norms[:, None]
    half = len(unit) // 2
    near, far = float((unit[1:] * unit[:-1]).sum(1).mean()), float((unit[half:] * unit[:-half]).sum(1).mean())
    like = say(
        "Cosine similarity of neighbouring rows: {near:.3f} on average; half a table apart: {far:.3f}.", near=near, far=far
    )
    if near - far > 0.1:
        so = say(" Neighbouring rows are similar, as in many learned tables.")
    else:
        so = say(" Neighbouring rows are not more similar than distant ones.")
    return [*observations, Observation("note", joined((like, so), "", ""))]


def constant(numbers: np.ndarray) -> Observation:
    if not numbers.any():
        return Observation("wrong", say("Every number is 0, so positions are not distinguished."))
    return Observation("wrong", say("All rows are equal, so positions are not distinguished."))


def not_finite(numbers: np.ndarray, finite: np.ndarray) -> Observation:
    row, column = (int(i) for i in np.argwhere(~finite)[0])
    count, first = int((~finite).sum()), numbers[row, column]
    return Observation(
        "wrong",
        say(
            "{count} of {size} numbers are not finite; the first is {first} at row {row}, column {column}.",
            count=count,
            size=numbers.size,
            first=first,
            row=row,
            column=column,
        ),
    )


def out_of_range(size: float) -> Observation:
    return Observation(
        "wrong", say("The largest absolute value is {size:.2g}, too large for a table of positions.", size=size)
    )
