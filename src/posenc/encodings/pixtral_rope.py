"""Pixtral's 2-D RoPE: rows take every second frequency, columns the others.

    ω_i = base^(-2i/d);   R(y) on ω_0, ω_2, ω_4, …,   R(x) on ω_1, ω_3, ω_5, …

Agrawal et al. 2024, "Pixtral 12B", section 2.2.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def pixtral_rope(d_head: int, *, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.strided`: one spectrum dealt out to rows and columns.

    d_head  channels of a head, a multiple of 4
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.strided(frequencies.rotary(d_head, base)), layout=layout)


ENTRY = Entry(
    name="pixtral_rope",
    class_name="RoPE",
    builder="pixtral_rope",
    title=Words("RoPE of Pixtral", "Pixtral 的二维旋转"),
    kind="rotated",
    published="2024-10",
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    coordinates=Words(
        "Rows and columns, counted from 0 in each image (precompute_freqs_cis_2d of mistral-inference).",
        "行号与列号，每幅图像从 0 开始（mistral-inference 的 precompute_freqs_cis_2d）。",
    ),
    both_ways=True,
    formula="R(y)q at ω_0, ω_2, …, R(x)q at ω_1, ω_3, …",
    also_called=(
        "rope-2d strided",
        "pixtral",
        "strided_rope",
    ),
    used_by=(
        "Pixtral",
        "Mistral Small 3.1",
    ),
    source="Agrawal et al. 2024, arXiv 2410.07073, section 2.2",
    idea=Words(
        "RoPE for images in which rows and columns share one spectrum: rows turn the even frequencies, columns the "
        "odd ones. Unlike in axial RoPE, their frequencies differ. Images of any size and ratio go in as they are.",
        "用于图像的 RoPE：行与列分享同一组频率，行用第偶数个，列用第奇数个。与轴向旋转不同，两个轴的频率不一样。任"
        "意尺寸和比例的图像可直接输入。",
    ),
    latex=r"(R(y_i, x_i)\, q_i) \cdot (R(y_j, x_j)\, k_j), \quad \omega^y_n = b^{-4n/d}, \; \omega^x_n = b^{-(4n+2)/d}",
    breaks=Words(
        "Rows and columns are told with different precision, since their frequencies differ.",
        "行列的频率不同，分辨的精细程度也不同。",
    ),
    code="mistralai/mistral-inference",
)
