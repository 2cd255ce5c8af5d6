"""Partial RoPE: the first channels of a head turn, the rest keeps still.

    R(p) on the first ⌊f·d⌋ channels, with ω_i = base^(-2i/⌊f·d⌋)

Wang and Komatsuzaki 2021 (GPT-J, 64 of 256 channels); Black et al. 2022, "GPT-NeoX-20B", section 2.1 (a quarter).
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def partial(d_head: int, *, fraction: float = 0.25, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.partial`; the defaults are those of GPT-NeoX.

    d_head    channels of a head
    fraction  how much of them turns: partial_rotary_factor or rotary_pct of a configuration
    base      of the frequencies
    layout    which channels make a pair; GPT-J interleaves

    Raises ValueError where the channels that turn are not an even number.
    """
    return RoPE(d_head, frequencies=frequencies.partial(d_head, base, fraction), layout=layout)


ENTRY = Entry(
    name="partial",
    class_name="RoPE",
    builder="partial",
    title=Words("Partial RoPE", "部分旋转"),
    kind="rotated",
    published="2021-06",
    formula="R(p)q on the first ⌊f·d⌋ channels",
    also_called=(
        "partial_rotary",
        "partial_rotary_factor",
        "rotary_pct",
        "partial_rope",
    ),
    used_by=(
        "GPT-NeoX",
        "Phi",
        "StableLM",
        "GLM-4.5",
    ),
    source="Wang and Komatsuzaki 2021, GPT-J; Black et al. 2022, arXiv 2204.06745, section 2.1",
    idea=Words(
        "A part of each head's channels is rotated; the others carry content only. GPT-NeoX rotates a quarter, which "
        "in its first experiments was the best balance of quality and cost. Channels that keep still cannot fail at "
        "new lengths.",
        "每个头只旋转一部分通道，其余通道只承载内容。GPT-NeoX 旋转四分之一，在其初步实验中质量与计算量最为均衡。不旋"
        "转的通道不会因新的长度而失效。",
    ),
    latex=r"(R(i)\, q_i) \cdot (R(j)\, k_j), \quad \omega_n = b^{-2n / m} \; (n < m/2), \quad m = \lfloor f d \rfloor",
    breaks=Words(
        "It breaks where RoPE does: slow pairs reach angles that training never showed.",
        "与 RoPE 在同样的地方失效：慢的通道对转到训练中没有的角度。",
    ),
    code="EleutherAI/gpt-neox",
    options={
        "layout": "哪些通道成对；GPT-J 用相邻通道",
        "fraction": "旋转的比例：配置中的 partial_rotary_factor 或 rotary_pct",
    },
)
