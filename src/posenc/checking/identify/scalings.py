"""From measured frequencies to a base and a scaling.

geometric progression from 1         base
geometric progression from 1/s       base, linear scaling by s
a progression, a ramp, one over s    Llama 3 or YaRN, by trying the usual original lengths
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from posenc import frequencies
from posenc.frequencies import Frequencies

CLOSE = 2e-4  # relative, of frequencies that turn enough to be measured
LENGTHS = (1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144)


def scaling(values: np.ndarray, rotary_dim: int, farthest: int) -> dict[str, Any]:
    """base, and `scaling` as text where there is one; empty where no formula is known.

    values      frequencies of the pairs, in the order of the channels
    rotary_dim  channels that turn
    farthest    the position at which the frequencies were measured: slower pairs count less
    """
    heard = values * farthest > 1e-3
    if not heard.any() or values[0] <= 0:
        return {}
    index = np.arange(len(values))
    if len(values) == 1:
        return {"frequencies": 1}
    for first in (1.0, float(values[0])):
        slope = _slope(index[heard], values[heard] / first)
        base = _round(math.exp(slope * rotary_dim / 2))
        if base > 1 and _near(values, first * base ** (-2 * index / rotary_dim), heard):
            factor = _round(1 / first)
            return {"base": base} | ({"scaling": f"linear, factor {factor:g}"} if factor != 1 else {})
    return _ramped(values, rotary_dim, heard)


def _ramped(values: np.ndarray, rotary_dim: int, heard: np.ndarray) -> dict[str, Any]:
    """Llama 3 and YaRN: the fast pairs keep the base, the slow ones are divided by one factor."""
    index = np.arange(len(values))
    slope = _slope(index[:3], values[:3])
    base = _round(math.exp(slope * rotary_dim / 2))
    if not 1 < base < 1e12:
        return {}
    plain = frequencies.rotary(rotary_dim, base=base)
    ratios = np.asarray(plain.values) / np.maximum(values, 1e-300)
    factor = _round(float(ratios[heard][-1]))
    if factor <= 1:
        return {}
    scalings: dict[str, Callable[[int], Frequencies]] = {
        "llama3": lambda n: frequencies.llama3(plain, factor, low_freq_factor=1.0, high_freq_factor=4.0, trained_length=n),
        "yarn": lambda n: frequencies.yarn(plain, factor, n),
        "yarn, no truncation": lambda n: frequencies.yarn(plain, factor, n, truncate=False),
    }
    for name, make in scalings.items():
        for length in LENGTHS:
            if _near(values, np.asarray(make(length).values), heard):
                return {"base": base, "scaling": f"{name}, factor {factor:g}, original length {length}"}
    return {"base": base, "scaling": f"unknown; the slowest pair is divided by {factor:g}"}


def _slope(index: np.ndarray, values: np.ndarray) -> float:
    """-d ln(value)/d index through the first pair, by least squares."""
    fitted = np.polyfit(index, np.log(values), 1) if len(index) > 1 else (0.0, 0.0)
    return -float(fitted[0])


def _near(values: np.ndarray, formula: np.ndarray, heard: np.ndarray) -> bool:
    return bool((np.abs(values - formula)[heard] <= CLOSE * formula[heard]).all())


def _round(value: float) -> float:
    """With as few digits as keep it within half of CLOSE."""
    for digits in range(1, 7):
        plain = float(f"{value:.{digits - 1}e}")
        if abs(plain - value) <= 5e-4 * value:
            return plain
    return value
