"""RIFLEx: videos longer than those of training, without repetition, by slowing down one pair of channels.

    ω'_k = 2π/L,   k the pair of the time axis whose period is nearest to where the video begins to repeat; others unchanged

Zhao et al. 2025, "RIFLEx: A Free Lunch for Length Extrapolation in Video Diffusion Transformers", section 4, equation 8.
The authors' code multiplies with 0.9: margin=0.9.
"""

from __future__ import annotations

from posenc import checks, frequencies
from posenc.bilingual import Words
from posenc.checked import checked
from posenc.encodings.rope import RoPE
from posenc.entry import Entry
from posenc.layouts import Layout


@checked
def riflex(
    d_head: int,
    *,
    length: int = 66,
    repeats: int = 50,
    time: int | None = None,
    margin: float = 1.0,
    base: float = 256.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE of (time, height, width) with the frequencies of `frequencies.riflex`; HunyuanVideo's by default, twice as long.

    d_head   channels of a head
    length   latent frames that are wanted
    repeats  the latent frame at which the model begins to repeat itself
    time     channels that turn with time; height and width share the rest evenly. about d_head/8 if left out: 16 of 128
    margin   1 in the paper, 0.9 in the authors' code
    base     of all three axes
    layout   which channels make a pair

    Raises ValueError for channels that cannot be shared so.
    """
    checks.even(d_head=d_head)
    eighth = max(d_head // 8 // 2 * 2, 2)
    first = eighth + (d_head - eighth) % 4 if time is None else time
    checks.even(time=first)
    if d_head - first < 4 or (d_head - first) % 4:
        raise ValueError(f"time: expected a number that leaves a multiple of 4 of d_head={d_head} channels, got {first}")
    trained = frequencies.separate((first, (d_head - first) // 2, (d_head - first) // 2), base)
    return RoPE(d_head, frequencies=frequencies.riflex(trained, length, repeats=repeats, margin=margin), layout=layout)


ENTRY = Entry(
    name="riflex",
    class_name="RoPE",
    builder="riflex",
    title=Words("RIFLEx", "RIFLEx 视频外推"),
    kind="scaled",
    published="2025-02",
    axes=3,
    formula="ω' = 2π/L for one pair of the time axis",
    also_called=("riflex_rope", "intrinsic_frequency", "get_1d_rotary_pos_embed_riflex"),
    used_by=("HunyuanVideo", "CogVideoX", "Wan", Words("video models beyond their length", "超出训练长度的视频模型")),
    source="Zhao et al. 2025, arXiv 2502.15894, section 4, equation 8",
    idea=Words(
        "A video model repeats itself after the period of one pair of channels of the time axis. That pair alone is slowed "
        "down so that it turns less than once in the longer video. Nothing is trained.",
        "视频模型在时间轴上某一个通道对的周期之后开始重复。只把这一对放慢，使它在更长的视频里转不满一圈，不需要训练。",
    ),
)
