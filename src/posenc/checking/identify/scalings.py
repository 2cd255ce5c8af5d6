"""From measured frequencies to a base and a scaling.

    a progression from 1                  the base; NTK where it is a known one times factor^(d/(d-2))
    a progression from 1/s                the base, linear scaling by s
    a progression that ends divided by s  YaRN blends along the pairs, Llama 3 along the turns; and their usual slips
    a factor of its own for each pair     LongRoPE, if its magnitude or the digits of the factors are LongRoPE's

Numbers that are fitted show nothing: a scaling is told where at least SPARE pairs are left to confirm it.

Legend: d channels that turn, n pairs. A share says how far a frequency is divided: 0 kept, 1 divided by the factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from posenc import frequencies
from posenc.checking.identify.conventions import ROTARY
from posenc.checking.result import Difference
from posenc.checking.say import say
from posenc.support.languages import Words, clauses

CLOSE = 2e-4  # relative, of frequencies that turn enough to be measured
HEARD = 1.3e-4  # relative error of a frequency that counts
ANGLE = 1.2e-7  # how exactly an angle is seen in float32, in radians
FREQUENCY = 5e-7  # how exactly usual code in float32 forms a frequency
LENGTHS = tuple(1024 * 2**n for n in range(11))
BASES = tuple(dict.fromkeys(convention.base for convention in ROTARY))
FACTORS = (*range(2, 129), 256, 512, 1000)  # of NTK
DISTINCT = 4  # factors of LongRoPE that differ
DIGITS = 4  # of the factors that models' files give
SPARE = 2  # pairs beyond the first and beyond what is fitted to them: a factor, and a base that is none of BASES
LARGEST = 512.0  # factor of a scaling
ROUGHLY = 0.02  # frequencies that are so near to a progression are one, badly measured
LONGROPE = tuple(math.sqrt(1 + n * math.log(2) / math.log(length)) for n in range(1, 7) for length in LENGTHS)


class Scaled(NamedTuple):
    """What frequencies are.

    facts       base, and `scaling` as text where there is one; empty where no formula is known
    difference  from every known scaling
    bug         the key in BUGS of a slip that makes the difference
    factor      of YaRN, which its magnitude follows from
    """

    facts: dict[str, Any]
    difference: Difference | None = None
    bug: str | None = None
    factor: float | None = None


class Heard(NamedTuple):
    """Frequencies of the pairs that were measured well: which pairs, their frequencies, and the relative errors [n]."""

    pairs: np.ndarray
    values: np.ndarray
    error: np.ndarray


def scaling(
    values: np.ndarray, rotary_dim: int, d_head: int, farthest: int, magnitude: float | str, rounding: float = 0.0
) -> Scaled:
    """The base and the scaling of frequencies.

    values      frequencies of the pairs, in the order of the channels
    rotary_dim  channels that turn;  d_head  channels of the head
    farthest    the position at which the frequencies were measured: slower pairs are measured less exactly
    magnitude   of cosines and sines, or a text where it is not one number
    rounding    of the rotated tokens, beyond float32
    """
    if len(values) == 1:
        return _one_pair(float(values[0]))
    error = np.maximum(FREQUENCY, (ANGLE + rounding) / np.maximum(values * farthest, 1e-300))
    well = np.flatnonzero(error < HEARD)
    if len(well) < 2 or values[0] <= 0:
        return Scaled({})
    heard = Heard(well, values[well], error[well])
    progression = _progression(heard, rotary_dim, d_head)
    of_longrope = bool(_usual_magnitudes(magnitude, 2e-5 + rounding))
    return progression or _blended(heard, rotary_dim) or _pair_by_pair(heard, rotary_dim, of_longrope) or Scaled({})


def _one_pair(value: float) -> Scaled:
    """Its frequency is 1 for every base."""
    if abs(value - 1) <= CLOSE:
        return Scaled({"frequencies": 1})
    factor = _round(1 / value, CLOSE)
    return Scaled({"frequencies": 1, "scaling": f"linear, factor {factor:g}"})


# Progressions ---------------------------------------------------------------------------------------------------------


def _progression(heard: Heard, d: int, d_head: int) -> Scaled | None:
    line = _line(heard, d)
    if line is None:
        return None
    first, base = line
    if first != 1:
        return Scaled({"base": base, "scaling": f"linear, factor {_round(1 / first, 4 * FREQUENCY):g}"})
    return _ntk(base, d, d_head) or Scaled({"base": base})


def _line(heard: Heard, d: int) -> tuple[float, float] | None:
    """The first frequency and the base of a progression, with the digits that were measured; None for no progression."""
    logs, weight = np.log(heard.values), 1 / heard.error
    slope, start = np.polyfit(heard.pairs, logs, 1, w=weight)
    if abs(start) <= CLOSE:  # the first is 1
        start = 0.0
        slope = ((logs * heard.pairs) @ weight**2) / (heard.pairs**2 @ weight**2)
    off = np.abs(logs - start - slope * heard.pairs)
    if (off > CLOSE).any() or slope >= 0:
        return None
    middle = (heard.pairs @ weight**2) / (weight @ weight) if start else 0.0
    spread = math.sqrt(float((heard.pairs - middle) ** 2 @ weight**2)) or 1.0
    exactly = 4 * max(1.0, float((off * weight).max())) / spread * d / 2
    return math.exp(start), _round(math.exp(-slope * d / 2), exactly)


def _ntk(base: float, d: int, d_head: int) -> Scaled | None:
    """A base that NTK-aware scaling makes of a known one, or that a slip in its exponent makes."""
    if d <= 4 or _is_round(base):
        return None
    right = d / (d - 2)
    for known in BASES:
        for factor in FACTORS:
            if math.isclose(base, known * factor**right, rel_tol=1e-5):
                return Scaled({"base": base, "scaling": f"ntk, factor {factor} from base {known:g}"})
    slips = {
        -right: say("NTK's base is divided by factor^(d/(d-2)), and not multiplied"),
        1 / right: say("NTK's exponent is (d-2)/d, and not d/(d-2)"),
        d / (d - 4): say("NTK's exponent is d/(d-4), and not d/(d-2): it counts pairs where it should count channels"),
        d_head / (d_head - 2): say("NTK's exponent d/(d-2) is that of the head, and not of the channels that turn"),
    }
    for exponent, words in slips.items():
        if any(math.isclose(base, BASES[0] * factor**exponent, rel_tol=1e-5) for factor in (2, 4, 8, 16, 32)):
            return Scaled({"base": base}, Difference("base", words))
    return None


# Blends of kept and divided frequencies --------------------------------------------------------------------------------


def _blended(heard: Heard, d: int) -> Scaled | None:
    """YaRN and Llama 3: one end keeps the frequencies of a base, the other is divided by one factor."""
    found = (_of_base(heard, d, base) for base in _bases(heard, d))
    return next((scaled for scaled in found if scaled), None)


def _bases(heard: Heard, d: int) -> Iterator[float]:
    """Bases to try: that of the fastest or of the slowest pairs, which share one factor, or a known one."""
    for some in (slice(4), slice(3), slice(2), slice(-4, None), slice(-3, None)):
        slope = np.polyfit(heard.pairs[some], np.log(heard.values[some]), 1)[0]
        base = math.exp(min(-slope * d / 2, 700.0))
        if 1 < base < 1e12:
            kept = np.abs(heard.values / base ** (-2 * heard.pairs / d) - 1) < CLOSE
            line = _line(Heard(*(part[kept] for part in heard)), d) if kept.sum() > 1 else None
            yield line[1] if line else _round(base, CLOSE)
    yield from BASES


def _of_base(heard: Heard, d: int, base: float) -> Scaled | None:
    ratio = heard.values / base ** (-2 * heard.pairs / d)
    kept_first, kept_last = (abs(ratio[end] - 1) <= CLOSE for end in (0, -1))
    spare = len(ratio) - 2 - (base not in BASES)
    if kept_first == kept_last or spare < SPARE:
        return None
    if usual := _usual(heard, d, base, ratio, kept_first):
        return usual
    factor = _round(float(1 / ratio[-1 if kept_first else 0]), CLOSE / 10)
    if not 1 / LARGEST < factor < LARGEST:
        return None
    share = (1 - ratio) / (1 - 1 / factor)
    slack = 4 * CLOSE / abs(1 - 1 / factor)
    inside = (share > slack) & (share < 1 - slack)
    outside = share[~inside]
    if share.min() < -slack or share.max() > 1 + slack or (np.diff(outside if kept_first else -outside) < -0.5).any():
        return None
    if not inside.any():
        first = int(heard.pairs[(share > 0.5) == kept_first][0])
        return _step(d, base, factor, first, kept_first)
    sure = spare - 2 >= SPARE and bool(inside.sum() > 2)  # a line has two numbers more
    return _along(heard, d, base, factor, share, inside, kept_first, sure)


def _usual(heard: Heard, d: int, base: float, ratio: np.ndarray, kept_first: bool) -> Scaled | None:
    """A scaling with the usual numbers from a usual length, or the reverse of one. The divided end tells its factor."""
    end = -1 if kept_first else 0
    for name, length, shares in _usual_shares(d, base):
        share = shares[heard.pairs]
        between = (share > 0) & (share < 1)
        flipped = np.where(between, 1 - share, share)
        forwards, backwards = ((share, None), (flipped, "blend reversed")), ((1 - share, "scaling reversed"),)
        for tried, bug in forwards if kept_first else backwards:
            left = 1 - (1 - ratio[end]) / tried[end] if tried[end] > 0 else 0.0
            if left > 0 and np.allclose(ratio, 1 - tried * (1 - left), rtol=CLOSE, atol=0):
                factor = _round(float(1 / left), CLOSE / 10)
                if tried[end] == 1 or (2 * factor).is_integer():  # a ramp without an end says little of its factor
                    return _named(base, name, factor, f"original length {length}", bug)
    return None


@lru_cache(maxsize=64)
def _usual_shares(d: int, base: float) -> list[tuple[str, int, np.ndarray]]:
    plain = frequencies.rotary(d, base=base)
    whole = np.asarray(plain.values)
    shares = []
    for length in LENGTHS:
        for name, halved in (
            ("llama3", frequencies.llama3(plain, 2.0, low_freq_factor=1.0, high_freq_factor=4.0, trained_length=length)),
            ("yarn", frequencies.yarn(plain, 2.0, length)),
            ("yarn, no truncation", frequencies.yarn(plain, 2.0, length, truncate=False)),
        ):
            shares.append((name, length, 2 * (1 - np.asarray(halved.values) / whole)))
    return shares


def _named(base: float, name: str, factor: float, more: str, bug: str | None, differs: Words | None = None) -> Scaled:
    """The scaling with its factor. One below 1 multiplies; `differs` says how it is no usual one."""
    bug = bug or ("factors multiplied" if factor < 1 else None)
    facts = {"base": base, "scaling": f"{name}, factor {factor:g}, {more}" + (f" ({bug})" if bug else "")}
    if bug == "factors multiplied":
        differs = say("the frequencies of slow pairs are multiplied by {factor:g}", factor=1 / factor)
    elif bug == "scaling reversed":
        differs = say("the first pair is divided by {factor:g} and the last one is kept", factor=factor)
    elif bug:
        differs = say("the blend of its scaling by {factor:g} is turned round", factor=factor)
    difference = Difference("scaling", differs) if differs else None
    return Scaled(facts, difference, bug, factor if name.startswith("yarn") else None)


def _step(d: int, base: float, factor: float, first: int, kept_first: bool) -> Scaled:
    """No pair is between: Llama 4 Scout's, whose low and high factor are both 1, or a blend that is missing."""
    before, after = (8192 * base ** (-2 * pair / d) / (2 * math.pi) for pair in (first - 1, first))
    if kept_first and (base, factor) == (500_000, 16) and before >= 1 > after:
        return _named(base, "llama3", factor, "original length 8192, low and high factor 1", None)
    words = say("pairs from {first} on are divided by {factor:g}, and no pair is between", first=first, factor=factor)
    return _named(base, "step", factor, f"from pair {first}", None if kept_first else "scaling reversed", words)


