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

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked

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
