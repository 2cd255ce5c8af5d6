"""Interleaved M-RoPE: time, height and width take pairs in turn, so that each sees fast and slow ones.

    pair 3n + 1 reads height, 3n + 2 width, while their sections last; all others read time

Bai et al. 2025, "Qwen3-VL", section 2, and its code.
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
def interleaved_mrope(
    d_head: int, *, sizes: Sequence[int] | None = None, base: float = 5000000.0, layout: Layout = "half"
) -> RoPE:
    """RoPE with the frequencies of `frequencies.interleaved_sections`.

    d_head  channels of a head, even, from 6
    sizes   pairs of time, height and width; (24, 20, 20) of 64 in Qwen3-VL, in this proportion unless given
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not add up to the pairs of a head.
    """
    checks.even(d_head=d_head)
    pairs = d_head // 2
    if sizes is None:
        side = max(5 * pairs // 16, 1)
        sizes = (pairs - 2 * side, side, side)
    spectrum = frequencies.rotary(d_head, base)
    return RoPE(d_head, frequencies=frequencies.interleaved_sections(spectrum, sizes), layout=layout)


ENTRY = Entry(
    name="interleaved_mrope",
    class_name="RoPE",
    builder="interleaved_mrope",
    title=Words("Interleaved M-RoPE", "交错多模态旋转"),
    kind="rotated",
    published="2025-11",
    axes=3,
    positions='posenc.positions_by("mrope_ids", text=length // 4, height=4, width=length // 8, after=length // 4)',
    coordinates=Words(
        "Time, row and column as in M-RoPE; every frame of a video is an image after the words that say its "
        "time (Qwen3-VL's get_rope_index).",
        "时间、行、列，与 M-RoPE 相同；视频的每一帧是一幅图像，接在表示其时间的词之后（Qwen3-VL 的 get_rope_index）。",
    ),
    formula="R(t)q, R(y)q, R(x)q on pairs in turn",
    also_called=(
        "mrope_interleaved",
        "interleaved_mrope_section",
        "Qwen3VLTextRotaryEmbedding",
    ),
    used_by=(
        "Qwen3-VL",
        "Qwen3.5",
    ),
    source="Bai et al. 2025, arXiv 2511.21631, section 2, and its code",
    idea=Words(
        "M-RoPE whose axes share all frequencies: pairs are given to time, height and width in turn. So time has "
        "slow pairs too, which long videos need, and the slowest of all belong to it. Words are the same as in "
        "RoPE.",
        "各轴共享全部频率的 M-RoPE：通道对轮流分给时间、高、宽。时间因此也有慢的通道对，长视频需要它们；最慢的几对"
        "属于时间。对词而言与 RoPE 相同。",
    ),
    latex=r"(R(t, y, x)_i\, q_i) \cdot (R(t, y, x)_j\, k_j), \quad n \bmod 3 = 1: y, \; 2: x, \; 0: t",
    breaks=Words(
        "Pairs beyond the sections read time alone; new angles appear beyond the trained length as in RoPE.",
        "分段之外的通道对只读时间；超过训练长度后与 RoPE 一样出现新的角度。",
    ),
    code="QwenLM/Qwen3-VL",
    options={
        "d_head": "每个头的通道数，偶数，至少 6",
        "sizes": "时间、高、宽的通道对数；Qwen3-VL 的 64 对为 (24, 20, 20)，默认按此比例",
    },
)
