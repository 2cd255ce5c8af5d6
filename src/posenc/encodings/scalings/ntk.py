"""NTK-aware scaling: a larger base, so that the slowest pair is interpolated and the fastest hardly changes.

    base' = base·s^(d/(d-2))

A post of its author (bloc97, June 2023); Peng et al. 2023, "YaRN", section 3.1. HunYuan calls the same number alpha.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def ntk(d_head: int, *, factor: float = 4.0, base: float = 10000.0, layout: Layout = "interleaved") -> RoPE:
    """RoPE with the frequencies of `frequencies.ntk`.

    d_head           channels of a head, even, from 4
    factor           s: how many times slower the slowest pair turns
    base             of the trained frequencies
    layout           which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.ntk(frequencies.rotary(d_head, base), factor), layout=layout)


ENTRY = Entry(
    name="ntk",
    class_name="RoPE",
    builder="ntk",
    title=Words("NTK-aware scaling", "NTK 感知缩放"),
    kind="scaled",
    published="2023-06",
    formula="base' = base·s^(d/(d-2))",
    also_called=(
        "ntk_aware",
        "ntk_alpha",
        "ntk_rope",
        "NTKScaledRotaryEmbedding",
    ),
    used_by=(
        "HunYuan",
        Words(
            "Code Llama (in spirit: a base of 1 000 000)",
            "Code Llama（思路相同：base 取 1 000 000）",
        ),
    ),
    source="bloc97 2023, a post; Peng et al. 2023, arXiv 2309.00071, section 3.1",
    idea=Words(
        "The base of the frequencies grows so that the slowest pair turns slower by the whole factor and the "
        "fastest not at all. Near tokens stay well apart, and it often works without fine-tuning. One number "
        "changes and nothing else.",
        "增大频率的底数，使最慢的通道对按整个倍数变慢，最快的几乎不变。相近的词仍然容易分辨，常常不微调也能用。只改"
        "一个数。",
    ),
    latex=r"b' = b\, s^{d/(d-2)}",
    breaks=Words(
        "The pairs in the middle still meet new angles: in our text task 4.28 bits at 4 × the trained length with "
        "no further training, where YaRN has 2.74.",
        "中间的通道对仍会遇到新的角度：在我们的文本任务上，不再训练时 4 倍训练长度处为 4.28 比特，YaRN 为 2.74。",
    ),
    options={
        "d_head": "每个头的通道数，偶数，至少 4",
        "factor": "s：最慢的通道对放慢的倍数",
    },
)
