"""Omni-RoPE's positions: all patches of an image share one number on the first axis, and rows and columns start at 0.

    word n             (n, n, n)
    patch (τ, y, x)    (s + δτ, y, x),   s the number after the last word
    word n after       all three s + max(F, H, W) + n,   F frames of H rows and W columns

Wu et al. 2025, "OmniGen2", section 3; IL-RoPE counts in the same way and turns by posenc.create("interleaved_mrope", …),
Liao et al. 2025, "Mogao". Both as the code of Huang et al. 2025 has them (JJJYmmm/Multimodal-RoPEs,
pos_design/omnirope.py).
"""

from __future__ import annotations

import torch

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def omni_rope_ids(
    text: int, height: int, width: int, *, frames: int = 1, after: int = 0, spacing: float = 1.0
) -> Positions:
    """Coordinates (time, height, width) of text, an image or a video, and text after it, in real numbers.

    text           words before
    height, width  patches of a frame, after merging
    frames         of a video; 1 for an image
    after          words after it
    spacing        δ, numbers from frame to frame

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, text=text, after=after)
    checks.whole(height=height, width=width, frames=frames)
    checks.positive(spacing=spacing)
    patches = torch.cartesian_prod(torch.arange(frames), torch.arange(height), torch.arange(width)).T.double()
    patches[0] = text + spacing * patches[0]
    before = torch.arange(text, dtype=torch.float64).expand(3, -1)
    later = (torch.arange(after, dtype=torch.float64) + text + max(frames, height, width)).expand(3, -1)
    return Positions.mrope(torch.cat([before, patches, later], dim=1)[:, None])
