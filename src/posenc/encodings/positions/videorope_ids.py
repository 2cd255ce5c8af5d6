"""VideoRoPE's positions: the centres of all frames lie on the diagonal on which the words lie.

    word n before      (n, n, n)
    patch (τ, y, x)    (t, t + y - H/2, t + x - W/2),   t = T + δτ,  T words before
    word n after       all three T + δF + n,            F frames

Wei et al. 2025, "VideoRoPE: What Makes for Good Video Rotary Position Embedding?", section 4, eq. 7. The authors' code
subtracts (H - 1) // 2 and (W - 1) // 2 and goes on at 1 after the last frame's t: form="code". Both are for an encoding
whose slowest pairs read time: posenc.create("videorope", d_head=…).
"""

from __future__ import annotations

from typing import Literal, get_args

import torch

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words

Form = Literal["paper", "code"]


@checked
def videorope_ids(
    text: int, height: int, width: int, *, frames: int = 1, after: int = 0, spacing: float = 2.0, form: Form = "paper"
) -> Positions:
    """Coordinates (time, height, width) of text, a video and text after it, in real numbers.

    text           words before
    height, width  patches of a frame, after merging
    frames         of the video; 1 for an image
    after          words after it
    spacing        δ, positions from frame to frame; 2 in the paper
    form           "paper", or "code" for the authors' code

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, text=text, after=after)
    checks.whole(height=height, width=width, frames=frames)
    checks.positive(spacing=spacing)
    checks.one_of(get_args(Form), form=form)
    time, row, column = (
        axis.double() for axis in torch.cartesian_prod(torch.arange(frames), torch.arange(height), torch.arange(width)).T
    )
    time = text + spacing * time
    if form == "paper":
        middle, following = (height / 2, width / 2), text + spacing * frames
    else:
        middle, following = ((height - 1) // 2, (width - 1) // 2), text + spacing * (frames - 1) + 1
    video = torch.stack([time, time + row - middle[0], time + column - middle[1]])
    before = torch.arange(text, dtype=torch.float64).expand(3, -1)
    later = (torch.arange(after, dtype=torch.float64) + following).expand(3, -1)
    return Positions.mrope(torch.cat([before, video, later], dim=1)[:, None])


ENTRY = Entry(
    name="videorope_ids",
    class_name="Positions",
    builder="videorope_ids",
    title=Words("Positions of VideoRoPE", "VideoRoPE 的位置"),
    kind="positions",
    published="2025-02",
    axes=3,
    formula="(t, t + y - H/2, t + x - W/2), t = T + δτ",
    also_called=("diagonal_layout", "adjustable_temporal_spacing", "get_t_scale_rope_index"),
    used_by=(Words("research: Qwen2-VL by its authors", "研究：作者的 Qwen2-VL"), "Ming-Omni"),
    source="Wei et al. 2025, arXiv 2502.05173, section 4, and the authors' code",
    idea=Words(
        "Each frame of a video is centred on the diagonal (t, t, t) on which the words lie, so that the text "
        "before and "
        "after a video is about equally far from all corners of a frame. A factor says how many positions lie "
        "between two frames. Words have one number three times, as with M-RoPE.",
        "视频的每一帧以文字所在的对角线 (t, t, t) 为中心，因此视频前后的文字到一帧各角的距离大致相等。"
        "一个系数规定相邻两帧之间隔多少个位置。文字的三个坐标相同，与 M-RoPE 一样。",
    ),
    latex=r"(t,\; t + y - \tfrac{H}{2},\; t + x - \tfrac{W}{2}), \quad t = T + \delta\tau",
    breaks=Words(
        "A long video uses up δ positions a frame. Coordinates of patches near a frame's edges reach beyond those "
        "of the words beside the video.",
        "长视频每帧占用 δ 个位置。靠近帧边缘的图块，其坐标会超出视频旁文字的范围。",
    ),
    differs=Words(
        "The authors' code centres by (H - 1) // 2 and (W - 1) // 2, and words go on 1 after the last frame's t "
        'instead of δ: form="code".',
        '作者代码以 (H - 1) // 2 和 (W - 1) // 2 居中，之后的文字从最后一帧的 t 加 1（而不是 δ）开始：form="code"。',
    ),
    code="Wiselnn570/VideoRoPE",
    options={
        "text": "视频之前的词数",
        "height": "每帧的图块数（高与宽），合并之后",
        "width": "每帧的图块数（高与宽），合并之后",
        "frames": "视频的帧数；图像为 1",
        "after": "视频之后的词数",
        "spacing": "δ，相邻两帧之间的位置数；论文为 2",
        "form": '"paper"（论文）或 "code"（作者代码）',
    },
)
