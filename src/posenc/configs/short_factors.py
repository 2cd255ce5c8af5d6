"""A defect of Phi-MoE's code, reproduced: LongRoPE that never uses its long factors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posenc.configs.spec import Rotation
from posenc.frequencies import Arithmetic, LongRoPE
from posenc.support import checks


def short_factors_at_any_length(
    width: int, base: float, *, arithmetic: Arithmetic, short_mscale: float, long_mscale: float, **parameters: Any
) -> LongRoPE:
    """The frequencies of `short_factor` at every length; beyond the trained length only their scale becomes long_mscale.

    transformers 5.23, PhimoeRotaryEmbedding.forward recomputes the frequencies without a length, which selects the short
    factors, but selects the scale by length. Raises ValueError for a scale that is not positive.
    """
    checks.positive(short_mscale=short_mscale, long_mscale=long_mscale)
    made = Rotation(width, base, "longrope", tuple(parameters.items())).frequencies(arithmetic)
    assert isinstance(made, LongRoPE)
    short = replace(made.short, cos_sin_scale=short_mscale, cos_sin_scale_from="short_mscale")
    return LongRoPE(short, replace(short, cos_sin_scale=long_mscale, cos_sin_scale_from="long_mscale"), made.trained_length)
