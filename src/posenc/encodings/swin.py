"""Swin's bias: a learned number for every head and difference of two patches in a window.

    logits += b[h, Δy, Δx]

Liu et al. 2021, "Swin Transformer", section 3.2, equation 4. Windows are documents: posenc.positions_by("windows", …).
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.window_bias import WindowBias
from posenc.support.checked import checked


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
    title="Swin",
    kind="biased",
    published="2021-03",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    both_ways=True,
    formula="q·k + b[Δy, Δx]",
    also_called=("window_bias", "swin_transformer", "relative_position_bias_table", "relative_position_index"),
    used_by=("Swin", "Donut", "MaskFormer", "HTSAT"),
)
