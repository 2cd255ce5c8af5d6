"""Scalings of rotary frequencies for longer contexts: functions from frequencies to frequencies, in fp64 Python numbers.

There are two separate magnitudes: `yarn` sets that of cos and sin, `softmax_mscale` that of the softmax scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from posenc.frequencies.base import Frequencies, rotary
from posenc.support import checks
from posenc.support.checked import checked


@checked
def linear(f: Frequencies, factor: float) -> Frequencies:
    """ω/factor: maps positions into the trained range.

    Position interpolation, Chen et al. 2023, section 2.3. Raises ValueError for a factor that is not positive.
    """
    check_exact(f)
    return _scaled(f, [w / factor for w in f], f"linear(factor={factor:g})")


@checked
def ntk(f: Frequencies, factor: float) -> Frequencies:
    """Rotary frequencies of base·factor^(d/(d-2)): divides the slowest frequency by `factor` and keeps the fastest.

    "NTK-aware" scaling, published by its author as a post; Peng et al. 2023, YaRN, section 3.1. Raises ValueError if f is
    not plain rotary frequencies, and for d = 2.
    """
    return rebased(f, factor, f"ntk(factor={factor:g})")


@checked
def ntk_alpha(f: Frequencies, alpha: float) -> Frequencies:
    """The same as `ntk`, with the name in HunYuan's configurations: base·alpha^(d/(d-2)) for all lengths."""
    return rebased(f, alpha, f"ntk_alpha(alpha={alpha:g})")


@checked
def rebased(f: Frequencies, ratio: float, formula: str, *, power: float = 1.0) -> Frequencies:
    """Rotary frequencies of base·ratio^(power·d/(d-2)), with the magnitudes of f."""
    base, d = check_plain(f)
    if d <= 2:
        raise ValueError(f"f: width {d} has no slower pair to stretch, d/(d-2) needs d > 2")
    try:
        largest = base * ratio ** (power * d / (d - 2))
    except OverflowError:
        largest = math.inf
    if math.isinf(largest):
        raise ValueError(
            f"{formula}: the base grows beyond float64, {base:g}·{ratio:g}^({power * d:g}/{d - 2}); take a smaller number"
        )
    new = rotary(d, largest)
    return replace(f, values=new.values, base=new.base, values_from=f"{f.values_from}, {formula}: base {new.base:.8g}")


@checked
def yarn(
    f: Frequencies,
    factor: float,
    trained_length: int,
    *,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
    attention_factor: float | None = None,
    mscale: float | None = None,
    mscale_all_dim: float | None = None,
) -> Frequencies:
    """Keeps fast pairs, divides slow pairs by `factor`, interpolates between; sets a magnitude of cos and sin.

        ω_i' = ω_i·(1-γ_i) + ω_i/factor·γ_i,   γ_i = clip((i - low)/(high - low), 0, 1),   low, high from `yarn_range`

    cos_sin_scale is attention_factor if given; else mscale_of(factor, mscale)/mscale_of(factor, mscale_all_dim) if both
    are given; else mscale_of(factor) = 1 + 0.1·ln factor. The softmax scale does not change; DeepSeek's models change
    it too, see `softmax_mscale`. Peng et al. 2023, YaRN, definition 3 and equation 22, with the ramp of the authors' code.
    The paper's, equation 18, is linear in turns: llama3(f, factor, 1.0, 32.0, trained_length) has its frequencies.
    Raises ValueError if f is not plain rotary frequencies of an even width and a base above 1, and if only one of mscale
    and mscale_all_dim is given.
    """
    low, high = yarn_range(f, trained_length, beta_fast, beta_slow, truncate)
    values = []
    for i, w in enumerate(f):
        slow = min(max((i - low) / (high - low), 0.0), 1.0)
        values.append(w * (1 - slow) + w / factor * slow)
    formula = (
        f"yarn(factor={factor:g}, trained_length={trained_length}, beta_fast={beta_fast:g}, "
        f"beta_slow={beta_slow:g}, truncate={truncate})"
    )
    scale, scale_from = _attention_factor(factor, attention_factor, mscale, mscale_all_dim)
    return _scaled(f, values, formula, cos_sin_scale=f.cos_sin_scale * scale, cos_sin_scale_from=scale_from)


