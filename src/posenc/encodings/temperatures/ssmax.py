"""Scalable-Softmax: scores are multiplied by a learned factor times the logarithm of the number of keys.

    q_i -> s_h·ln(i + 1)·q_i,   s_h learned, 1 when fresh

Nakanishi 2025, "Scalable-Softmax Is Superior for Attention", section 2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import LearnedTemperature
from posenc.support.checked import checked
from posenc.support.languages import Words


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
    title=Words("SSMax", "可扩展 softmax"),
    kind="tempered",
    published="2025-01",
    needs=("parameters",),
    formula="s·ln(i+1)·q·k",
    also_called=(
        "scalable_softmax",
        "s-max",
    ),
    used_by=(Words("research: by its author", "研究：作者的实验"),),
    source="Nakanishi 2025, arXiv 2501.19399, section 2",
    idea=Words(
        "Softmax over more keys is flatter. Multiplying the scores by the logarithm of the number of keys, times a "
        "learned factor of each head, keeps attention as sharp over long contexts as over short ones. It is used "
        "beside an encoding of positions.",
        "键越多，softmax 越平。分数乘以键数的对数，再乘每个头学到的系数，使长上下文中的注意力与短的一样尖锐。它与位"
        "置编码一起使用。",
    ),
    latex=r"s_h \ln(i + 1)\; q_i \cdot k_j",
    breaks=Words(
        "It says nothing about order, and must be there from the start of training.",
        "它不包含顺序信息，须从训练之初就使用。",
    ),
    options={
        "n_heads": "查询头数，各有自己的系数",
    },
)
