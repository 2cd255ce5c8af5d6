"""Documents packed into one row: each counts from 0 and sees itself only.

    p = index in its document

Krell et al. 2021, "Efficient Sequence Packing without Cross-contamination", section 3.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def packed(lengths: Sequence[int]) -> Positions:
    """`Positions.packed` of documents with these lengths.

    lengths  tokens of each document

    Raises ValueError for a length that is not positive.
    """
    if not lengths:
        raise ValueError("lengths: expected at least one document, got none")
    for length in lengths:
        checks.whole(lengths=length)
    return Positions.packed([0, *itertools.accumulate(lengths)])
