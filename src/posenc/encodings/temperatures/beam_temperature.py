"""Beam's temperature: a power of the number of keys.

    q_i -> (1 + (i + 1)/2048)^0.1·q_i

transformers, models/beam, in layers without rotation. Its docstring says i, its code i + 1.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import PowerTemperature
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def beam_temperature(*, exponent: float = 0.1, length: int = 2048) -> PowerTemperature:
    """`PowerTemperature`.

    exponent  of the power
    length    keys after which the number under the power is 2
    """
    return PowerTemperature(exponent, length)


ENTRY = Entry(
    name="beam_temperature",
    class_name="PowerTemperature",
    builder="beam_temperature",
    title=Words("Temperature of Beam", "Beam 的温度"),
    kind="tempered",
    published="2026-03",
    formula="(1 + (i+1)/L)^a·q·k",
    also_called=(
        "power_temperature",
        "beam",
    ),
    used_by=("Beam",),
    source="transformers, models/beam: no paper",
    idea=Words(
        "Queries grow with a small power of the number of keys that they can see: smoothly, and without a bound. "
        "Only layers without rotation have it. Nothing is learned.",
        "查询随可见键数的一个小幂次增长：平滑，没有上界。只有不旋转的层使用它。没有需要学习的量。",
    ),
    latex=r"\left(1 + \frac{i + 1}{L}\right)^{a} q_i \cdot k_j",
    breaks=Words(
        "It says nothing about order, and grows without a bound.",
        "它不包含顺序信息，且无上界地增长。",
    ),
    differs=Words(
        "The number of keys is i + 1 as in the code; its docstring says i.",
        "键数按代码取 i + 1；其说明文字写的是 i。",
    ),
    code="huggingface/transformers",
    options={
        "length": "使底数达到 2 的键数",
        "exponent": "幂的指数",
    },
)
