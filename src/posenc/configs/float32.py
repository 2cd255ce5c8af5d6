"""Parity mode: rotary frequencies with transformers' own fp32 roundings, bit for bit.

    RoPE(d_head, layout="half", frequencies=float32.llama3(width, base, 32.0, 1.0, 4.0, 8192))

has the same cos and sin as transformers. Functions are named after rope_type and after their fp64 counterparts in
posenc.frequencies, and take the same arguments. Where those raise, these compute what transformers computes (an odd width,
mscale alone). For several axes, pass the result to posenc.frequencies.axial, sections, …, which do not round.

Source: transformers 5.23, modeling_rope_utils.py. Each function says where the order of operations matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from posenc.frequencies import Frequencies, LongRoPE, mscale_of
from posenc.support import checks


def default(width: int, base: float) -> Frequencies:
    """1 / base^(arange(0, width, 2) / width), all in fp32."""
    return _value(_inverse(width, base), f"default(width={width}, base={base:g})", base=base, width=width)


def partial(d_head: int, base: float, fraction: float) -> Frequencies:
    """default(int(d_head·fraction), base); an odd width is kept: 25 gives 13 pairs."""
    checks.positive(fraction=fraction)
    return default(int(d_head * fraction), base)


def linear(width: int, base: float, factor: float) -> Frequencies:
    """The default divided by `factor`, rounded again."""
    checks.positive(factor=factor)
    return _value(_inverse(width, base) / factor, f"linear(width={width}, base={base:g}, factor={factor:g})")


def ntk_alpha(width: int, base: float, alpha: float) -> Frequencies:
    """The default of base·alpha^(d/(d-2)); that base is still fp64 (HunYuan)."""
    checks.positive(alpha=alpha)
    _check_wider_than_2(width)
    stretched = base * alpha ** (width / (width - 2))
    return _value(_inverse(width, stretched), f"ntk_alpha(width={width}, base={base:g}, alpha={alpha:g})")


@dataclass(frozen=True)
class DynamicNTK:
    """`at_length(n)`: the default up to the trained length, beyond it that of a larger base, which is itself rounded to
    fp32.

    transformers keeps the largest base so far until a sequence is shorter than the trained length; this is what a request
    of n
    tokens gets from a model that has seen nothing longer.
    """

    width: int
    base: float
    factor: float
    trained_length: int

    def at_length(self, n: int) -> Frequencies:
        """The frequencies of a request of n tokens."""
        checks.whole(n=n)
        power = self.width / (self.width - 2)
        formula = (
            f"dynamic(width={self.width}, base={self.base:g}, factor={self.factor:g}) at {max(n, self.trained_length)}"
        )
        base: float | Tensor
        if n <= self.trained_length:  # the base of a fresh model: Python numbers
            base = self.base * ((self.factor * self.trained_length / self.trained_length) - (self.factor - 1)) ** power
        else:  # the base of a grown one: the length is a tensor there, so that the base is one of fp32
            whole = isinstance(self.factor, int)  # whole factors multiply the length before it becomes fp32
            stretched = _fp32([self.factor * n]) if whole else _fp32([n]) * self.factor
            base = self.base * ((stretched / self.trained_length) - (self.factor - 1)) ** power
        return _value(_inverse(self.width, base), formula)


def dynamic(width: int, base: float, factor: float, trained_length: int) -> DynamicNTK:
    """Dynamic NTK scaling; `trained_length` is max_position_embeddings. Raises ValueError for width 2."""
    checks.positive(base=base, factor=factor)
    checks.whole(width=width, trained_length=trained_length)
    _check_wider_than_2(width)
    return DynamicNTK(width, base, factor, trained_length)


def yarn(
    width: int,
    base: float,
    factor: float,
    trained_length: int,
    *,
    beta_fast: float | None = 32.0,
    beta_slow: float | None = 1.0,
    truncate: bool = True,
    attention_factor: float | None = None,
    mscale: float | None = None,
    mscale_all_dim: float | None = None,
) -> Frequencies:
    """YaRN: the range in fp64, ramp and both spectra in fp32, the slow one as 1/(factor·base^x).

    beta_fast and beta_slow of 0 or None mean 32 and 1; only one of mscale and mscale_all_dim, or 0, has no effect.
    Raises ValueError for an odd width, for which transformers fails too.
    """
    checks.positive(factor=factor, base=base)
    checks.whole(width=width, trained_length=trained_length)
    if width % 2:
        raise ValueError(f"width: yarn expects an even number of channels, got {width}")
    fast, slow = beta_fast or 32, beta_slow or 1
    low: float
    high: float
    low, high = (width * math.log(trained_length / (beta * 2 * math.pi)) / (2 * math.log(base)) for beta in (fast, slow))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    if low == high:
        high += 0.001
    ramp = ((_fp32(range(width // 2)) - low) / (high - low)).clamp(0, 1)
    powers = base ** (_fp32(range(0, width, 2)) / width)
    keep = 1 - ramp
    values = 1.0 / (factor * powers) * (1 - keep) + 1.0 / powers * keep
    if attention_factor is None:
        both = bool(mscale and mscale_all_dim)
        ratio = mscale_of(factor, mscale or 1.0) / mscale_of(factor, mscale_all_dim or 1.0)
        scale, scale_from = (ratio, "mscale over mscale_all_dim") if both else (mscale_of(factor), "1 + 0.1·ln factor")
    else:
        scale, scale_from = attention_factor, "attention_factor, as given"
    formula = f"yarn(width={width}, base={base:g}, factor={factor:g}, trained_length={trained_length})"
    return replace(_value(values, formula), cos_sin_scale=scale, cos_sin_scale_from=scale_from)


def longrope(
    width: int,
    base: float,
    short_factor: Sequence[float],
    long_factor: Sequence[float],
    trained_length: int,
    *,
    factor: float | None = None,
    attention_factor: float | None = None,
) -> LongRoPE:
    """1/(short_factor·base^x) or 1/(long_factor·base^x), by the length of the request.

    `factor` is the longest length over trained_length; needed unless attention_factor is given. Raises ValueError.
    """
    checks.whole(width=width, trained_length=trained_length)
    if attention_factor is None and factor is None:
        raise ValueError("factor: expected the longest length over trained_length, or else attention_factor; got neither")
    if attention_factor is None:
        assert factor is not None
        checks.positive(factor=factor)
        scale = 1.0 if factor <= 1.0 else math.sqrt(1 + math.log(factor) / math.log(trained_length))
        scale_from = "√(1 + ln factor / ln trained_length)"
    else:
        scale, scale_from = attention_factor, "attention_factor, as given"
    sets = []
    for name, factors in (("short_factor", short_factor), ("long_factor", long_factor)):
        if len(factors) != (width + 1) // 2:
            raise ValueError(f"{name}: expected one factor for each of {(width + 1) // 2} pairs, got {len(factors)}")
        values = 1.0 / (_fp32(factors) * base ** (_fp32(range(0, width, 2)) / width))
        formula = f"longrope(width={width}, base={base:g}, {name})"
        sets.append(replace(_value(values, formula), cos_sin_scale=scale, cos_sin_scale_from=scale_from))
    return LongRoPE(sets[0], sets[1], trained_length)


def llama3(
    width: int, base: float, factor: float, low_freq_factor: float, high_freq_factor: float, trained_length: int
) -> Frequencies:
    """Llama 3.1's three bands, decided by fp32 wavelengths; the blend divides by `factor` before it multiplies."""
    checks.positive(factor=factor, low_freq_factor=low_freq_factor, high_freq_factor=high_freq_factor)
    checks.whole(trained_length=trained_length)
    plain = _inverse(width, base)
    wavelength = 2 * math.pi / plain
    slow, fast = wavelength > trained_length / low_freq_factor, wavelength < trained_length / high_freq_factor
    values = torch.where(slow, plain / factor, plain)
    share = (trained_length / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor)
    values = torch.where(~fast & ~slow, (1 - share) * values / factor + share * values, values)
    return _value(values, f"llama3(width={width}, base={base:g}, factor={factor:g}, trained_length={trained_length})")


