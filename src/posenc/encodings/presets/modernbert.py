"""ModernBERT: every third layer sees everything, with its own base.

    layers 0, 3, 6, …: ω_i = 160 000^(-2i/d)     all others: ω_i = 10 000^(-2i/d), in a window

Warner et al. 2024, "Smarter, Better, Faster, Longer", section 2.1. The window belongs to the call: attend(…, window=128).
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.combined import PerLayer
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def modernbert(
    d_head: int, n_layers: int = 22, *, base: float = 160000.0, local_base: float = 10000.0, layout: Layout = "half"
) -> PerLayer:
    """The encodings of ModernBERT's layers, for attention both ways; a layer takes its own with at_layer(n).

    d_head      channels of a head, even
    n_layers    layers of the model
    base        of the full layers
    local_base  of the layers with a window
    layout      which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    far, near = (RoPE(d_head, base=one, layout=layout) for one in (base, local_base))
    return PerLayer([far if n % 3 == 0 else near for n in range(n_layers)])


ENTRY = Entry(
    name="modernbert",
    class_name="PerLayer",
    builder="modernbert",
    title=Words("ModernBERT", "ModernBERT 的分层底数"),
    kind="preset",
    published="2024-12",
    formula="RoPE(160 000), 2 × RoPE(10 000), …",
    also_called=(
        "modern_bert",
        "global_rope_theta",
        "local_rope_theta",
    ),
    used_by=("ModernBERT",),
    source="Warner et al. 2024, arXiv 2412.13663, section 2.1",
    idea=Words(
        "An encoder of long texts: two of three layers look at 128 tokens around, with RoPE's usual base, and "
        "every third at all of them with a larger one. Windows keep most of the layers cheap. Attention goes both "
        "ways.",
        "用于长文本的编码器：三层中两层只看周围 128 个词，使用 RoPE 通常的底数；每第三层看全部，底数更大。窗口使多"
        "数层很便宜。注意力是双向的。",
    ),
    latex=r"\omega^{(l)}_n = \begin{cases} 160\,000^{-2n/d} & l \bmod 3 = 0 \\ 10\,000^{-2n/d} & l \bmod 3 > 0 "
    r"\end{cases}",
    breaks=Words(
        "It needs windows in two of three layers, and ends at the trained 8192 tokens as RoPE does.",
        "三层中有两层需要窗口；到训练过的 8192 个词为止，与 RoPE 一样。",
    ),
    code="AnswerDotAI/ModernBERT",
    options={
        "base": "看见全部的层的底数",
        "local_base": "带窗口的层的底数",
    },
)
