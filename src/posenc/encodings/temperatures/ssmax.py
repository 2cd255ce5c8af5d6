"""Scalable-Softmax: scores are multiplied by a learned factor times the logarithm of the number of keys.

    q_i -> s_h·ln(i + 1)·q_i,   s_h learned, 1 when fresh

Nakanishi 2025, "Scalable-Softmax Is Superior for Attention", section 2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import LearnedTemperature
from posenc.support.checked import checked


@checked
def ssmax(n_heads: int) -> LearnedTemperature:
    """`LearnedTemperature` without a constant.

    n_heads  query heads, each with a factor of its own
    """
    return LearnedTemperature(n_heads, bias=False)


ENTRY = Entry(
    name="ssmax",
    class_name="LearnedTemperature",
    builder="ssmax",
    title="SSMax",
    kind="tempered",
    published="2025-01",
    needs=("parameters",),
    formula="s·ln(i+1)·q·k",
    also_called=("scalable_softmax", "s-max"),
    used_by=("research: by its author",),
)
