"""NTK by parts: YaRN's frequencies without its magnitude.

    ω' = ω·(1-γ) + ω/s·γ,   γ rises from 0 to 1 between the pairs that turn 32 times and once in the trained length

Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models", section 3.2, definition 2.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def ntk_by_parts(
    d_head: int,
    *,
    factor: float = 16.0,
    original_length: int = 4096,
    base: float = 10000.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.yarn`, and cos and sin as they are.

    d_head           channels of a head, even
    factor           s: the length wanted over the trained one
    original_length  the trained length, in positions
    base             of the trained frequencies
    layout           which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    scaled = frequencies.yarn(frequencies.rotary(d_head, base), factor, original_length, attention_factor=1.0)
    return RoPE(d_head, frequencies=scaled, layout=layout)


ENTRY = Entry(
    name="ntk_by_parts",
    class_name="RoPE",
    builder="ntk_by_parts",
    title=Words("NTK by parts", "NTK 分段插值"),
    kind="scaled",
    published="2023-08",
    formula="ω' = (1-γ)ω + γω/s",
    also_called=(
        "ntk-by-parts interpolation",
        "by_parts",
    ),
    used_by=(Words("the first half of YaRN", "YaRN 的前一半"),),
    source="Peng et al. 2023, arXiv 2309.00071, section 3.2",
    idea=Words(
        "Fast pairs keep their frequency, slow pairs are interpolated, and a ramp joins them, as in YaRN; scores "
        "are not sharpened. It shows how much of YaRN is due to the frequencies alone. Without fine-tuning it "
        "works for small factors.",
        "与 YaRN 一样，快的通道对保持频率，慢的做插值，中间线性过渡；但不改变注意力分数的尖锐程度。它表明 YaRN "
        "的效果有多少只来自频率。倍数不大时无需微调。",
    ),
    latex=r"\omega' = (1 - \gamma)\,\omega + \gamma\,\frac{\omega}{s}",
    breaks=Words(
        "It needs the trained length; scores flatten over long contexts, since nothing sharpens them.",
        "需要知道训练长度；没有锐化，长上下文的分数会变平。",
    ),
    code="jquesnelle/yarn",
)
