"""RoVE: values turn as well, and the output turns back by the position of the query.

    o_i = R(i)ᵀ Σ_j a_ij R(j) v_j

Su 2025, a post (kexue.fm 10862), where it is VO-RoPE; others call it RoVE. Shipped in DeepSeek-V4, whose keys are its
values.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def rove(d_head: int, *, base: float = 10000.0, layout: Layout = "interleaved") -> RoPE:
    """RoPE with sides ("query", "key", "value", "output").

    d_head  channels of a head, even
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, base=base, layout=layout, sides=("query", "key", "value", "output"))


ENTRY = Entry(
    name="rove",
    class_name="RoPE",
    builder="rove",
    title=Words("RoVE", "旋转值"),
    kind="rotated",
    published="2025-04",
    formula="R(p)ᵀ Σ a R(p')v, with RoPE",
    also_called=(
        "vo_rope",
        "rotary_value_embedding",
        "rotated values",
        "rotary_value",
    ),
    used_by=("DeepSeek-V4",),
    source="Su 2025, a post (kexue.fm 10862); transformers, models/deepseek_v4",
    idea=Words(
        "RoPE in which values are rotated by their position and the output is rotated back by that of the query. "
        "What a token contributes then depends on how far away it is, not only how much. Queries and keys turn as "
        "in RoPE.",
        "在 RoPE 的基础上，值也按位置旋转，输出再按查询的位置转回来。一个词的贡献因此不仅在大小上、也在内容上取决于"
        "距离。查询和键照 RoPE 旋转。",
    ),
    latex=r"o_i = R(i)^\top \sum_j \alpha_{ij}\, R(j)\, v_j, \quad \alpha = \mathrm{softmax}\big((R(i)\, q_i) "
    r"\cdot (R(j)\, k_j)\big)",
    breaks=Words(
        "Scores break where RoPE's do, and so do values; values and the output must be turned as well.",
        "分数与 RoPE 在同样的地方失效，值也一样；值和输出还需要旋转。",
    ),
    code="huggingface/transformers",
)