def proportional(d_head: int, base: float, fraction: float = 1.0, factor: float = 1.0) -> Frequencies:
    """1 / base^(2i/d_head) for ⌊fraction·d_head/2⌋ pairs, zero for the others, all divided by `factor`."""
    checks.positive(fraction=fraction, factor=factor)
    checks.whole(d_head=d_head)
    turning = int(fraction * d_head // 2)
    values = 1.0 / (base ** (_fp32(range(0, 2 * turning, 2)) / d_head))
    values = torch.cat([values, _fp32([0.0] * (d_head // 2 - turning))]) / factor
    return _value(values, f"proportional(d_head={d_head}, base={base:g}, fraction={fraction:g}, factor={factor:g})")


def unit_square(d_head: int, base: float = 100.0) -> Frequencies:
    """DINOv3's 1 / base^arange(0, 1, 4/d_head) for height, then width, without its factor 2π.

    Coordinates must hold 2π·coordinate in fp32: the product of three then rounds as in DINOv3's code.
    """
    checks.whole(d_head=d_head)
    values = (1 / base ** torch.arange(0, 1, 4 / d_head, dtype=torch.float32, device="cpu")).tolist()
    return Frequencies(
        tuple(values * 2),
        axes=(0,) * len(values) + (1,) * len(values),
        base=base,
        width=d_head // 2,
        arithmetic="float32",
        values_from=f"transformers, fp32: DINOv3(d_head={d_head}, base={base:g})",
    )


def exponentiated(f: Frequencies, alpha: Tensor) -> Frequencies:
    """ω·exp(α) in fp32, α one number for each pair (LeRoPE as Mistral-Large-4 computes it). Raises ValueError."""
    if f.arithmetic != "float32" or alpha.shape != (len(f),):
        raise ValueError(f"alpha: expected [{len(f)}] beside frequencies of this module, got {list(alpha.shape)}")
    values = _fp32(f.values) * alpha.detach().float().cpu().exp()
    return replace(f, values=tuple(values.tolist()), base=None, values_from=f"{f.values_from}, · exp(α)")


def _inverse(width: int, base: float | Tensor) -> Tensor:
    checks.whole(width=width)
    if not isinstance(base, Tensor):
        checks.positive(base=base)
    return 1.0 / (base ** (_fp32(range(0, width, 2)) / width))


def _fp32(values: Sequence[float]) -> Tensor:
    """Runs on the CPU in fp32, whatever torch's defaults are."""
    return torch.tensor(list(values), dtype=torch.float32, device="cpu")


def _value(values: Tensor, formula: str, base: float | None = None, width: int | None = None) -> Frequencies:
    return Frequencies(
        tuple(values.tolist()), base=base, width=width, arithmetic="float32", values_from=f"transformers, fp32: {formula}"
    )


def _check_wider_than_2(width: int) -> None:
    if width <= 2:
        raise ValueError(f"width: {width} has no slower pair to stretch; d/(d-2) needs d > 2")
