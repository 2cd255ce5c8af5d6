"""PaTH with a forget gate.

    k_jᵀ H_{j+1} … H_i q_i / √d + Σ_{t = j+1 … i} ln f_t

Yang et al. 2025, "PaTH Attention", section 3 (PaTH-FoX). The gates are added after the scale, as FoX does;
flash-linear-attention divides them by √d too.
"""

from __future__ import annotations

from posenc.bilingual import Words
from posenc.checked import checked
from posenc.encodings.fox import FoX
from posenc.encodings.path import PaTH
from posenc.entry import Entry
from posenc.stack import Stack


@checked
def path_fox(d_model: int, n_heads: int, d_head: int, *, n_kv_heads: int | None = None) -> Stack:
    """Stack(PaTH(…), FoX(…)): the path in the place of q·k, and the running sum of the gates.

    d_model     channels of the hidden states that go into the projections
    n_heads     query heads
    d_head      channels of a head
    n_kv_heads  key heads, each with a path of its own; None: n_heads
    """
    return Stack(PaTH(d_model, n_heads, d_head, n_kv_heads=n_kv_heads), FoX(d_model, n_heads))


ENTRY = Entry(
    name="path_fox",
    class_name="Stack",
    builder="path_fox",
    title=Words("PaTH-FoX", "带遗忘门的 PaTH"),
    kind="contextual",
    published="2025-05",
    needs=("parameters", "hidden_states", "causal"),
    per_layer=True,
    formula="kᵀ Π (I - βₜ wₜ wₜᵀ) q + Σ ln σ(w·xₜ + b)",
    also_called=("path_fox_attention", "PaTH with forget gate", "forgetting_path"),
    used_by=(Words("research: language models by its authors", "研究：作者的语言模型"),),
    source="Yang et al. 2025, arXiv 2505.16381, section 3",
    idea=Words(
        "PaTH changes what a query looks for by the content in between; a forget gate changes how much it keeps. "
        "Both together extrapolate better than PaTH alone in the authors' experiments.",
        "PaTH 按中间的内容改变查询要找什么，遗忘门改变保留多少。在作者的实验中，两者合用的外推好于单独的 PaTH。",
    ),
)
