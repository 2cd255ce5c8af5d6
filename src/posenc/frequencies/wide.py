"""LTX-Video's frequencies over all heads at once, without torch: what reads a configuration needs numbers only."""

from __future__ import annotations

import math

from posenc.frequencies.base import Arithmetic, Frequencies
from posenc.support.checked import checked


@checked
def spectrum(width: int, base: float = 10000.0, *, axes: int = 3, arithmetic: Arithmetic = "float64") -> Frequencies:
    """LTX-Video's frequencies for queries of `width` channels in all heads, `axes` coordinates in turn; in fp64 for either
    `arithmetic`.

    Raises ValueError for a width with fewer than two pairs for each axis.
    """
    n = width // (2 * axes)
    if n < 2:
        raise ValueError(f"width: expected at least {4 * axes} channels for {axes} axes, got {width}")
    still = width // 2 - n * axes
    values = [math.pi / 2 * base ** (k / (n - 1)) for k in range(n) for _ in range(axes)]
    turns = [axis for _ in range(n) for axis in range(axes)]
    return Frequencies(
        (0.0,) * still + tuple(values),
        axes=(0,) * still + tuple(turns) if axes > 1 else (),
        values_from=f"spectrum(width={width}, base={base:g})",
    )
