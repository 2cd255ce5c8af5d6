"""Ministral 3's temperature: as Llama 4's, by the position instead of the number of keys.

    q_i -> (1 + 0.1·ln(1 + ⌊i/L⌋))·q_i,   one token later than Llama 4's

The code of Ministral 3 and Mistral 4 (llama_4_scaling_beta), which have it in every layer.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import FloorLogTemperature
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def ministral_temperature(*, scale: float = 0.1, length: int = 16384) -> FloorLogTemperature:
    """`FloorLogTemperature` of the position.

    scale   of the logarithm (llama_4_scaling_beta)
    length  the trained length L (original_max_position_embeddings)
    """
    return FloorLogTemperature(scale, length, offset=0)


ENTRY = Entry(
    name="ministral_temperature",
    class_name="FloorLogTemperature",
    builder="ministral_temperature",
    title=Words("Temperature of Ministral 3", "Ministral 3 的温度"),
    kind="tempered",
    published="2025-12",
    formula="(1 + β ln(1 + ⌊i/L⌋))·q·k",
    also_called=(
        "llama_4_scaling_beta",
        "llama_4_attn_scale",
        "ministral3",
    ),
    used_by=(
        "Ministral 3",
        "Mistral 4",
    ),
    source="transformers, models/ministral3",
    idea=Words(
        "The same step function as in Llama 4, but read at the position and not at the number of keys, so that it "
        "steps one token later. Every layer has it, beside its rotation. Nothing is learned.",
        "与 Llama 4 相同的阶梯函数，但取位置而不是键数，因此晚一个词跳变。每层在旋转之外都使用它。没有需要学习的量。",
    ),
    latex=r"\left(1 + \beta \ln\!\left(1 + \left\lfloor \frac{i}{L} \right\rfloor\right)\right) q_i \cdot k_j",
    breaks=Words(
        "It says nothing about order; scores jump at every multiple of L.",
        "它不包含顺序信息；分数在 L 的每个倍数处跳变。",
    ),
    code="huggingface/transformers",
    options={
        "scale": "对数的系数（llama_4_scaling_beta）",
        "length": "训练长度 L（original_max_position_embeddings）",
    },
)
