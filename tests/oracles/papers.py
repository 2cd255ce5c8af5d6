"""Formulas of papers for one pair of positions, in plain Python: nothing here is imported from src."""

import math
from fractions import Fraction


def alibi(n: int) -> list[float]:
    """Slopes: for n = 2^k the ratio is 2^(-8/n); otherwise all of the power below, then every other one of twice that."""
    below = 1
    while 2 * below <= n:
        below *= 2

    def geometric(count: int) -> list[float]:
        ratio = 2.0 ** (-(2.0 ** (3 - math.log2(count))))
        return [ratio**h for h in range(1, count + 1)]

    return geometric(below) + geometric(2 * below)[0 : 2 * (n - below) : 2]


def kerple(kernel: str, r1: float, r2: float, distance: float) -> float:
    """Chi et al. 2022: the logarithmic and the power variant."""
    return -r1 * math.log(1 + r2 * abs(distance)) if kernel == "log" else -r1 * abs(distance) ** r2


def sandwich(h: int, i: float, j: float, heads: int, *, width: int, base: float, first: int = 0) -> float:
    """Chi et al. 2022, section 5: the product of two sinusoidal vectors over 8h/n. first: waves from 1 on, as in NeMo."""
    if first:
        total = sum(math.cos((i - j) / base ** (2 * c / width)) for c in range(1, width // 2 + 1))
    else:
        angles = [(i / base ** (2 * c / width), j / base ** (2 * c / width)) for c in range(width // 2)]
        total = sum(math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) for a, b in angles)
    return total / (8 * (h + 1) / heads)


def fire(encoding, h: int, i: float, j: float, threshold=None, constant=0.7, normaliser=None) -> float:
    """Li et al. 2024, and the listing of its appendix."""
    inner, outer, offset = (getattr(encoding, name).tolist() for name in ("inner", "outer", "offset"))
    threshold = abs(encoding.multiplier.item() * encoding.first_length) if threshold is None else threshold
    seen_from = max(i, threshold) if normaliser is None else normaliser(i, j, threshold)
    ratio = math.log(constant * abs(i - j) + 1) / (math.log(constant * seen_from + 1) + 1e-6)
    hidden = [max(0.0, one * ratio + two) for one, two in zip(*inner, strict=True)]
    return sum(a * b for a, b in zip(outer[h], hidden, strict=True)) + offset[h]


def dynamic_position_bias(encoding, h: int, delta: float, *, logarithm: bool) -> float:
    """x-transformers' DynamicPositionBias, without its norms: unit by unit."""
    silu = lambda x: x / (1 + math.exp(-x))  # noqa: E731
    names = ("inner", "middle", "middle_offset", "outer", "offset")
    inner, middle, middle_offset, outer, offset = (getattr(encoding, name).tolist() for name in names)
    x = math.copysign(math.log(abs(delta) + 1), delta) if logarithm else delta
    units = [silu(w * x + c) for w, c in zip(*inner, strict=True)]
    for weight, add in zip(middle, middle_offset, strict=True):
        units = [silu(sum(w * u for w, u in zip(row, units, strict=True)) + c) for row, c in zip(weight, add, strict=True)]
    return sum(w * u for w, u in zip(outer[h], units, strict=True)) + offset[h]


def t5_bucket(delta: int, buckets: int, furthest: int, bidirectional: bool) -> int:
    """delta = query - key; keys after the query use the upper half, or, causally, bucket 0. Rationals only.

    e + ⌊(N-e)·ln(n/e)/ln(furthest/e)⌋ is e + the largest m with (furthest/e)^m <= (n/e)^(N-e).
    """
    if bidirectional:
        return t5_bucket(abs(delta), buckets // 2, furthest, False) + (buckets // 2 if delta < 0 else 0)
    n, exact = max(delta, 0), buckets // 2
    if n < exact:
        return n
    reached, m = Fraction(n, exact) ** (buckets - exact), 0
    while exact + m + 1 < buckets and Fraction(furthest, exact) ** (m + 1) <= reached:
        m += 1
    return exact + m
