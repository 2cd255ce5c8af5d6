"""M-RoPE: time, height and width each read a band of one spectrum.

    ω_i = base^(-2i/d);   the first d/8 pairs read time, the next 3d/16 height, the last 3d/16 width

Wang et al. 2024, "Qwen2-VL", section 2.1. Text has the same number on all three axes: posenc.positions_by("mrope_ids", …).
"""

from __future__ import annotations

from collections.abc import Sequence

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def mrope(d_head: int, *, sizes: Sequence[int] | None = None, base: float = 1000000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.sections`.

    d_head  channels of a head, even
    sizes   pairs of time, height and width; (16, 24, 24) of 64 in Qwen2-VL, in this proportion unless given
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not add up to the pairs of a head.
    """
    checks.even(d_head=d_head)
    pairs = d_head // 2
    if sizes is None:
        side = max(3 * pairs // 8, 1)
        sizes = (pairs - 2 * side, side, side)
    return RoPE(d_head, frequencies=frequencies.sections(frequencies.rotary(d_head, base), sizes), layout=layout)


ENTRY = Entry(
    name="mrope",
    class_name="RoPE",
    builder="mrope",
    title=Words("M-RoPE", "多模态旋转"),
    kind="rotated",
    published="2024-09",
    axes=3,
    positions='posenc.positions_by("mrope_ids", text=length // 4, height=4, width=length // 8, after=length // 4)',
    coordinates=Words(
        "Time, row and column: a word has one number three times, an image starts after the words before it, "
        "and words go on after its largest number (paper, section 2.1, and Qwen2-VL's get_rope_index).",
        "时间、行、列：词的三个数相同，图像接在之前的词后面，之后的词从图像中最大的数继续（论文第 2.1 节与 "
        "Qwen2-VL 的 get_rope_index）。",
    ),
    formula="R(t)q, R(y)q, R(x)q on bands of one spectrum",
    also_called=(
        "multimodal_rope",
        "m_rope",
        "Qwen2VLRotaryEmbedding",
        "mrope_section",
    ),
    used_by=(
        "Qwen2-VL",
        "Qwen2.5-VL",
        "GLM-4V",
    ),
    source="Wang et al. 2024, arXiv 2409.12191, section 2.1",
    idea=Words(
        "For text, images and videos in one sequence, a token has three numbers: time, height and width. The "
        "fastest pairs turn with time, the next with height, the slowest with width. Words have the same number "
        "thrice, which is plain RoPE.",
        "在文字、图像和视频混合的序列中，每个词元有时间、高、宽三个数。最快的通道对随时间旋转，其次随高，最慢的随"
        "宽。文字的三个数相同，等于普通的 RoPE。",
    ),
    latex=r"(R(t, y, x)_i\, q_i) \cdot (R(t, y, x)_j\, k_j), \quad \omega_n = b^{-2n/d}",
    breaks=Words(
        "Time has the fastest pairs only, so that times far apart in a long video are told badly; the interleaved "
        "form mends it.",
        "时间只有最快的通道对，长视频中相隔很远的时刻难以区分；交错形式解决了这一点。",
    ),
    code="QwenLM/Qwen2-VL",
    options={
        "sizes": "时间、高、宽的通道对数；Qwen2-VL 的 64 对为 (16, 24, 24)，默认按此比例",
    },
)