def _along(
    heard: Heard, d: int, base: float, factor: float, share: np.ndarray, inside: np.ndarray, kept_first: bool, sure: bool
) -> Scaled | None:
    """A share that is a straight line over the turns (Llama 3), over the pairs (YaRN) or over the wavelengths.

    Only a usual line is told without being `sure` that it is one.
    """
    plain = base ** (-2 * heard.pairs / d)
    slack = 4 * CLOSE / abs(1 - 1 / factor)
    if inside.sum() < 2:
        return None
    lines = {}
    for name, x in (("turns", plain), ("pairs", heard.pairs.astype(float)), ("wavelengths", 1 / plain)):
        slope, start = np.polyfit(x[inside], share[inside], 1)
        if (np.abs(slope * x + start - share)[inside] <= slack).all():
            lines[name] = (-start / slope, (1 - start) / slope)  # where the share is 0, and where it is 1
    rises = share[inside][-1] > share[inside][0]
    bug = "scaling reversed" if not kept_first else None if rises else "blend reversed"
    if "turns" in lines:
        slow, fast = sorted(lines["turns"])
        if scaled := _llama3(base, factor, slow, fast, bug, sure):
            return scaled
    if "pairs" in lines:
        first, last = sorted(lines["pairs"])
        return _yarn(base, d, factor, first, last, bug, sure)
    if "wavelengths" in lines and sure:
        words = say("frequencies are blended along the wavelength and not along the number of turns")
        return _named(base, "llama3", factor, "blended along the wavelength", bug, words)
    return None


