"""Proportional RoPE (p-RoPE): the slowest pairs keep still, all others turn as in RoPE.

    ω_i = base^(-2i/d)  for i < ⌊f·d/2⌋,   0 for all others

Barbero et al. 2024, "Round and Round We Go! What makes Rotary Positional Encodings useful?", section 6; Gemma 4.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def proportional(d_head: int, *, fraction: float = 0.75, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.proportional`.

    d_head    channels of a head, even
    fraction  how much of the pairs turns; 0.75 was best in the paper, Gemma 4 takes 0.25 with a base of 1 000 000
    base      of the frequencies
    layout    which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.proportional(d_head, base, fraction), layout=layout)


ENTRY = Entry(
    name="proportional",
    class_name="RoPE",
    builder="proportional",
    title=Words("Proportional RoPE", "比例旋转"),
    kind="rotated",
    published="2024-10",
    formula="R(p)q, ω_i = 0 for the slowest pairs",
    also_called=(
        "proportional_rope",
        "truncated_rope",
    ),
    used_by=(Words("Gemma 4 (full-attention layers)", "Gemma 4（全局注意力层）"),),
    source="Barbero et al. 2024, arXiv 2410.06205, section 6",
    idea=Words(
        "The slowest pairs of RoPE carry content rather than position and become noise over long contexts. Here "
        "they do not turn at all, while the others keep exactly the frequencies that they have in RoPE. A quarter "
        "of the pairs turns in Gemma 4.",
        "RoPE 中最慢的通道对主要承载内容，在长上下文中反而成为噪声。这里它们完全不旋转，其余通道对的频率与 RoPE "
        "完全相同。Gemma 4 中四分之一的通道对旋转。",
    ),
    latex=r"(R(i)\, q_i) \cdot (R(j)\, k_j), \quad \omega_n = b^{-2n/d} \; (n < \lfloor f d/2 \rfloor), \quad "
    r"\omega_n = 0 \; (n \ge \lfloor f d/2 \rfloor)",
    breaks=Words(
        "The pairs that still turn meet new angles beyond the trained length.",
        "仍在旋转的通道对超过训练长度后会遇到新的角度。",
    ),
    options={
        "fraction": "旋转的通道对比例；论文中 0.75 最好，Gemma 4 取 0.25，底数 1 000 000",
    },
)