@checked
def yarn_range(
    f: Frequencies, trained_length: int, beta_fast: float = 32.0, beta_slow: float = 1.0, truncate: bool = True
) -> tuple[float, float]:
    """The pairs at which YaRN's ramp begins and ends. They make beta_fast and beta_slow turns in trained_length.

        pair(β) = d·ln(trained_length/(2πβ)) / (2 ln base),   low >= 0, high <= d-1

    truncate   rounds low down and high up to whole pairs. high is at most d-1, not the last pair d/2-1, as in the
               authors' code. If both ends are equal, 0.001 is added to high.
    Raises ValueError.
    """
    base, d = _of_ramps(f)
    if beta_fast < beta_slow:
        raise ValueError(f"beta_fast: expected at least beta_slow={beta_slow:g}, got {beta_fast:g}; they may be swapped")
    low, high = (_pair_of(beta, trained_length, base, d) for beta in (beta_fast, beta_slow))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    return low, high + 0.001 if low == high else high


@checked
def mscale_of(factor: float, mscale: float = 1.0) -> float:
    """0.1·mscale·ln(factor) + 1, and 1 for factors up to 1: the magnitude that YaRN uses for longer contexts.

    Peng et al. 2023, YaRN, equation 22; the weight `mscale` is DeepSeek-V2's.
    """
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0


@checked
def softmax_mscale(f: Frequencies, factor: float, mscale_all_dim: float) -> Frequencies:
    """The same frequencies with a softmax scale of mscale_of(factor, mscale_all_dim)² times the old one.

    DeepSeek-V2, V3 and models with the same attention use it together with `yarn`, whose magnitude of cos and sin is then
    mscale/mscale_all_dim, usually 1. It also scales the channels that are not rotated. Raises ValueError.
    """
    scale = mscale_of(factor, mscale_all_dim) * mscale_of(factor, mscale_all_dim)
    if math.isinf(f.softmax_scale * scale):
        raise ValueError(f"mscale_all_dim: the softmax scale grows beyond float64, got {mscale_all_dim:g}")
    return replace(
        f,
        softmax_scale=f.softmax_scale * scale,
        softmax_scale_from=f"softmax_mscale(factor={factor:g}, mscale_all_dim={mscale_all_dim:g}), squared",
    )


