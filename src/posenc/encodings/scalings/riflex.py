"""RIFLEx: videos longer than those of training, without repetition, by slowing down one pair of channels.

    ω'_k = 2π/L,   k the pair of the time axis whose period is nearest to where the video begins to repeat; others unchanged

Zhao et al. 2025, "RIFLEx: A Free Lunch for Length Extrapolation in Video Diffusion Transformers", section 4, equation 8.
The authors' code multiplies with 0.9: margin=0.9.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def riflex(
    d_head: int,
    *,
    length: int = 66,
    repeats: int = 50,
    margin: float = 1.0,
    base: float = 256.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE of a time axis with the frequencies of `frequencies.riflex`; the numbers are HunyuanVideo's, twice as long.

    d_head   channels of a head, even
    length   latent frames that are wanted
    repeats  the latent frame at which the model begins to repeat itself
    margin   1 in the paper, 0.9 in the authors' code
    base     of the trained frequencies
    layout   which channels make a pair

    Videos have two more axes, whose pairs stay as they are: RoPE(128, frequencies=frequencies.riflex(frequencies.separate(
    (16, 56, 56), 256.0), 66, repeats=50)) is HunyuanVideo's. Raises ValueError where the pair turns slower already.
    """
    return RoPE(
        d_head,
        frequencies=frequencies.riflex(frequencies.rotary(d_head, base), length, repeats=repeats, margin=margin),
        layout=layout,
    )


ENTRY = Entry(
    name="riflex",
    class_name="RoPE",
    builder="riflex",
    title=Words("RIFLEx", "RIFLEx 视频外推"),
    kind="scaled",
    published="2025-02",
    formula="ω' = 2π/L for one pair of the time axis",
    also_called=("riflex_rope", "intrinsic_frequency", "get_1d_rotary_pos_embed_riflex"),
    example="""\
video = posenc.frequencies.separate((16, 56, 56), 256.0)
longer = posenc.frequencies.riflex(video, 66, repeats=50)
video_encoding = posenc.create("rope", d_head=128, frequencies=longer)
frames = torch.stack(torch.meshgrid(*map(torch.arange, (4, 2, 2)), indexing="ij"), dim=-1).reshape(1, 16, 3)
turned = video_encoding.rotate(torch.randn(batch, n_heads, 16, 128), posenc.Positions.at(frames), "query")
""",
    used_by=("HunyuanVideo", "CogVideoX", "Wan", Words("video models beyond their length", "超出训练长度的视频模型")),
    source="Zhao et al. 2025, arXiv 2502.15894, section 4, equation 8",
    idea=Words(
        "A video model repeats itself after the period of one pair of channels of the time axis. That pair alone is slowed "
        "down so that it turns less than once in the longer video. Nothing is trained.",
        "视频模型在时间轴上某一个通道对的周期之后开始重复。只把这一对放慢，使它在更长的视频里转不满一圈，不需要训练。",
    ),
    latex=r"\omega'_k = \frac{2\pi}{L}, \quad k = \arg\min_n \left| \frac{2\pi}{\omega_n} - N \right|",
    domains=("image",),
    breaks=Words(
        "Motion slows down when videos become much longer: about twice the length without training.",
        "视频加长很多时动作会变慢：不训练时约两倍长度。",
    ),
    differs=Words(
        "The pair is set to one whole turn as in the paper; the authors' code takes 0.9 of a turn (`margin=0.9`).",
        "该通道对按论文正好转一圈；作者代码取 0.9 圈（`margin=0.9`）。",
    ),
    code="thu-ml/RIFLEx",
    options={
        "length": "想要的潜在帧数",
        "repeats": "模型开始重复的潜在帧",
        "margin": "论文为 1，作者代码为 0.9",
    },
)
