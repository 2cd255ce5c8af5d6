"""Frequencies of heads of which only a fraction turns."""

from __future__ import annotations

from dataclasses import replace

from posenc.frequencies.base import Frequencies, rotary
from posenc.support.checked import checked


@checked
def partial(d_head: int, base: float, fraction: float, *, odd: bool = False) -> Frequencies:
    """rotary(int(d_head·fraction), base): the first channels are rotated, the others are not (partial_rotary_factor).

    Raises for an odd width. odd=True computes it as transformers does: 100 · 0.25 = 25 gives 13 pairs, which rotate
    26 channels, with 25 in the exponent. GPT-NeoX, Phi, StableLM, GLM. Raises ValueError.
    """
    _check_fraction(fraction)
    width = int(d_head * fraction)
    if width < 1 or (width % 2 and not odd):
        raise ValueError(
            f"fraction: {fraction!r} of d_head={d_head} is {width} channels, expected an even number from 2; "
            f"odd=True turns {width + width % 2} channels as transformers does"
        )
    f = rotary(width, base)
    return replace(f, values_from=f"partial(d_head={d_head}, base={base:g}, fraction={fraction:g}): {f.values_from}")


@checked
def proportional(d_head: int, base: float, fraction: float, factor: float = 1.0) -> Frequencies:
    """base^(-2i/d_head)/factor for the first ⌊fraction·d_head/2⌋ pairs, zero for all others, up to d_head/2 pairs.

    Unlike `partial`, the exponent keeps the whole width and, in layout "half", pair j is (j, j + d_head/2) of the whole
    head; pairs of frequency 0 are not rotated. p-RoPE, Barbero et al. 2024, section 6; Gemma 4. Raises ValueError.
    """
    _check_fraction(fraction)
    if d_head % 2:
        raise ValueError(f"d_head: expected an even number of channels, got {d_head}")
    turning = int(fraction * d_head // 2)
    values = tuple(base ** (-2 * i / d_head) / factor if i < turning else 0.0 for i in range(d_head // 2))
    formula = f"proportional(d_head={d_head}, base={base:g}, fraction={fraction:g}, factor={factor:g})"
    return Frequencies(values, width=d_head, values_from=f"{formula}: {turning} pairs turn")


def _check_fraction(fraction: float) -> None:
    if fraction > 1:
        raise ValueError(f"fraction: expected a number above 0 and up to 1, got {fraction!r}")
