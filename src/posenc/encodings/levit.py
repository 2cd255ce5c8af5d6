"""LeViT's attention bias: Swin's with the sign of the difference forgotten.

    logits += b[h, |Δy|, |Δx|]

Graham et al. 2021, "LeViT: a Vision Transformer in ConvNet's Clothing for Faster Inference", section 4.2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.window_bias import WindowBias
from posenc.support.checked import checked
from posenc.support.languages import Words


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
    title=Words("LeViT", "LeViT 偏置"),
    kind="biased",
    published="2021-04",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    coordinates=Words(
        "Whole rows and columns, of which only the sizes of differences count (LeViT's levit.py).",
        "整数行号与列号，只有差的大小起作用（LeViT 的 levit.py）。",
    ),
    both_ways=True,
    formula="q·k + b[|Δy|, |Δx|]",
    also_called=(
        "attention_bias",
        "attention_biases",
    ),
    used_by=(
        "LeViT",
        "TinyViT",
        "EfficientFormer",
    ),
    source="Graham et al. 2021, arXiv 2104.01136, section 4.2",
    idea=Words(
        "A learned number for every head and every pair of absolute differences in rows and columns. Left and "
        "right, above and below count as the same, which needs a quarter of Swin's numbers. It was made for fast "
        "models.",
        "每个头对每一组行差、列差的绝对值有一个学到的数。左右、上下视为相同，所需的数约为 Swin "
        "的四分之一。它为快速模型设计。",
    ),
    latex=r"\frac{q_i \cdot k_j}{\sqrt{d}} + b_{h, |\Delta y|, |\Delta x|}",
    breaks=Words(
        "The table belongs to one size of image, and directions cannot be told apart.",
        "表属于一种图像尺寸，且无法区分方向。",
    ),
    code="facebookresearch/LeViT",
)
