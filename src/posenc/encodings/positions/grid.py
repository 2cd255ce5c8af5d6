"""Patches of an image row by row: each at its row and column.

    (y, x) = (⌊n/width⌋, n mod width)

Dosovitskiy et al. 2020 (ViT) number patches in this order.
"""

from __future__ import annotations

from posenc.positions import Positions
from posenc.support.checked import checked


@checked
def grid(height: int, width: int, *, batch: int = 1, prefix: int = 0) -> Positions:
    """`Positions.grid`: coordinates (y, x) of height·width patches.

    height, width  patches of the image
    batch          rows
    prefix         tokens before the patches that are none, such as the class token: the k-th lies at (-1, k)

    Raises ValueError for sizes that are not positive.
    """
    return Positions.grid(height, width, batch=batch, prefix=prefix)