def _llama3(base: float, factor: float, slow: float, fast: float, bug: str | None, sure: bool) -> Scaled | None:
    """The blend runs between the frequencies `slow` and `fast`, of low_freq_factor and high_freq_factor turns."""
    if slow <= 0:
        return None
    length, ratio = 2 * math.pi / slow, fast / slow
    if abs(ratio - 4) < 4e-3:
        length = _round(length, CLOSE)
        slips = (n for n in LENGTHS if any(abs(length / n / by - 1) < 2e-3 for by in (2 * math.pi, 0.5 / math.pi)))
        words = next((say("its original length is {usual} times 2π, or divided by it", usual=n) for n in slips), None)
        return _named(base, "llama3", factor, f"original length {length:g}", bug, words)
    if not sure:
        return None
    turns = f"high_freq_factor {ratio:.4g} times low_freq_factor"
    words = say("high_freq_factor is {ratio:.4g} times low_freq_factor, and in Llama 3 four times", ratio=ratio)
    return _named(base, "llama3", factor, turns, bug, words)


def _yarn(base: float, d: int, factor: float, low: float, high: float, bug: str | None, sure: bool) -> Scaled | None:
    """The ramp runs from pair `low` to pair `high`."""

    def length(pair: float, beta: float) -> float:
        return float(2 * math.pi * beta * base ** (2 * pair / d))

    exact = length(low, 32), length(high, 1)
    if abs(exact[0] / exact[1] - 1) < 2e-3:
        return _named(base, "yarn, no truncation", factor, f"original length {_round(exact[1], 1e-3):g}", bug)
    low, high = round(low, 2) + 0.0, round(high, 2)
    if not _is_round(factor) and sure:
        words = say(
            "YaRN's ramp begins at pair {low:g}, and no pair is divided by more than {factor:.4g}", low=low, factor=factor
        )
        return _named(base, "ramp", factor, f"from pair {low:g}", bug, words)
    least = max(exact[0] if low > 0 else 0.0, length(high - 1, 1))
    most = min(length(low + 1, 32), exact[1])
    if low == int(low) and high == int(high) and least < most:
        return _named(base, "yarn", factor, f"original length {math.ceil(least)} to {math.floor(most)}", bug)
    if not sure:
        return None
    words = say(
        "YaRN's ramp runs from pair {low:g} to pair {high:g}, which beta_fast 32 and beta_slow 1 give for no length",
        low=low,
        high=high,
    )
    return _named(base, "yarn", factor, f"ramp from pair {low:g} to pair {high:g}", bug, words)


