"""Properties of rotary frequencies within a length: wavelengths, incomplete turns, angles, and errors of low precision.

Legend: ω_i frequency of pair i in radians per position, L positions; pair i completes a turn in 2π/ω_i positions.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from posenc.frequencies import Frequencies

FASTEST = 1e12  # radians per position: beyond, angles in fp32 overflow within long texts


@dataclass(frozen=True)
class Meaning:
    """Figures of one set of frequencies within `length` positions.

    shortest, longest   wavelengths in positions; pairs that never rotate are counted in `still`
    unfinished          pairs without a full turn within `length`: beyond it they have angles not seen in training
    largest_angle       radians of the fastest pair at the last position
    float32_error       largest |cos error| at the last position if position times frequency is computed in fp32
    bfloat16_error      the same for an exact cos rounded to bf16
    bfloat16_positions  how many of the positions stay distinct in bf16
    """

    length: int
    pairs: int
    still: int
    shortest: float
    longest: float
    unfinished: int
    first_unfinished: int | None
    largest_angle: float
    float32_error: float
    bfloat16_error: float
    bfloat16_positions: int


def meaning(frequencies: Frequencies, length: int) -> Meaning:
    """Raises ValueError for fewer than one position, and for frequencies that only a slip in the file can make."""
    if length < 1:
        raise ValueError(f"length: expected at least one position, got {length}")
    fastest = max(map(abs, frequencies), default=0.0)
    if fastest > FASTEST:
        raise ValueError(
            f"frequencies: {fastest:g} radians per position; expected at most {FASTEST:g}: check base and factors"
        )
    moving = [abs(value) for value in frequencies if value]
    waves = [2 * math.pi / value for value in moving]
    unfinished = [pair for pair, value in enumerate(frequencies) if value and 2 * math.pi / abs(value) > length]
    last = length - 1
    exact = [math.cos(value * last) for value in moving]
    return Meaning(
        length=length,
        pairs=len(frequencies),
        still=len(frequencies) - len(moving),
        shortest=min(waves, default=math.inf),
        longest=max(waves, default=math.inf),
        unfinished=len(unfinished),
        first_unfinished=unfinished[0] if unfinished else None,
        largest_angle=max(moving, default=0.0) * last,
        float32_error=max(
            (abs(math.cos(_float32(_float32(last) * _float32(v))) - e) for v, e in zip(moving, exact, strict=True)),
            default=0.0,
        ),
        bfloat16_error=max((abs(bfloat16(e) - e) for e in exact), default=0.0),
        bfloat16_positions=distinct_in_bfloat16(length),
    )


def _float32(value: float) -> float:
    """The nearest number of fp32. The product of two is exact in fp64, so that rounding it gives theirs."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def bfloat16(value: float) -> float:
    """The nearest number with 8 significant bits."""
    if not value:
        return 0.0
    unit = 2.0 ** (math.floor(math.log2(abs(value))) - 7)
    return round(value / unit) * unit


def distinct_in_bfloat16(length: int) -> int:
    """How many of 0 … length-1 are different numbers in bf16: all to 256, then every 2nd, from 512 every 4th, …"""
    last, distinct = length - 1, min(length, 257)
    low, step = 256, 2
    while low < last:
        high = round(min(2 * low, last) / step) * step  # halves go to the even neighbour, as bf16 rounds
        distinct += (high - low) // step
        low, step = 2 * low, 2 * step
    return distinct


def leaving(frequencies: Frequencies, trained: int, length: int, window: int | None = None) -> tuple[int, ...]:
    """Pairs with, at `length`, a relative angle not seen in `trained` positions: those without a full turn.

    A window shorter than the trained length adds nothing new.
    """
    if length <= trained or (window is not None and window <= trained):
        return ()
    return tuple(pair for pair, value in enumerate(frequencies) if value and 2 * math.pi / abs(value) > trained)
