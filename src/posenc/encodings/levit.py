"""LeViT's attention bias: Swin's with the sign of the difference forgotten.

    logits += b[h, |Δy|, |Δx|]

Graham et al. 2021, "LeViT: a Vision Transformer in ConvNet's Clothing for Faster Inference", section 4.2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.window_bias import WindowBias
from posenc.support.checked import checked


@checked
def levit(n_heads: int, *, height: int = 14, width: int = 14) -> WindowBias:
    """`WindowBias` whose numbers do not depend on the direction.

    n_heads        query heads
    height, width  of the image, in patches

    Raises ValueError for sizes that are not positive.
    """
    return WindowBias(n_heads, (height, width), symmetric=True)


ENTRY = Entry(
    name="levit",
    class_name="WindowBias",
    builder="levit",
    title="LeViT",
    kind="biased",
    published="2021-04",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    both_ways=True,
    formula="q·k + b[|Δy|, |Δx|]",
    also_called=("attention_bias", "attention_biases"),
    used_by=("LeViT", "TinyViT", "EfficientFormer"),
)