# A factor for each pair ------------------------------------------------------------------------------------------------


def _pair_by_pair(heard: Heard, d: int, of_longrope: bool) -> Scaled | None:
    """LongRoPE: factors that rise from about 1, by which a known base's frequencies are divided.

    Any frequencies are some base's divided by such factors: the magnitude is LongRoPE's, or the factors have few digits.
    """
    logs = np.log(heard.values)
    if np.abs(logs - np.polyval(np.polyfit(heard.pairs, logs, 1), heard.pairs)).max() < ROUGHLY:
        return None
    for base in BASES:
        ratio = heard.values / base ** (-2 * heard.pairs / d)
        for factors, bug in ((1 / ratio, None), (ratio, "factors multiplied")):
            steps = np.diff(factors)
            rising = (steps > -CLOSE * factors[1:]).all() and (steps > CLOSE).sum() >= DISTINCT
            told = of_longrope or all(_has_few_digits(*pair) for pair in zip(factors, heard.error, strict=True))
            if rising and 0.98 < factors[0] < 1.5 and factors[-1] < LARGEST and told:
                text = f"longrope, factors {factors[0]:.4g} to {factors[-1]:.4g}" + (f" ({bug})" if bug else "")
                return Scaled({"base": base, "scaling": text}, Difference("scaling", _of_each(factors)), bug)
    return None


