"""VRoPE's positions: every patch is counted from the four corners of its frame, words go on by one.

    word n before      (n, n, n, n)
    patch (τ, y, x)    t + (y + x, y + x', y' + x, y' + x'),   y' = H - 1 - y, x' = W - 1 - x, t = T + (H + W - 1)τ
    word n after       all four T + (H + W - 1)F + n,           T words before, F frames

Liu et al. 2025, "VRoPE: Rotary Position Embedding for Video Large Language Models", and the authors' code (vrope.py). The
middle of a frame has four equal numbers, as words have. Read by posenc.create("vrope", d_head=…).
"""

from __future__ import annotations

import torch

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def vrope_ids(text: int, height: int, width: int, *, frames: int = 1, after: int = 0) -> Positions:
    """Four coordinates of text, a video and text after it, in whole numbers.

    text           words before
    height, width  patches of a frame, after merging
    frames         of the video; 1 for an image
    after          words after it

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, text=text, after=after)
    checks.whole(height=height, width=width, frames=frames)
    used = height + width - 1
    time, row, column = torch.cartesian_prod(torch.arange(frames), torch.arange(height), torch.arange(width)).T
    sums = [y + x for y in (row, height - 1 - row) for x in (column, width - 1 - column)]
    before, later = torch.arange(text).expand(4, -1), torch.arange(after).expand(4, -1)
    return Positions.mrope(
        torch.cat([before, torch.stack(sums) + text + used * time, later + text + used * frames], dim=1)[:, None]
    )
