"""How fast each pair of channels turns, in radians per position: pure functions in fp64 Python numbers."""

from __future__ import annotations

import math


def rotary(d: int, base: float = 10000.0) -> tuple[float, ...]:
    """base^(-2i/d) for i = 0 … ⌈d/2⌉-1: one frequency per pair of channels, from 1 down to nearly 1/base.

    Vaswani et al. 2017, section 3.5; Su et al. 2021, section 3.2.2. Raises ValueError for d < 1 or base <= 0.
    """
    _check(d, base)
    return tuple(base ** (-2 * i / d) for i in range((d + 1) // 2))


def to_the_end(d: int, base: float = 10000.0) -> tuple[float, ...]:
    """base^(-i/(n-1)) for i = 0 … n-1, n = ⌈d/2⌉: the spacing that reaches 1/base exactly (tensor2tensor, Whisper)."""
    _check(d, base)
    n = (d + 1) // 2
    return tuple(base ** (-i / max(n - 1, 1)) for i in range(n))


def wavelengths(d_model: int, base: float = 10000.0) -> tuple[float, ...]:
    """2π·base^(2i/d): after how many positions each pair of channels has turned once. d = 512: 6.28 to 60 611."""
    return tuple(2 * math.pi / frequency for frequency in rotary(d_model, base))


def _check(d: int, base: float) -> None:
    if isinstance(d, bool) or not isinstance(d, int) or d < 1:
        raise ValueError(f"d: expected a whole number of channels from 1, got {d!r}")
    if not (isinstance(base, (int, float)) and math.isfinite(base) and base > 0):
        raise ValueError(f"base: expected a positive number such as 10000.0, got {base!r}")
