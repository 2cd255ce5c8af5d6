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
    per_axis = frequencies.rotary(d_head // axes, base)
    return RoPE(d_head, frequencies=frequencies.axial(per_axis, tuple(range(axes))), layout=layout)


ENTRY = Entry(
    name="axial_rope",
    class_name="RoPE",
    builder="axial_rope",
    title="Axial RoPE",
    kind="rotated",
    published="2023-03",
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    both_ways=True,
    formula="R(y)q on one half, R(x)q on the other",
    also_called=(
        "rope_2d",
        "2d_rope",
        "3d_rope",
        "image_rope",
        "axial",
        "vision_rope",
        "VisionRotaryEmbedding",
        "FluxPosEmbed",
        "二维旋转",
        "三维旋转",
        "图像旋转",
    ),
    used_by=("EVA-02", "Qwen2-VL", "SAM 2", "Kimi-VL", "FLUX", "Qwen-Image", "Wan"),
)
