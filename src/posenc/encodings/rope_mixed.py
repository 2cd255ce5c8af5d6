"""RoPE-Mixed: every pair of every head turns by a learned combination of the coordinates.

    angle of pair i in head h = Σ_a p_a·ω_ahi,   all ω learned

Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", section 3.2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_rope import MixedRoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def rope_mixed(
    d_head: int, n_heads: int, *, axes: int = 2, base: float = 10.0, layout: Layout = "interleaved"
) -> MixedRoPE:
    """`MixedRoPE` for images.

    d_head   channels of a head, a multiple of 4
    n_heads  heads, of queries and of keys
    axes     coordinates of a token
    base     of the frequencies that it starts from; 10 in the authors' code
    layout   which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return MixedRoPE(d_head, n_heads, axes=axes, base=base, layout=layout)


ENTRY = Entry(
    name="rope_mixed",
    class_name="MixedRoPE",
    builder="rope_mixed",
    title=Words("RoPE-Mixed", "混合轴旋转"),
    kind="rotated",
    published="2024-03",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    coordinates=Words(
        "Rows and columns, counted from 0; the class token is not turned (RoPE-ViT's init_t_xy in models_v2_rope.py).",
        "行号与列号，从 0 开始；分类词元不旋转（RoPE-ViT 的 models_v2_rope.py 中的 init_t_xy）。",
    ),
    both_ways=True,
    formula="R(Σ_a p_a ω_a)q, ω learned",
    also_called=(
        "rope_vit",
        "mixed_rope",
        "RoPEMixed",
    ),
    used_by=(Words("research: ViT and Swin by its authors", "研究：作者的 ViT 与 Swin"),),
    source="Heo et al. 2024, arXiv 2403.13298, section 3.2",
    idea=Words(
        "In an image, each pair turns by a learned mixture of row and column instead of one of them, each head in "
        "its own way. So diagonal directions can be told apart too. At the start every pair has a random direction.",
        "在图像中，每个通道对按行与列的学到的组合旋转，而不是只按其中之一，各头不同。因此斜线方向也能分辨。初始时每"
        "个通道对有一个随机方向。",
    ),
    latex=r"(R_h(i)\, q_i) \cdot (R_h(j)\, k_j), \quad \mathrm{angle}_{hn}(p) = \sum_a p_a\, \omega_{ahn}",
    breaks=Words(
        "Each head has tables of its own, and every key needs the head of its query: grouped heads do not work.",
        "每个头有自己的表，键与查询的头要一一对应：不支持分组头。",
    ),
    code="naver-ai/rope-vit",
    options={
        "n_heads": "头数，查询与键相同",
        "axes": "每个词的坐标数",
        "base": "初始频率的底数；作者代码取 10",
    },
)
