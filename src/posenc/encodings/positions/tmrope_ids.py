"""TMRoPE's positions: time is counted in real time, so that sound and picture of one moment have the same number.

    word n             (n, n, n)
    audio frame s      all three T + s, one for every 40 ms
    patch (τ, y, x)    (T + ⌊25 · seconds of frame τ⌋, T + y, T + x)

Xu et al. 2025, "Qwen2.5-Omni Technical Report", section 2.2, with the order of transformers' code: every two seconds, the
patches of that time come first, then its sound. What follows starts one after the largest number so far. The start and end
tokens of picture and sound share one number in the code (`marks`). Where frames lie more than two seconds apart, that code
puts sound later than here, since it closes one interval for each frame.
"""

from __future__ import annotations

import math

import torch

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def tmrope_ids(
    text: int,
    height: int,
    width: int,
    *,
    frames: int = 1,
    seconds: float = 1.0,
    audio: int = 0,
    after: int = 0,
    marks: int = 0,
    rate: int = 25,
    interval: float = 2.0,
) -> Positions:
    """Coordinates (time, height, width) of text, a video with its sound, and text after it.

    text           words before
    height, width  patches of a frame, after merging
    frames         of the video, after merging
    seconds        from one frame to the next
    audio          audio frames, one for every 1/rate seconds
    after          words after it
    marks          tokens that share one number before the video, and as many after it; 2 with sound in Qwen2.5-Omni
    rate           positions of a second
    interval       seconds after which patches and sound take turns

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, text=text, after=after, audio=audio, marks=marks)
    checks.whole(height=height, width=width, frames=frames, rate=rate)
    checks.positive(seconds=seconds, interval=interval)
    first = text + (1 if marks else 0)
    at = torch.tensor([math.floor(round(frame * seconds * rate, 9)) for frame in range(frames)])
    video = torch.cartesian_prod(at, torch.arange(height), torch.arange(width)).T
    sound = torch.arange(audio).expand(3, -1)
    both = torch.cat([video, sound], dim=1)
    turn = both[0].double().div(rate * float(interval)).floor() * 2
    turn[video.shape[1] :] += 1
    content = both[:, turn.argsort(stable=True)] + first
    following = int(content.max()) + 1
    parts = [torch.arange(text).expand(3, -1), torch.full((3, marks), text), content, torch.full((3, marks), following)]
    parts.append((torch.arange(after) + following + (1 if marks else 0)).expand(3, -1))
    return Positions.mrope(torch.cat(parts, dim=1)[:, None])


ENTRY = Entry(
    name="tmrope_ids",
    class_name="Positions",
    builder="tmrope_ids",
    title=Words("Positions of TMRoPE", "TMRoPE 的位置"),
    kind="positions",
    published="2025-03",
    axes=3,
    formula="(⌊25·seconds⌋, y, x) for patches, 25 a second for sound",
    also_called=("time_aligned_multimodal_rope", "position_id_per_seconds", "qwen2_5_omni_positions"),
    used_by=("Qwen2.5-Omni",),
    source="Xu et al. 2025, arXiv 2503.20215, section 2.2, and transformers' code",
    idea=Words(
        "In a video with sound, picture and sound of one moment get the same time, counted in steps of 40 ms "
        "whatever the "
        "frame rate is. Every two seconds, the patches of that time come first, then its sound. "
        "M-RoPE turns the three numbers into angles.",
        "在有声视频中，同一时刻的画面与声音得到相同的时间编号，每 40 毫秒一步，与帧率无关。"
        "每两秒先排该段的图块，再排它的声音。三个坐标由 M-RoPE 变成角度。",
    ),
    latex=(
        r"(T + \lfloor 25 \cdot s_\tau \rfloor,\; T + y,\; T + x) \text{ for patches}, \quad (T + n,\; T + n,\; T + "
        r"n) \text{ for sound}"
    ),
    breaks=Words(
        "Positions count real time, 25 a second: an hour of video takes 90,000 of them. Frames closer than 40 ms "
        "may share a number.",
        "位置按真实时间计数，每秒 25 个：一小时视频占用 90,000 个位置。间隔小于 40 毫秒的帧可能编号相同。",
    ),
    differs=Words(
        "The report gives no formula for the start and end tokens; `marks` follows transformers. Where frames lie "
        "more than two seconds apart, that code puts sound later than here.",
        "报告没有给出起止词元的公式；marks 按 transformers 的代码。相邻帧超过两秒时，该代码把声音排得比这里晚。",
    ),
    options={
        "text": "视频之前的词数",
        "height": "每帧的图块数（高与宽），合并之后",
        "width": "每帧的图块数（高与宽），合并之后",
        "frames": "视频的帧数，合并之后",
        "seconds": "相邻两帧的时间间隔（秒）",
        "audio": "音频帧数，每 1/rate 秒一帧",
        "after": "视频之后的词数",
        "marks": "视频之前共用一个编号的词元数，之后同样多；Qwen2.5-Omni 有声时为 2",
        "rate": "每秒的位置数",
        "interval": "图块与声音轮换的秒数",
    },
)
