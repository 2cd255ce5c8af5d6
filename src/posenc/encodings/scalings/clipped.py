"""Clipped RoPE: the slowest pairs fade out instead of leaving the trained range.

    ω'_i = ω_i·(1 + cos(πk/(n-1)))/2   for the slowest n pairs, k = 0 … n-1

arXiv 2602.05258, where it is named CoPE; the authors' code has n = 20. It has nothing to do with contextual positions.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def clipped(d_head: int, *, n: int = 20, base: float = 10000.0, layout: Layout = "interleaved") -> RoPE:
    """RoPE with the frequencies of `frequencies.clipped`.

    d_head  channels of a head, even
    n       the slowest pairs, which fade out; all where there are fewer
    base    of the trained frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.clipped(frequencies.rotary(d_head, base), n), layout=layout)


ENTRY = Entry(
    name="clipped",
    class_name="RoPE",
    builder="clipped",
    title=Words("Clipped RoPE", "截断 RoPE"),
    kind="scaled",
    published="2026-02",
    formula="ω' = ω·(1 + cos(πk/(n-1)))/2, slowest n pairs",
    also_called=(
        "cope_clipped",
        "clipped_rope",
    ),
    used_by=(Words("research: by its authors, up to 256k tokens", "研究：作者的实验，至 256k 词元"),),
    source="Li et al. 2026, arXiv 2602.05258, and the authors' code",
    code="hrlics/CoPE",
    idea=Words(
        "The slowest pairs never finish a turn in training, so they are what fails beyond it. Their frequencies "
        "are faded to zero along half a cosine, which avoids the ripples of a hard cut. Frequencies that finish "
        "many turns do not change.",
        "最慢的通道对在训练中从未转满一圈，超出训练长度后出错的正是它们。沿半个余弦把它们的频率减弱到零，避免了硬截"
        "断带来的波纹。转很多圈的频率不变。",
    ),
    latex=r"\omega'_{d/2-m+k} = \omega_{d/2-m+k} \cdot \frac{1 + \cos(\pi k / (m - 1))}{2}, \quad k = 0 \dots m - 1",
    breaks=Words(
        "Pairs that fade out carry no position any more, so that far distances rest on the faster ones.",
        "被淡出的通道对不再带有位置，远距离只能靠较快的通道对。",
    ),
    options={
        "n": "被淡出的最慢的通道对数；不足时为全部",
    },
)
