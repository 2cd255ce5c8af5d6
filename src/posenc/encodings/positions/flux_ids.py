"""FLUX's positions: text at the origin, the image at (0, row, column), reference images one step further each.

    word n             (0, 0, 0)
    patch of image     (0, y, x)
    reference k        (k, y, x),   k = 1, 2, …

FLUX.1 and, with references, FLUX.1 Kontext: Black Forest Labs 2025, "FLUX.1 Kontext", section 3, and the code of both in
diffusers (pipeline_flux.py, pipeline_flux_kontext.py). They are read by RoPE with `frequencies.separate((16, 56, 56))`,
which leaves text unturned. SD3 adds vectors to the image alone and gives text nothing: no joint positions are needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def flux_ids(text: int, height: int, width: int, *, references: Sequence[tuple[int, int]] = ()) -> Positions:
    """Coordinates (image, row, column) of text, an image and its reference images, in this order.

    text           words
    height, width  patches of the image that is made: 64 × 64 for 1024 pixels
    references     (height, width) of each image that it is made from (Kontext)

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, text=text)
    images = [Positions.grid(1, *size, start=(k, 0, 0)) for k, size in enumerate([(height, width), *references])]
    return Positions.joint([text, *images])
