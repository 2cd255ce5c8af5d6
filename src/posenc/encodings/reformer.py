"""Reformer's axial table: a position is split into two digits, each with a short learned vector.

    x_p + [rows[⌊p/W⌋] | columns[p mod W]]

Kitaev et al. 2020, "Reformer: The Efficient Transformer", and their code (AxialPositionalEncoding of trax).
"""

from __future__ import annotations

import math

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_axes import LearnedAxes
from posenc.support import checks
from posenc.support.checked import checked


@checked
def reformer(d_model: int, *, max_positions: int = 2048) -> LearnedAxes:
    """`LearnedAxes` of one coordinate that is counted row by row through a box of max_positions places.

    d_model        channels, an even number: half for each digit
    max_positions  rows of the box times columns: W is the largest divisor up to its square root

    Raises ValueError for an odd width.
    """
    checks.even(d_model=d_model)
    rows = max(n for n in range(1, math.isqrt(max_positions) + 1) if max_positions % n == 0)
    return LearnedAxes(d_model, (rows, max_positions // rows), combine="concat", folded=True)


ENTRY = Entry(
    name="reformer",
    class_name="LearnedAxes",
    builder="reformer",
    title="Axial table of Reformer",
    kind="added",
    published="2020-01",
    needs=("parameters",),
    formula="x + [rows[p div W] | columns[p mod W]]",
    also_called=("axial_positional_embedding", "axial_pos_embds", "AxialPositionEmbeddings"),
    used_by=("Reformer",),
)
