"""Resonance RoPE: every wavelength is rounded to a whole number of positions.

    ω' = 2π/round(2π/ω)

Wang et al. 2024, "Resonance RoPE: Improving Context Length Generalization of Large Language Models".
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def resonance(d_head: int, *, base: float = 10000.0, layout: Layout = "interleaved") -> RoPE:
    """RoPE with the frequencies of `frequencies.resonance`, which also goes on top of another scaling.

    d_head  channels of a head, even
    base    of the frequencies before rounding
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.resonance(frequencies.rotary(d_head, base)), layout=layout)


ENTRY = Entry(
    name="resonance",
    class_name="RoPE",
    builder="resonance",
    title=Words("Resonance RoPE", "共振 RoPE"),
    kind="scaled",
    published="2024-03",
    formula="ω' = 2π/round(2π/ω)",
    also_called=(
        "resonance_rope",
        "resonance_yarn",
    ),
    used_by=(Words("research: LLaMA 2 by its authors", "研究：作者的 LLaMA 2 实验"),),
    example="""\
yarn = posenc.create("yarn", d_head=64).frequencies
encoding = posenc.create("rope", d_head=64, frequencies=posenc.frequencies.resonance(yarn))
at = encoding.prepare(posenc.Positions.arange(batch, length))
out = posenc.attend(q, k, v, encoding, at)
""",
    source="Wang et al. 2024, arXiv 2403.00071",
    idea=Words(
        "Wavelengths become whole numbers of positions. Fast pairs then repeat exactly, so that every angle beyond "
        "the trained length was seen in training. It is usually combined with YaRN.",
        "把波长取整为整数个位置。快的通道对因此严格周期重复，超过训练长度后的每个角度都在训练中出现过。通常与 YaRN "
        "一起使用。",
    ),
    latex=r"\omega' = \frac{2\pi}{\mathrm{round}(2\pi / \omega)}",
    breaks=Words(
        "Only pairs that repeat within the trained length gain by it; slow pairs need another scaling on top.",
        "只有在训练长度内重复的通道对受益；慢的通道对还需要别的缩放。",
    ),
    code="sheryc/resonance_rope",
    options={
        "base": "取整前频率的底数",
    },
)
