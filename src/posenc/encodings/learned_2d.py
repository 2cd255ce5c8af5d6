"""A learned vector for each row and one for each column, summed.

    x_(y,x) + rows[y] + columns[x]

Lee et al. 2022, "Pix2Struct", section 2.2; Carion et al. 2020 (DETR's learned variant puts the two side by side).
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_axes import LearnedAxes
from posenc.support.checked import checked


@checked
def learned_2d(d_model: int, *, max_positions: int = 128) -> LearnedAxes:
    """`LearnedAxes` of two coordinates.

    d_model        channels
    max_positions  rows of each table: patches down and across

    Raises ValueError for sizes that are not positive.
    """
    return LearnedAxes(d_model, (max_positions, max_positions))


ENTRY = Entry(
    name="learned_2d",
    class_name="LearnedAxes",
    builder="learned_2d",
    title="Learned rows and columns",
    kind="added",
    published="2022-10",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width).shift(1)",
    both_ways=True,
    formula="x + rows[y] + columns[x]",
    also_called=("learned_axes", "row_embedder", "column_embedder", "learned_xy"),
    used_by=("Pix2Struct", "Gemma 4 (vision)"),
)
