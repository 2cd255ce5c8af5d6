"""BEiT's bias: Swin's over the whole image, and three more numbers for the class token.

    logits += b[h, Δy, Δx],   or a number for class to patch, patch to class, class to itself

Bao et al. 2021, "BEiT: BERT Pre-Training of Image Transformers", section 2, and its code.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.window_bias import WindowBias
from posenc.support.checked import checked
from posenc.support.languages import Words


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
    title=Words("BEiT", "BEiT 偏置"),
    kind="biased",
    published="2021-06",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width, prefix=1)",
    coordinates=Words(
        "Whole rows and columns, of which only differences count; the class token, at a negative row, has "
        "numbers of its own (BEiT's modeling_finetune.py).",
        "整数行号与列号，只有差起作用；位于负行的分类词元有自己的数（BEiT 的 modeling_finetune.py）。",
    ),
    both_ways=True,
    formula="q·k + b[Δy, Δx], with a class token",
    also_called=("BeitRelativePositionBias",),
    used_by=(
        "BEiT",
        "data2vec-vision",
        "ZoeDepth",
    ),
    source="Bao et al. 2021, arXiv 2106.08254, section 2, and its code",
    idea=Words(
        "A learned number for every head and every difference of two patches of the whole image. The class token "
        "has numbers of its own: as query, as key and with itself. It sees the whole image instead of windows.",
        "整幅图像中任意两个图块的行差与列差，在每个头上有一个学到的数。分类词元另有三个数：作为查询、作为键、与自身"
        "。它看到整幅图像，而不是窗口。",
    ),
    latex=r"\frac{q_i \cdot k_j}{\sqrt{d}} + b_{h, \Delta y, \Delta x}",
    breaks=Words(
        "The table belongs to one size of image.",
        "表属于一种图像尺寸。",
    ),
    code="microsoft/unilm",
)
