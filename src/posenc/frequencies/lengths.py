"""Frequencies that depend on the length of a request. Frozen; a request calls `at_length(n)` once and keeps the result.

Queries and keys must be rotated with the frequencies of the same length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from posenc.frequencies.base import ByLength, Frequencies
from posenc.frequencies.scalings import check_exact, check_plain, rebased
from posenc.support import checks
from posenc.support.checked import check_fields, checked


@dataclass(frozen=True)
class DynamicNTK:
    """base·(factor·s/L - (factor-1))^(d/(d-2)) for s = max(n, L): longer requests have a larger base.

    plain            rotary frequencies, used for requests up to the trained length
    factor           how fast the base grows beyond it
    trained_length   L, max_position_embeddings in transformers
    """

    plain: Frequencies
    factor: float
    trained_length: int

    def __post_init__(self) -> None:
        check_fields(self)

    @checked
    def at_length(self, n: int) -> Frequencies:
        """The frequencies of a request of n tokens."""
        if n <= self.trained_length:
            return self.plain
        ratio = self.factor * n / self.trained_length - (self.factor - 1)
        return rebased(self.plain, ratio, f"dynamic(factor={self.factor:g}, trained_length={self.trained_length}) at n={n}")


@dataclass(frozen=True)
class LongRoPE:
    """`short` for requests up to trained_length tokens, `long` for longer ones; one set for all positions of a request."""

    short: Frequencies
    long: Frequencies
    trained_length: int

    def __post_init__(self) -> None:
        check_fields(self)

    @checked
    def at_length(self, n: int) -> Frequencies:
        """The frequencies of a request of n tokens."""
        return self.long if n > self.trained_length else self.short


@checked
def dynamic(f: Frequencies, factor: float, trained_length: int) -> DynamicNTK:
    """NTK scaling that depends on the length of the request: "dynamic NTK", as transformers computes it; YaRN, section 3.3.

    Raises ValueError if f is not plain rotary frequencies, for width 2, and for a factor below 1.
    """
    if factor < 1:
        raise ValueError(f"factor: expected at least 1, or the base would shrink with length, got {factor!r}")
    _, width = check_plain(f)
    if width <= 2:
        raise ValueError(f"f: width {width} has no slower pair to stretch, d/(d-2) needs d > 2")
    return DynamicNTK(f, factor, trained_length)


@checked
def longrope(
    f: Frequencies,
    short_factor: Sequence[float],
    long_factor: Sequence[float],
    trained_length: int,
    *,
    factor: float | None = None,
    attention_factor: float | None = None,
) -> LongRoPE:
    """ω_i/short_factor_i up to trained_length tokens and ω_i/long_factor_i beyond, with a magnitude on cos and sin.

    cos_sin_scale is attention_factor if given, else √(1 + ln factor / ln trained_length), and 1 for factors up to 1;
    factor is the longest length over trained_length. Ding et al. 2024, LongRoPE; Phi-3 and Phi-4.
    Raises ValueError unless there is one factor per pair, and if neither factor nor attention_factor is given.
    """
    check_exact(f)
    scale, scale_from = _longrope_scale(trained_length, factor, attention_factor)
    both = []
    for name, factors in (("short_factor", short_factor), ("long_factor", long_factor)):
        if len(factors) != len(f):
            raise ValueError(f"{name}: expected one factor for each of {len(f)} pairs, got {len(factors)}")
        for number in factors:
            checks.positive(**{name: number})
        both.append(
            replace(
                f,
                values=tuple(w / by for w, by in zip(f, factors, strict=True)),
                base=None,
                values_from=f"{f.values_from}, longrope({name})",
                cos_sin_scale=f.cos_sin_scale * scale,
                cos_sin_scale_from=scale_from,
            )
        )
    return LongRoPE(both[0], both[1], trained_length)


def _longrope_scale(trained_length: int, factor: float | None, attention_factor: float | None) -> tuple[float, str]:
    if attention_factor is not None:
        return attention_factor, f"attention_factor={attention_factor:g}, as given"
    if factor is None:
        raise ValueError("factor: expected the longest length over trained_length, or else attention_factor; got neither")
    if trained_length == 1:
        raise ValueError("trained_length: the magnitude divides by ln trained_length, expected at least 2, got 1")
    scale = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(trained_length))
    return scale, f"longrope, √(1 + ln(factor={factor:g}) / ln(trained_length={trained_length}))"


def tokens_served(family: ByLength, length: int, chosen: Frequencies) -> int | None:
    """The tokens of the longest request with the chosen frequencies; None: any, or not known."""
    original = getattr(family, "trained_length", None)
    if original is None:
        return None
    longest = max(original, length)
    longer = family.at_length(longest + 1)
    return None if (longer.values, longer.cos_sin_scale) == (chosen.values, chosen.cos_sin_scale) else longest
