"""LeRoPE: RoPE whose frequencies are learned, each as a factor of its own.

    ω'_i = ω_i·exp(α_i),   α learned, 0 when fresh

Karypis et al. 2026, "LeRoPE: Learnable RoPE Frequencies Improve Language Modeling", arXiv 2607.10134: one α for each pair,
shared by all layers and heads. Mistral-Large-4 ships it. GRAPE-M's learned log-frequencies (arXiv 2512.07805) are the same
per head.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_rope import LeRoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def lerope(d_head: int, *, base: float = 10000.0, layout: Layout = "interleaved") -> LeRoPE:
    """`LeRoPE`, which takes all of RoPE's options.

    d_head  channels of a head, even
    base    of the frequencies that it starts from
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return LeRoPE(d_head, base=base, layout=layout)


ENTRY = Entry(
    name="lerope",
    class_name="LeRoPE",
    builder="lerope",
    title=Words("LeRoPE", "可学习频率"),
    kind="rotated",
    published="2026-07",
    needs=("parameters",),
    formula="R(p)q · R(p')k, ω_i·exp(α_i)",
    also_called=(
        "learned_rope",
        "learned_frequencies",
        "learnable_rope",
    ),
    used_by=("Mistral-Large-4",),
    source="Karypis et al. 2026, arXiv 2607.10134; transformers, models/mistral_large4",
    idea=Words(
        "Every frequency of RoPE is multiplied by the exponential of a learned number, which starts at 0. "
        "Training so chooses the wavelengths. What was learned can be fixed afterwards as plain numbers.",
        "RoPE 的每个频率乘以一个学到的数的指数，初始为 0。训练因此自己选择波长；学到的结果之后可以固定为普通数字。",
    ),
    latex=r"(R(i)\, q_i) \cdot (R(j)\, k_j), \quad \omega'_n = \omega_n e^{\alpha_n}",
    breaks=Words(
        "Learned wavelengths fit the trained length; beyond it slow pairs meet new angles as in RoPE.",
        "学到的波长适合训练长度；超过后，慢的通道对与 RoPE 一样遇到新的角度。",
    ),
    code="huggingface/transformers",
    options={
        "base": "初始频率的底数",
    },
)
