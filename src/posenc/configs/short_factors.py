"""Scalings of one family each: LongRoPE as Phi-MoE and Phi-3-small compute it, NTK as Alibaba's GTE does."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from posenc.configs.spec import Rotation
from posenc.frequencies import Arithmetic, Frequencies, LongRoPE
from posenc.support import checks

SHORT_AT_ANY_LENGTH = "configs.short_factors.short_factors_at_any_length"  # as the kind of a Rotation


def short_factors_at_any_length(
    width: int, base: float, *, arithmetic: Arithmetic, short_mscale: float, long_mscale: float, **parameters: Any
) -> LongRoPE:
    """The frequencies of `short_factor` at every length; beyond the trained length only their scale becomes long_mscale.

    transformers 5.23, PhimoeRotaryEmbedding.forward recomputes the frequencies without a length, which selects the short
    factors, but selects the scale by length. Raises ValueError for a scale that is not positive.
    """
    scales = {"short_mscale": short_mscale, "long_mscale": long_mscale}
    scaled = with_scales(width, base, arithmetic=arithmetic, **scales, **parameters)
    beyond = replace(scaled.short, cos_sin_scale=long_mscale, cos_sin_scale_from="long_mscale")
    return LongRoPE(scaled.short, beyond, scaled.trained_length)


def with_scales(
    width: int, base: float, *, arithmetic: Arithmetic, short_mscale: float, long_mscale: float, **parameters: Any
) -> LongRoPE:
    """LongRoPE whose cos and sin are multiplied by short_mscale up to the trained length, and by long_mscale beyond.

    Phi-3-small's own code. Raises ValueError for a scale that is not positive.
    """
    checks.positive(short_mscale=short_mscale, long_mscale=long_mscale)
    scaled = Rotation(width, base, "longrope", tuple(parameters.items())).frequencies(arithmetic)
    assert isinstance(scaled, LongRoPE)
    return LongRoPE(
        replace(scaled.short, cos_sin_scale=short_mscale, cos_sin_scale_from="short_mscale"),
        replace(scaled.long, cos_sin_scale=long_mscale, cos_sin_scale_from="long_mscale"),
        scaled.trained_length,
    )


def mixed_ntk(
    width: int, base: float, *, arithmetic: Arithmetic, factor: float, mixed_b: float | None = None
) -> Frequencies:
    """ω_i / factor^(2(i+1)/d), or with mixed_b = β: ω_i / exp(a·(i+1)^β), a = ln factor / (d/2)^β; ω_i = base^(-2i/d).

    Su Jianlin's NTK-RoPE-fixed and NTK-RoPE-mixed, in Alibaba's GTE. Computed in fp64 for either `arithmetic`.
    """
    checks.positive(factor=factor)
    power = 1.0 if mixed_b is None else mixed_b
    pairs = width // 2
    values = tuple(base ** (-2 * i / width) / math.exp(math.log(factor) * ((i + 1) / pairs) ** power) for i in range(pairs))
    formula = f"mixed_ntk(factor={factor:g}{'' if mixed_b is None else f', mixed_b={mixed_b:g}'})"
    return Frequencies(values, values_from=f"rotary(d={width}, base={base:g}), {formula}")
