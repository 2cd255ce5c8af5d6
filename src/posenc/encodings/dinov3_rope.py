"""DINOv3's 2-D RoPE: patch centres between -1 and 1, and frequencies that count turns.

    angle = 2π·c·100^(-4j/d),   c = (index + ½)/n·2 - 1 for rows, then for columns

Siméoni et al. 2025, "DINOv3", section 3.2, and their code. Positions: posenc.positions_by("patch_centres", …).
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def dinov3_rope(d_head: int, *, base: float = 100.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.axial(in_turns(rotary(d_head/2, base)))`.

    d_head  channels of a head, a multiple of 4
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    if d_head % 4:
        raise ValueError(f"d_head: expected a multiple of 4, got {d_head}")
    one = frequencies.in_turns(frequencies.rotary(d_head // 2, base))
    return RoPE(d_head, frequencies=frequencies.axial(one), layout=layout)


ENTRY = Entry(
    name="dinov3_rope",
    class_name="RoPE",
    builder="dinov3_rope",
    title=Words("RoPE of DINOv3", "DINOv3 的二维旋转"),
    kind="rotated",
    published="2025-08",
    axes=2,
    positions='posenc.positions_by("patch_centres", height=height, width=width)',
    coordinates=Words(
        "Middles of the patches from -1 to 1 along each side; class and register tokens are not turned "
        "(DINOv3's rope_position_encoding.py).",
        "图块中心，沿每条边从 -1 到 1；分类词元和寄存器词元不旋转（DINOv3 的 rope_position_encoding.py）。",
    ),
    both_ways=True,
    formula="R(2πy)q, R(2πx)q, x and y in -1 … 1",
    also_called=(
        "dinov3",
        "rope_dinov3",
        "normalised 2-D RoPE",
    ),
    used_by=(
        "DINOv3",
        "EoMT",
        "Sapiens 2",
    ),
    source="Siméoni et al. 2025, arXiv 2508.10104, section 3.2, and their code",
    idea=Words(
        "RoPE for images of any size: coordinates are the centres of the patches between -1 and 1, so that an "
        "image always spans the same angles, however many patches it has. Half of the pairs read the row and half "
        "the column. There are no parameters.",
        "用于任意大小图像的 RoPE：坐标取图块中心，范围为 -1 到 1，因此不论有多少图块，一幅图总覆盖相同的角度。一半"
        "通道对读行，一半读列。没有参数。",
    ),
    latex=r"(R(y_i, x_i)\, q_i) \cdot (R(y_j, x_j)\, k_j), \quad \mathrm{angle} = 2\pi c \cdot 100^{-4n/d}, \; c "
    r"\in (-1, 1)",
    breaks=Words(
        "The distance of two patches changes with the size of the image, so that fine detail looks closer together "
        "in larger ones.",
        "两个图块的距离随图像大小变化：图像越大，细节看起来越近。",
    ),
    differs=Words(
        "Training jitters, shifts and rescales the coordinates; that belongs to the training, not to the encoding.",
        "训练时坐标会抖动、平移和缩放；那属于训练，不属于编码。",
    ),
    code="facebookresearch/dinov3",
)
