"""Randomized positions: in training, every row gets a sorted random subset of a long range.

    p_1 < p_2 < … < p_n,  drawn from 0 … max_positions - 1 without repetition

Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of Transformers", section 3.
"""

from __future__ import annotations

import torch

from posenc.positions import Positions
from posenc.support.checked import checked


@checked
def randomized(
    batch: int, length: int, max_positions: int = 2048, *, generator: torch.Generator | None = None
) -> Positions:
    """`Positions.randomized`: a sorted random subset of 0 … max_positions - 1 for every row, drawn anew at each call.

    batch          rows
    length         tokens of a row
    max_positions  positions to draw from; 2048 in the paper, which trains on up to 40 tokens
    generator      the source of the random numbers; torch's own if left out

    Raises ValueError for a length above max_positions.
    """
    return Positions.randomized(batch, length, max_positions, generator=generator)
