"""Circle-RoPE's positions: the patches of an image lie on a circle around the line of the words.

    word n before    (n, n, n)
    patch (y, x)     s + R·(2 sin θ/√6, cos θ/√2 - sin θ/√6, -cos θ/√2 - sin θ/√6),   s words before
    θ = α·2π(φ - φ_min)/(φ_max - φ_min) + (1 - α)·2π(yW + x)/HW,   φ = atan2(y - (H-1)/2, x - (W-1)/2)
    word n after     all three 1 + n after the largest number of the image

Wang et al. 2025, "Circle-RoPE: Cone-like Decoupled Rotary Positional Embedding for Large Vision-Language Models", and the
code of Multimodal-RoPEs (pos_design/circlerope.py), which follows the authors'. Coordinates are (time, height, width), as
M-RoPE reads them. The paper gives every second layer M-RoPE's own positions: "mrope_ids".
"""

from __future__ import annotations

import math

import torch

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def circle_rope_ids(
    text: int, height: int, width: int, *, after: int = 0, radius: float = 10.0, direction: float = 0.5
) -> Positions:
    """Coordinates (time, height, width) of text, an image and text after it, in real numbers.

    text           words before
    height, width  patches of the image, after merging
    after          words after it
    radius         R, of the circle
    direction      α from 0 to 1: how much a patch's angle follows its direction from the middle, instead of its number

    Raises ValueError for sizes that are not positive, and a direction out of range.
    """
    checks.whole(0, text=text, after=after)
    checks.whole(height=height, width=width)
    checks.positive(radius=radius)
    if not 0 <= direction <= 1:
        raise ValueError(f"direction: expected a number from 0 to 1, got {direction}")
    row, column = torch.cartesian_prod(torch.arange(height), torch.arange(width)).double().T
    ray = torch.atan2(row - (height - 1) / 2, column - (width - 1) / 2)
    spread = ray.max() - ray.min()
    if spread > 0:
        ray = (ray - ray.min()) / spread * 2 * math.pi
    number = (row * width + column) / (height * width) * 2 * math.pi
    theta = direction * ray + (1 - direction) * number
    along, across = radius * theta.cos() / math.sqrt(2), radius * theta.sin() / math.sqrt(6)
    image = torch.stack([2 * across, along - across, -along - across]) + text
    before = torch.arange(text, dtype=torch.float64).expand(3, -1)
    later = (torch.arange(after, dtype=torch.float64) + image.max() + 1).expand(3, -1)
    return Positions.mrope(torch.cat([before, image, later], dim=1)[:, None])
