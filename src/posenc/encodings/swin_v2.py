"""Swin v2's bias: a small network of the logarithm of the difference, and cosine attention.

    logits = τ_h·cos(q, k) + 16·σ(network(sign(Δ)·log₂(1 + |8Δ̂|)/log₂ 8)),   τ_h = exp(min(s_h, ln 100))

Liu et al. 2021, "Swin Transformer V2", section 3.3, and its code.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.continuous_window_bias import ContinuousWindowBias
from posenc.support.checked import checked


@checked
def swin_v2(n_heads: int, *, height: int = 8, width: int = 8) -> ContinuousWindowBias:
    """`ContinuousWindowBias` of a window.

    n_heads        query heads
    height, width  of the window, in patches

    Raises ValueError for sizes that are not positive.
    """
    return ContinuousWindowBias(n_heads, (height, width))


ENTRY = Entry(
    name="swin_v2",
    class_name="ContinuousWindowBias",
    builder="swin_v2",
    title="Swin v2",
    kind="biased",
    published="2021-11",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    both_ways=True,
    formula="τ·cos(q, k) + 16σ(MLP(log Δ))",
    also_called=("swinv2", "continuous_relative_position_bias", "cpb", "log_cpb", "continuous_window_bias"),
    used_by=("Swin v2", "Swin2SR"),
)
