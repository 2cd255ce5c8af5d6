"""Log-n scaling: beyond the trained length, scores grow with the logarithm of the position.

    q_i -> max(1, ln(i + 1)/ln L)·q_i

Su 2021, "Attention scaling from the invariance of entropy" (a post); use_logn_attn of the first Qwen.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import LogLengthTemperature
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def log_n(*, length: int = 2048) -> LogLengthTemperature:
    """`LogLengthTemperature`.

    length  the trained length L, in positions, from 2
    """
    return LogLengthTemperature(length)


ENTRY = Entry(
    name="log_n",
    class_name="LogLengthTemperature",
    builder="log_n",
    title=Words("Log-n scaling", "log n 缩放"),
    kind="tempered",
    published="2021-12",
    formula="max(1, ln(i+1)/ln L)·q·k",
    also_called=(
        "logn",
        "logn_attn",
        "use_logn_attn",
        "entropy_invariance",
    ),
    used_by=(Words("Qwen (the first)", "初代 Qwen"),),
    source="Su 2021, a post (kexue.fm 8823)",
    idea=Words(
        "Within the trained length nothing changes; beyond it queries are multiplied by the ratio of two "
        "logarithms. That keeps the entropy of attention level as the context grows. It has no parameters.",
        "在训练长度之内不变；超出后，查询乘以两个对数之比，使注意力的熵不随上下文变长而增大。它没有参数。",
    ),
    latex=r"\max\!\left(1, \frac{\ln(i + 1)}{\ln L}\right) q_i \cdot k_j",
    breaks=Words(
        "It says nothing about order: it is used beside an encoding. A model not trained with it gains little.",
        "它不包含顺序信息：须与编码一起使用。未用它训练的模型收益不大。",
    ),
    options={
        "length": "训练长度 L，以位置计，至少 2",
    },
)
