"""Llama 4's temperature: a logarithm that steps at every multiple of 8192 keys.

    q_i -> (1 + 0.1·ln(1 + ⌊(i + 1)/8192⌋))·q_i

The code of Llama 4 (attn_temperature_tuning), which has it in layers without rotation only: see irope.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import FloorLogTemperature
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def llama4_temperature(*, scale: float = 0.1, length: int = 8192) -> FloorLogTemperature:
    """`FloorLogTemperature` of the number of keys.

    scale   of the logarithm (attn_scale)
    length  keys from one step to the next (floor_scale)
    """
    return FloorLogTemperature(scale, length, offset=1)


ENTRY = Entry(
    name="llama4_temperature",
    class_name="FloorLogTemperature",
    builder="llama4_temperature",
    title=Words("Temperature of Llama 4", "Llama 4 的温度"),
    kind="tempered",
    published="2025-04",
    formula="(1 + β ln(1 + ⌊(i+1)/L⌋))·q·k",
    also_called=(
        "attn_temperature_tuning",
        "attn_scale",
        "floor_scale",
        "inference-time temperature scaling",
    ),
    used_by=("Llama 4",),
    source="Meta 2025, the code of Llama 4",
    idea=Words(
        "Queries are multiplied by a number that is 1 for the first 8191 positions and grows with the logarithm of "
        "the number of such stretches. It keeps attention sharp over contexts of millions of tokens. Nothing is "
        "learned.",
        "查询乘以一个数：最初 8191 个位置为 1，之后随这样的段数的对数增长。它使上百万词元的上下文中注意力仍然尖锐。"
        "没有需要学习的量。",
    ),
    latex=r"\left(1 + \beta \ln\!\left(1 + \left\lfloor \frac{i + 1}{L} \right\rfloor\right)\right) q_i \cdot k_j",
    breaks=Words(
        "It says nothing about order; scores jump at every multiple of L.",
        "它不包含顺序信息；分数在 L 的每个倍数处跳变。",
    ),
    code="meta-llama/llama-models",
    options={
        "scale": "对数的系数（attn_scale）",
        "length": "相邻两级之间的键数（floor_scale）",
    },
)
