"""DETR's positions: pixels counted from one along the real part of each image, scaled to 2π.

    y, x = count/(last count + 1e-6)·2π

Carion et al. 2020, "End-to-End Object Detection with Transformers", appendix A.4, and their code.
"""

from __future__ import annotations

import torch

from posenc.positions import Positions
from posenc.support.checked import checked


@checked
def pixels(height: int, width: int, *, batch: int = 1) -> Positions:
    """`Positions.pixels` of whole images; give that a mask where images of a batch have different sizes.

    height, width  pixels, or cells of the feature map
    batch          rows

    Raises ValueError for sizes that are not positive.
    """
    return Positions.pixels(torch.ones(batch, height, width, dtype=torch.bool))
