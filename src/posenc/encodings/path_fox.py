"""PaTH with a forget gate.

    k_jᵀ H_{j+1} … H_i q_i / √d + Σ_{t = j+1 … i} ln f_t

Yang et al. 2025, "PaTH Attention", section 2 (PaTH-FoX). The gates are added after the scale, as FoX does;
flash-linear-attention divides them by √d too.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.combined import Stack
from posenc.encodings.fox import FoX
from posenc.encodings.path import PaTH
from posenc.support.checked import checked
from posenc.support.languages import Words


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
    source="Yang et al. 2025, arXiv 2505.16381, section 2",
    idea=Words(
        "PaTH changes what a query looks for by the content in between; a forget gate changes how much it keeps. "
        "Both together extrapolate better than PaTH alone in the authors' experiments. It is the sum of two "
        "entries of this catalogue.",
        "PaTH 按中间的内容改变查询要找什么，遗忘门改变保留多少。在作者的实验中，两者合用的外推好于单独的 "
        "PaTH。它是本目录两个条目之和。",
    ),
    latex=r"\frac{k_j^\top H_{j+1} \cdots H_i\, q_i}{\sqrt{d}} + \sum_{t=j+1}^{i} \ln f_t",
    breaks=Words(
        "As slow as PaTH, only causal, and what is forgotten is gone.",
        "与 PaTH 一样慢，只适用于因果注意力，忘掉的内容无法取回。",
    ),
    differs=Words(
        "The gates are added after the scale; flash-linear-attention divides them by √d too.",
        "门在缩放之后相加；flash-linear-attention 把它们也除以 √d。",
    ),
    code="fla-org/flash-linear-attention",
    options={
        "n_kv_heads": "键头数，各有自己的路径；None 为 n_heads",
    },
)
