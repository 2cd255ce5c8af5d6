"""MSRoPE: rows and columns are counted from the middle of the image; text goes on along the diagonal.

    patch of image k   (k, y - ⌈H/2⌉, x - ⌈W/2⌉)         row ⌈H/2⌉ and column ⌈W/2⌉ have number 0
    word n             (m + n, m + n, m + n),   m = the larger of ⌊H/2⌋ and ⌊W/2⌋, over all images
    with an image that is taken apart into K layers: it is image -1, and m is K at least

Wu et al. 2025, "Qwen-Image Technical Report", section 2.4, and diffusers' transformer_qwenimage.py with scale_rope, where
the last line is QwenEmbedLayer3DRope's. Text comes first in the sequence. Read by RoPE with
`frequencies.separate((16, 56, 56))`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def msrope_ids(
    text: int,
    height: int,
    width: int,
    *,
    references: Sequence[tuple[int, int]] = (),
    layered: tuple[int, int] | None = None,
) -> Positions:
    """Coordinates (image, row, column) of text, an image and its reference images, in this order.

    text           words
    height, width  patches of the image that is made: 64 × 64 for 1024 pixels
    references     (height, width) of each image that it is made from (Qwen-Image-Edit), or of each further layer
    layered        (height, width) of the image whose layers the others are (Qwen-Image-Layered); it stands last

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, text=text)
    sizes = [(height, width), *references]
    numbered = [*enumerate(sizes), *([] if layered is None else [(-1, layered)])]
    images = [Positions.grid(1, h, w, start=(k, h // 2 - h, w // 2 - w)) for k, (h, w) in numbered]
    first = max(side // 2 for _, size in numbered for side in size)
    words = torch.arange(text)[None, :, None] + (first if layered is None else max(first, len(sizes)))
    return Positions.joint([Positions.at(words.expand(1, -1, 3)), *images])
