"""Mistral-Large-4's temperature: learned for each head, linear in the logarithm of the number of keys.

    q_i -> (s_h·ln(i + 1) + c_h)·q_i,   s_h = 0 and c_h = 1 when fresh

transformers, models/mistral_large4 (softmax_scaling), in layers without rotation.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import LearnedTemperature
from posenc.support.checked import checked
from posenc.support.languages import Words


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
    title=Words("Temperature of Mistral-Large-4", "Mistral-Large-4 的温度"),
    kind="tempered",
    published="2026-06",
    needs=("parameters",),
    formula="(s ln(i+1) + c)·q·k",
    also_called=(
        "softmax_scaling",
        "learned_temperature",
    ),
    used_by=("Mistral-Large-4",),
    source="transformers, models/mistral_large4: no paper",
    idea=Words(
        "SSMax with a constant: each head learns how fast it sharpens with the context and where it begins. Fresh, "
        "it changes nothing. It stands in layers that do not rotate.",
        "带常数项的 SSMax：每个头学习随上下文变尖锐的速度和起点。初始时不改变任何东西。用于不旋转的层。",
    ),
    latex=r"(s_h \ln(i + 1) + c_h)\; q_i \cdot k_j",
    breaks=Words(
        "It says nothing about order, and what it learned about length is not bounded.",
        "它不包含顺序信息，学到的长度变化也没有上界。",
    ),
    code="huggingface/transformers",
    options={
        "n_heads": "查询头数，各有自己的数",
    },
)
