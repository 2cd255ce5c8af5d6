"""Mistral-Large-4's temperature: learned for each head, linear in the logarithm of the number of keys.

    q_i -> (s_h·ln(i + 1) + c_h)·q_i,   s_h = 0 and c_h = 1 when fresh

transformers, models/mistral_large4 (softmax_scaling), in layers without rotation.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import LearnedTemperature
from posenc.support.checked import checked


@checked
def mistral_large4_temperature(n_heads: int) -> LearnedTemperature:
    """`LearnedTemperature` with a constant.

    n_heads  query heads, each with numbers of its own
    """
    return LearnedTemperature(n_heads)


ENTRY = Entry(
    name="mistral_large4_temperature",
    class_name="LearnedTemperature",
    builder="mistral_large4_temperature",
    title="Temperature of Mistral-Large-4",
    kind="tempered",
    published="2026-06",
    needs=("parameters",),
    formula="(s ln(i+1) + c)·q·k",
    also_called=("softmax_scaling", "learned_temperature"),
    used_by=("Mistral-Large-4",),
)