@checked
def llama3(
    f: Frequencies, factor: float, low_freq_factor: float, high_freq_factor: float, trained_length: int
) -> Frequencies:
    """Scales each frequency by its number of turns in the trained length, t = trained_length·ω/2π.

        t < low_freq_factor    ω/factor
        t > high_freq_factor   ω
        between                ((1-s)/factor + s)·ω,   s = (t - low_freq_factor)/(high_freq_factor - low_freq_factor)

    Llama 3.1, in the code that Meta released. Raises ValueError unless low_freq_factor <= high_freq_factor.
    """
    check_exact(f)
    if low_freq_factor > high_freq_factor:
        raise ValueError(
            f"low_freq_factor: expected at most high_freq_factor={high_freq_factor:g}, "
            f"got {low_freq_factor:g}; they may be swapped"
        )
    values = []
    for w in f:
        turns = trained_length * w / (2 * math.pi)
        keep = float(turns >= low_freq_factor)  # where both are equal, nothing is between (Llama 4 Scout)
        if low_freq_factor < high_freq_factor:
            keep = min(max((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0.0), 1.0)
        values.append((1 - keep) * w / factor + keep * w)
    formula = (
        f"llama3(factor={factor:g}, low_freq_factor={low_freq_factor:g}, high_freq_factor={high_freq_factor:g}, "
        f"trained_length={trained_length})"
    )
    return _scaled(f, values, formula)


@checked
def multiplied(f: Frequencies, by: Sequence[float], why: str = "multiplied") -> Frequencies:
    """ω_i·by_i, with one factor for each pair, such as LeRoPE's trained exp(α_i) (Mistral-Large-4).

    Raises ValueError unless there is one finite factor per pair.
    """
    check_exact(f)
    if len(by) != len(f):
        raise ValueError(f"by: expected one factor for each of {len(f)} pairs, got {len(by)}")
    return _scaled(f, [w * factor for w, factor in zip(f, by, strict=True)], why)


@checked
def resonance(f: Frequencies) -> Frequencies:
    """2π/round(2π/ω): rounds every wavelength to a whole number of positions, so that phases repeat exactly.

    Wang et al. 2024, Resonance RoPE; it can follow `yarn`. Raises ValueError for frequencies above 4π.
    """
    check_exact(f)
    if any(abs(w) > 4 * math.pi for w in f):
        raise ValueError("f: a wavelength below half a position rounds to none")
    return _scaled(f, [2 * math.pi / round(2 * math.pi / w) if w else 0.0 for w in f], "resonance()")


@checked
def riflex(f: Frequencies, length: int, *, repeats: int, axis: int = 0, margin: float = 1.0) -> Frequencies:
    """The pair that makes a video repeat itself is slowed down, so that it turns once in the wanted length: 2π/length.

    length    positions along the axis that are wanted: frames of the latent video
    repeats   the position at which the model begins to repeat itself; the pair whose period is nearest is the one, of
              those that turn
    axis      the axis of time, for frequencies of several axes
    margin    what the new frequency is multiplied with: 1 in the paper's equation 8, 0.9 in the authors' code

    Zhao et al. 2025, "RIFLEx: A Free Lunch for Length Extrapolation in Video Diffusion Transformers", section 4.
    Raises ValueError where no pair reads the axis, where all have turned twice before `repeats`, as in models whose
    positions are not frames (LTX-Video), and where the pair turns slower already.
    """
    check_exact(f)
    pairs = [pair for pair in range(len(f)) if f[pair] and (f.axes[pair] if f.axes else 0) == axis]
    if not pairs:
        turning = sorted({f.axes[pair] if f.axes else 0 for pair in range(len(f)) if f[pair]})
        raise ValueError(f"axis: expected one of {turning}, which turning pairs read, got {axis}")
    chosen = min(pairs, key=lambda pair: abs(round(2 * math.pi / f[pair]) - repeats))
    longest = 2 * math.pi / min(f[pair] for pair in pairs)
    if repeats > 2 * longest:
        raise ValueError(
            f"repeats: the slowest pair of axis {axis} turns once in {longest:.4g} positions, so that nothing begins to "
            f"repeat at {repeats}; count positions as the model does: LTX-Video's are shares of a video"
        )
    slower = margin * 2 * math.pi / length
    if slower > f[chosen]:
        raise ValueError(
            f"length: pair {chosen} turns once in {2 * math.pi / f[chosen]:.4g} positions already, got a length of {length}"
        )
    values = [slower if pair == chosen else w for pair, w in enumerate(f)]
    return _scaled(f, values, f"riflex(length={length}, repeats={repeats}, margin={margin:g})")


@checked
def dype(
    f: Frequencies, factor: float, time: float, trained_length: int, *, method: Literal["yarn", "ntk"] = "yarn"
) -> Frequencies:
    """Frequencies of a diffusion step: stretched by `factor` at time 1, f's own at time 0.

        ntk     rotary of base·factor^(2·time²·d/(d-2))
        yarn    from ω/factor to NTK's ω at 1.25 … 0.75 turns, from there to ω at 16 … 2 turns in trained_length;
                all turns times time². cos_sin_scale is 1 + 0.1·ln factor at every time

    Issachar et al. 2025, DyPE, section 4, with the numbers of the authors' code. Raises ValueError for a time outside
    0 … 1, a factor below 1, and if f is not plain rotary frequencies of a base above 1.
    """
    if not 0 <= time <= 1:
        raise ValueError(f"time: expected a number 0 … 1, got {time!r}")
    checks.from_one(factor=factor)
    formula = f"dype(factor={factor:g}, time={time:g}, method={method})"
    if method == "ntk":
        return rebased(f, factor, formula, power=2 * time**2)
    base, d = _of_ramps(f)
    stretched = rebased(f, factor, formula)

    def ramps(fast: float, slow: float) -> list[float]:
        """0 for pairs that make more than `fast` turns, 1 for fewer than `slow`, times time²."""
        low, high = (_pair_of(turns * time**2, trained_length, base, d) for turns in (fast, slow))
        low, high = min(max(math.floor(low), 0), d // 2), min(math.ceil(high), d // 2)
        return [min(max((i - low) / (high - low if high > low else 0.001), 0.0), 1.0) for i in range(d // 2)]

    values = []
    for w, between, far, near in zip(f, stretched, ramps(1.25, 0.75), ramps(16.0, 2.0), strict=True):
        slow = between * (1 - far) + w / factor * far
        values.append(w * (1 - near) + slow * near)
    scale = f.cos_sin_scale * mscale_of(factor)
    return _scaled(f, values, formula, cos_sin_scale=scale, cos_sin_scale_from=f"1 + 0.1·ln {factor:g}")


def _pair_of(turns: float, length: int, base: float, d: int) -> float:
    """The pair that makes so many turns in that length; none is slow enough for no turn."""
    return d * math.log(length / (2 * math.pi * turns)) / (2 * math.log(base)) if turns > 0 else float(d)


@checked
def clipped(f: Frequencies, n: int = 20) -> Frequencies:
    """Lowers the n slowest frequencies to ω·(1 + cos(πk/(n-1)))/2 for k = 0 … n-1; the last becomes 0.

    Clipped RoPE, arXiv 2602.05258 (called CoPE there, unrelated to contextual position encoding). With fewer than n pairs,
    all are lowered.
    """
    check_exact(f)
    n = min(n, len(f))
    fade = [(1 + math.cos(math.pi * k / max(n - 1, 1))) / 2 for k in range(n)]
    kept = len(f) - n
    return _scaled(f, [*f[:kept], *(w * x for w, x in zip(f[kept:], fade, strict=True))], f"clipped(n={n})")


@checked
def power(f: Frequencies, exponent: float = 0.5) -> Frequencies:
    """ω_i·(1 - i/n)^exponent for n pairs: the slower a pair, the more it is slowed; the fastest keeps its frequency.

    Pal et al. 2023, Giraffe, and the authors' code, which tries 0.5.
    """
    check_exact(f)
    return _scaled(f, [w * (1 - i / len(f)) ** exponent for i, w in enumerate(f)], f"power({exponent:g})")


@checked
def truncated(f: Frequencies, trained_length: int) -> Frequencies:
    """Frequencies of pairs that turn once in L = trained_length positions; others are 2π/(16 L), or 0 if below 2π/(8 L).

    Pal et al. 2023, Giraffe, and the authors' code, whose numbers these are.
    """
    check_exact(f)
    whole_turn = 2 * math.pi / trained_length
    values = [w if w >= whole_turn else whole_turn / 16 if w >= whole_turn / 8 else 0.0 for w in f]
    return _scaled(f, values, f"truncated(trained_length={trained_length})")


# Checks and bookkeeping -----------------------------------------------------------------------------------------------


def check_plain(f: Frequencies) -> tuple[float, int]:
    """base and width of frequencies that are base^(-2i/width), unscaled and of one axis. Raises ValueError for others."""
    check_exact(f)
    if f.base is None or f.width is None or f.axes or f.values != rotary(f.width, f.base).values:
        raise ValueError(
            f"f: expected rotary(d, base) as it is, got {f.values_from}; scale first, then choose axes, and scale once"
        )
    return f.base, f.width


def _of_ramps(f: Frequencies) -> tuple[float, int]:
    """base and width of frequencies whose pairs can be found by their turns."""
    base, d = check_plain(f)
    if base <= 1 or d % 2:
        raise ValueError(f"f: a ramp over pairs needs a base above 1 and an even width, got base={base:g}, width={d}")
    return base, d


def check_exact(f: Frequencies) -> None:
    if f.arithmetic != "float64":
        raise ValueError("f: holds another library's fp32 values; scale those with posenc.configs.float32")


def _scaled(f: Frequencies, values: Sequence[float], formula: str, **magnitude: Any) -> Frequencies:
    return replace(f, values=tuple(values), base=None, values_from=f"{f.values_from}, {formula}", **magnitude)


def _attention_factor(
    factor: float, attention_factor: float | None, mscale: float | None, mscale_all_dim: float | None
) -> tuple[float, str]:
    if attention_factor is not None:
        return attention_factor, f"attention_factor={attention_factor:g}, as given"
    if (mscale is None) != (mscale_all_dim is None):
        raise ValueError(
            f"mscale, mscale_all_dim: one without the other says nothing, got {mscale!r} and "
            f"{mscale_all_dim!r}; give both or neither"
        )
    if mscale is not None and mscale_all_dim is not None:
        ratio = mscale_of(factor, mscale) / mscale_of(factor, mscale_all_dim)
        return ratio, f"yarn, mscale={mscale:g} over mscale_all_dim={mscale_all_dim:g}, factor={factor:g}"
    return mscale_of(factor), f"yarn, 1 + 0.1·ln(factor={factor:g})"
