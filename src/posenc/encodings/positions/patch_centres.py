"""Patch centres at real coordinates: an image spans the same range whatever its size.

    c = low + (index + ½)·(high - low)/n

Siméoni et al. 2025, "DINOv3", section 3.2, and their code (from -1 to 1); Kirillov et al. 2023 (SAM) from 0 to 1.
"""

from __future__ import annotations

from posenc.encodings.bases.fourier import spread
from posenc.positions import Positions
from posenc.support.checked import checked


@checked
def patch_centres(height: int, width: int, *, low: float = -1.0, high: float = 1.0) -> Positions:
    """`encodings.fourier.spread`: coordinates (y, x) of height·width patches in fp64.

    height, width  patches of the image
    low, high      the ends of the range

    Raises ValueError for sizes that are not positive, and where low is not below high.
    """
    if low >= high:
        raise ValueError(f"low: expected less than high={high:g}, got {low:g}")
    return spread(height, width, low, high, corners=False)
