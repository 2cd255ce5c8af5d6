"""BEiT's bias: Swin's over the whole image, and three more numbers for the class token.

    logits += b[h, Δy, Δx],   or a number for class to patch, patch to class, class to itself

Bao et al. 2021, "BEiT: BERT Pre-Training of Image Transformers", section 2, and its code.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.window_bias import WindowBias
from posenc.support.checked import checked


@checked
def beit(n_heads: int, *, height: int = 14, width: int = 14) -> WindowBias:
    """`WindowBias` with a class token, which lies at (-1, -1) or another negative place.

    n_heads        query heads
    height, width  of the image, in patches

    Raises ValueError for sizes that are not positive.
    """
    return WindowBias(n_heads, (height, width), class_token=True)


ENTRY = Entry(
    name="beit",
    class_name="WindowBias",
    builder="beit",
    title="BEiT",
    kind="biased",
    published="2021-06",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width, prefix=1)",
    both_ways=True,
    formula="q·k + b[Δy, Δx], with a class token",
    also_called=("BeitRelativePositionBias",),
    used_by=("BEiT", "data2vec-vision", "ZoeDepth"),
)
