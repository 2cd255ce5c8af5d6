"""Axial RoPE: half of the pairs turn with the row, half with the column.

    R(y) on the first half of the pairs, R(x) on the second, both with ω_i = base^(-2i/(d/2))

Fang et al. 2023, "EVA-02", section 2.1; Qwen2-VL's vision encoder; SAM 2.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def axial_rope(d_head: int, *, axes: int = 2, base: float = 10000.0, layout: Layout = "interleaved") -> RoPE:
    """RoPE with the frequencies of `frequencies.axial`: the same for each axis, one after the other.

    d_head  channels of a head, a multiple of 2·axes
    axes    coordinates of a token: 2 for images, 3 for videos
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for a width that the axes cannot share.
    """
    if d_head % (2 * axes):
        raise ValueError(f"d_head: expected a multiple of 2·axes = {2 * axes}, got {d_head}")
    one = frequencies.rotary(d_head // axes, base)
    return RoPE(d_head, frequencies=frequencies.axial(one, tuple(range(axes))), layout=layout)


ENTRY = Entry(
    name="axial_rope",
    class_name="RoPE",
    builder="axial_rope",
    title=Words("Axial RoPE", "轴向旋转"),
    kind="rotated",
    published="2023-03",
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    coordinates=Words(
        "Rows and columns, counted from 0; the class token is not turned (EVA-02's rope.py, which multiplies "
        "those of another size by the trained grid over its own).",
        "行号与列号，从 0 开始；分类词元不旋转（EVA-02 的 rope.py；其他尺寸再乘以训练网格与自身网格之比）。",
    ),
    both_ways=True,
    formula="R(y)q on one half, R(x)q on the other",
    also_called=(
        "rope_2d",
        "2d_rope",
        "axial",
        "rope2d",
        "vision_rope",
        "VisionRotaryEmbedding",
    ),
    used_by=(
        "EVA-02",
        "Qwen2-VL",
        "SAM 2",
        "Kimi-VL",
    ),
    source="Fang et al. 2023, arXiv 2303.11331, section 2.1",
    idea=Words(
        "RoPE for images: one half of the pairs turns with the row of a patch, the other half with its column. A "
        "score then depends on the difference in rows and the difference in columns only. Both axes have the same "
        "frequencies.",
        "用于图像的 RoPE：一半通道对随图块的行旋转，另一半随列旋转。注意力分数因此只取决于行差与列差。两个轴的频率相同。",
    ),
    latex=r"(R(y_i, x_i)\, q_i) \cdot (R(y_j, x_j)\, k_j), \quad \omega_n = b^{-2n/(d/2)}",
    breaks=Words(
        "Diagonal directions are no pair's own, and larger images than those of training meet new angles.",
        "没有专门表示斜方向的通道对；比训练时大的图像会遇到新的角度。",
    ),
    code="baaivision/EVA",
    options={
        "d_head": "每个头的通道数，2·axes 的倍数",
        "axes": "每个词的坐标数：图像 2，视频 3",
    },
)
