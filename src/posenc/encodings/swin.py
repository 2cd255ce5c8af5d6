"""Swin's bias: a learned number for every head and difference of two patches in a window.

    logits += b[h, Δy, Δx]

Liu et al. 2021, "Swin Transformer", section 3.2, equation 4. Windows are documents: posenc.positions_by("windows", …).
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.window_bias import WindowBias
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def swin(n_heads: int, *, height: int = 7, width: int = 7) -> WindowBias:
    """`WindowBias` of a window.

    n_heads        query heads
    height, width  of the window, in patches

    Raises ValueError for sizes that are not positive.
    """
    return WindowBias(n_heads, (height, width))


ENTRY = Entry(
    name="swin",
    class_name="WindowBias",
    builder="swin",
    title=Words("Swin", "窗口偏置"),
    kind="biased",
    published="2021-03",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    coordinates=Words(
        "Whole rows and columns within one window, of which only differences count (Swin's "
        'swin_transformer.py); windows of a larger image are documents, which posenc.positions_by("windows", '
        "…) makes.",
        "一个窗口内的整数行号与列号，只有差起作用（Swin 的 swin_transformer.py）；更大图像的各个窗口是不同的"
        '文档，由 posenc.positions_by("windows", …) 给出。',
    ),
    both_ways=True,
    formula="q·k + b[Δy, Δx]",
    also_called=(
        "window_bias",
        "swin_transformer",
        "relative_position_bias_table",
        "relative_position_index",
    ),
    used_by=(
        "Swin",
        "Donut",
        "MaskFormer",
        "HTSAT",
    ),
    source="Liu et al. 2021, arXiv 2103.14030, section 3.2",
    idea=Words(
        "Attention stays within windows of an image, and each difference in rows and columns within a window has a "
        "learned number for each head, added to the score. Both signs of a difference have numbers of their own. "
        "Shifted windows let neighbours across a border meet.",
        "注意力限制在图像的窗口之内；窗口内每一种行差与列差在每个头上有一个学到的数，加到注意力分数上。差的两种符号"
        "各有自己的数。移动的窗口让边界两侧的图块相遇。",
    ),
    latex=r"\frac{q_i \cdot k_j}{\sqrt{d}} + b_{h, \Delta y, \Delta x}",
    breaks=Words(
        "The table belongs to one size of window; nothing is seen beyond it.",
        "表属于一种窗口尺寸；窗口之外什么也看不到。",
    ),
    code="microsoft/Swin-Transformer",
)
