"""FLUX.2's positions: a fourth axis counts the words of the text; reference images are ten steps of time apart.

    word n             (0, 0, 0, n)
    patch of image     (0, y, x, 0)
    reference k        (10·k, y, x, 0),   k = 1, 2, …

Black Forest Labs 2025, FLUX.2, in the code of the authors and of diffusers (pipeline_flux2.py). They are read by RoPE with
`frequencies.separate((32, 32, 32, 32), 2000.0)`. FLUX.3 has the same four axes with base 10 000 (diffusers'
transformer_flux3.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def flux2_ids(
    text: int, height: int, width: int, *, references: Sequence[tuple[int, int]] = (), spacing: int = 10
) -> Positions:
    """Coordinates (time, row, column, word) of text, an image and its reference images, in this order.

    text           words
    height, width  patches of the image that is made: 64 × 64 for 1024 pixels
    references     (height, width) of each image that it is made from
    spacing        steps of time from image to image

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, text=text)
    checks.whole(spacing=spacing)
    words = [Positions.grid(1, 1, 1, text)] if text else []
    images = [
        Positions.grid(1, *size, 1, start=(k * spacing, 0, 0, 0)) for k, size in enumerate([(height, width), *references])
    ]
    return Positions.joint([*words, *images])
