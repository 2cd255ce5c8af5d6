"""M-RoPE's positions: words have one number thrice, patches of an image their time, row and column.

    text   t = y = x = n                image   (start + frame, start + row, start + column)
    what follows an image starts one after the largest number in it

Wang et al. 2024, "Qwen2-VL", section 2.1, and the authors' code. transformers 5 goes on after max(height, width) instead,
which is the same unless there are more frames than rows and columns.
"""

from __future__ import annotations

import torch

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


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
