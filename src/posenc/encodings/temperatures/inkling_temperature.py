"""Inkling's temperature: one up to a number of keys, then a logarithm.

    q_i -> (1 + 0.1·ln max((i + 1)/n, 1))·q_i,   and the bias of the same layer alike

transformers, models/inkling (log_scaling_alpha and log_scaling_n_floor), in layers without a window.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import LogTemperature
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def inkling_temperature(*, scale: float = 0.1, length: int = 8192) -> LogTemperature:
    """`LogTemperature`; `encodings.temperature.TemperedBias` multiplies a bias with it too.

    scale   of the logarithm
    length  n: keys up to which nothing changes
    """
    return LogTemperature(scale, length)


ENTRY = Entry(
    name="inkling_temperature",
    class_name="LogTemperature",
    builder="inkling_temperature",
    title=Words("Temperature of Inkling", "Inkling 的温度"),
    kind="tempered",
    published="2026-05",
    formula="(1 + α ln max((i+1)/n, 1))·q·k",
    also_called=(
        "log_scaling_alpha",
        "log_scaling_n_floor",
    ),
    used_by=(
        "Inkling",
        "Inkling 2",
    ),
    source="transformers, models/inkling: no paper",
    idea=Words(
        "Queries, and the position bias with them, are multiplied by a number that is one for short contexts and "
        "then grows with the logarithm of the context. Both parts of the score are sharpened alike. Nothing is "
        "learned.",
        "查询和位置偏置一起乘以一个数：短上下文时为 1，之后随上下文长度的对数增长。分数的两部分同样变尖锐。没有需要"
        "学习的量。",
    ),
    latex=r"\left(1 + \alpha \ln \max\!\left(\frac{i + 1}{n}, 1\right)\right) (q_i \cdot k_j + b_{ij})",
    breaks=Words(
        "It says nothing about order; a bias beside it must be multiplied too, which `TemperedBias` does.",
        "它不包含顺序信息；旁边的偏置也要相乘，由 `TemperedBias` 完成。",
    ),
    code="huggingface/transformers",
    options={
        "scale": "对数的系数",
        "length": "n：在此键数以内没有变化",
    },
)
