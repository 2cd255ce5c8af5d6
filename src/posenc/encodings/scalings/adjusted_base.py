"""Adjusted base frequency (ABF): RoPE with a larger base, trained on.

    ω_i = 500 000^(-2i/d)

Xiong et al. 2023, "Effective Long-Context Scaling of Foundation Models", section 4.1; Code Llama takes 1 000 000.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def adjusted_base(d_head: int, *, base: float = 500000.0, layout: Layout = "interleaved") -> RoPE:
    """RoPE with another base than 10 000.

    d_head  channels of a head, even
    base    the slowest pair turns once in about 2π·base positions
    layout  which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.rotary(d_head, base), layout=layout)


ENTRY = Entry(
    name="adjusted_base",
    class_name="RoPE",
    builder="adjusted_base",
    title=Words("Adjusted base", "调整底数"),
    kind="scaled",
    published="2023-09",
    formula="ω = b^(-2i/d), b = 500 000",
    also_called=(
        "abf",
        "rope_abf",
        "adjusted_base_frequency",
        "rope_theta",
    ),
    used_by=(
        "Llama 3",
        "Code Llama",
        "Qwen2.5",
        "Mistral NeMo",
    ),
    source="Xiong et al. 2023, arXiv 2309.16039, section 4.1",
    idea=Words(
        "RoPE with a base of 500 000 instead of 10 000, from the start of training or from a continued training on "
        "long texts. Pairs turn more slowly, so that the scores of far tokens vary less. Most models of long texts "
        "begin so.",
        "RoPE 的底数取 500 000 而不是 10 000，可以从头训练，也可以在长文本上继续训练。各通道对转得更慢，远处词的注"
        "意力分数波动更小。多数长文本模型以此为起点。",
    ),
    latex=r"\omega_n = b^{-2n/d}, \quad b = 500\,000",
    breaks=Words(
        "A trained model must be trained on with the new base; without it, quality falls.",
        "已训练的模型必须用新底数继续训练，否则质量下降。",
    ),
    options={
        "base": "最慢的通道对约 2π·base 个位置转一圈",
    },
)
