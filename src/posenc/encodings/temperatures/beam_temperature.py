"""Beam's temperature: a power of the number of keys.

    q_i -> (1 + (i + 1)/2048)^0.1·q_i

transformers, models/beam, in layers without rotation. Its docstring says i, its code i + 1.
"""

from __future__ import annotations

from posenc.bilingual import Words
from posenc.checked import checked
from posenc.encodings.temperature import PowerTemperature
from posenc.entry import Entry


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
        "Only layers without rotation have it.",
        "查询随可见键数的一个小幂次增长：平滑，没有上界。只有不旋转的层使用它。",
    ),
)
