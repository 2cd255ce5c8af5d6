"""M-RoPE's positions: words have one number thrice, patches of an image their time, row and column.

    text   t = y = x = n                image   (start + frame, start + row, start + column)
    what follows an image starts one after the largest number in it

Wang et al. 2024, "Qwen2-VL", section 2.1, and the authors' code. transformers 5 goes on after max(height, width) instead,
which is the same unless there are more frames than rows and columns.
"""

from __future__ import annotations

import torch

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def mrope_ids(text: int, height: int, width: int, *, frames: int = 1, after: int = 0) -> Positions:
    """Coordinates (time, height, width) of text, an image or a video, and text after it.

    text           words before
    height, width  patches of the image, after merging
    frames         of a video; 1 for an image
    after          words after it

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, text=text, after=after)
    checks.whole(frames=frames)
    before = torch.arange(text).expand(3, -1)
    image = torch.cartesian_prod(torch.arange(frames), torch.arange(height), torch.arange(width)).T + text
    later = (torch.arange(after) + text + max(frames, height, width)).expand(3, -1)
    return Positions.mrope(torch.cat([before, image, later], dim=1)[:, None])


ENTRY = Entry(
    name="mrope_ids",
    class_name="Positions",
    builder="mrope_ids",
    title=Words("Positions of M-RoPE", "M-RoPE 的位置"),
    kind="positions",
    published="2024-09",
    axes=3,
    formula="(n, n, n) for words, (t, y, x) for patches",
    also_called=(
        "get_rope_index",
        "mrope_position_ids",
        "qwen2_vl_positions",
    ),
    used_by=(
        "Qwen2-VL",
        "Qwen2.5-VL",
        "GLM-4V",
    ),
    source="Wang et al. 2024, arXiv 2409.12191, section 2.1, and the authors' code",
    idea=Words(
        "In a sequence of words and images, a word counts up on all three axes at once, and a patch has the time "
        "of its frame, its row and its column from where the image starts. Images so use up few positions. M-RoPE "
        "reads all three.",
        "在文字与图像混合的序列中，文字的三个坐标同时加一；图块的坐标是所在帧的时间、行和列，从图像开始处算起。图像"
        "因此只占用很少的位置。M-RoPE 读取这三个数。",
    ),
    latex=r"\mathrm{text}: (n, n, n), \quad \mathrm{patch}: (s + t,\; s + y,\; s + x)",
    breaks=Words(
        "Text after a large image starts late or early, depending on the code: see what differs.",
        "大图像之后的文本从哪里开始编号，各实现不同，见差异。",
    ),
    differs=Words(
        "Text goes on after the largest number of the image, as in the paper; transformers 5 goes on after "
        "max(height, width).",
        "文本从图像中最大的编号之后继续，与论文一致；transformers 5 从 max(高, 宽) 之后继续。",
    ),
    code="QwenLM/Qwen2-VL",
    options={
        "height": "图像合并后的图块数（高与宽）",
        "width": "图像合并后的图块数（高与宽）",
        "text": "图像之前的词数",
        "frames": "视频的帧数；图像为 1",
        "after": "图像之后的词数",
    },
)
