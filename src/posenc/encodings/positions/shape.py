"""SHAPE: in training, every row of positions is shifted by a random number.

    p' = p + k,   k drawn from 0 … max_shift for every row

Kiyono et al. 2021, "SHAPE: Shifted Absolute Position Embedding for Transformers".
"""

from __future__ import annotations

import torch

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def shape(batch: int, length: int, *, max_shift: int = 500, generator: torch.Generator | None = None) -> Positions:
    """Consecutive positions from a random start of every row.

    batch      rows
    length     tokens of a row
    max_shift  the largest start; 500 in the paper's experiments
    generator  the source of the random numbers; torch's own if left out

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, max_shift=max_shift)
    start = torch.randint(max_shift + 1, (batch,), generator=generator)
    return Positions.arange(batch, length, start)