def _has_few_digits(factor: float, error: float) -> bool:
    return abs(float(f"{factor:.{DIGITS - 1}e}") / factor - 1) <= 2 * error + 1e-7


def _of_each(factors: np.ndarray) -> Words:
    least, most = float(factors[0]), float(factors[-1])
    return say("each pair has a factor of its own, {least:.4g} to {most:.4g}", least=least, most=most)


# What scalings do to lengths -------------------------------------------------------------------------------------------


def differences(scaled: Scaled, magnitude: float | str, rounding: float = 0.0) -> tuple[Difference, ...]:
    """From known scalings, with what the magnitude of cosines and sines says; `rounding` of the tokens, beyond float32."""
    own = (scaled.difference,) if scaled.difference else ()
    exactly, words = 2e-5 + rounding, None
    if not isinstance(magnitude, float):
        words = say("lengths change with the position")
    elif scaled.factor is not None:
        words = _of_yarn(scaled.factor, magnitude, exactly)
    elif str(scaled.facts.get("scaling")).startswith("longrope"):
        usual = _usual_magnitudes(magnitude, exactly)
        own = own if scaled.bug or not usual else ()  # its magnitude tells LongRoPE from other factors
        if not usual:
            words = say("the magnitude {size:.6g} is not √(1 + ln factor/ln length) of usual numbers", size=magnitude)
        elif min(abs(magnitude - size) for size in usual) >= exactly:
            words = _twice(say("the magnitude is {size:.6g} instead of {usual:.6g}", size=magnitude, usual=usual[0]))
    elif abs(magnitude - 1) > rounding:
        words = say("lengths change: the magnitude is {size}", size=magnitude)
    return (*own, Difference("magnitude", words)) if words else own


def _usual_magnitudes(magnitude: float | str, exactly: float) -> list[float]:
    """Those of LongRoPE that it is, or is the square of."""
    if not isinstance(magnitude, float):
        return []
    return [size for size in LONGROPE if min(abs(magnitude - size), abs(magnitude - size**2)) < exactly]


def _of_yarn(factor: float, magnitude: float, exactly: float) -> Words | None:
    usual = frequencies.mscale_of(max(factor, 1 / factor))
    if abs(magnitude - usual) < exactly:
        return None
    told = say("the magnitude is {size:.6g} instead of YaRN's {usual:.6g}", size=magnitude, usual=usual)
    if magnitude == 1:
        return clauses(told, say("right only where the softmax scale has its square instead, as in DeepSeek's models"))
    return _twice(told) if abs(magnitude - usual**2) < exactly else told


def _twice(told: Words) -> Words:
    return clauses(told, say("its square: it is applied twice"))


# Digits ----------------------------------------------------------------------------------------------------------------


def _round(value: float, exactly: float) -> float:
    """With as few digits as keep it within this relative error."""
    for digits in range(1, 10):
        plain = float(f"{value:.{digits - 1}e}")
        if abs(plain - value) <= exactly * value:
            return plain
    return value


def _is_round(base: float) -> bool:
    return float(f"{base:.1e}") == base
