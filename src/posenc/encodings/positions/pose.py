"""PoSE: in training, a short text is cut in two, and the second part is numbered as if it came much later.

    p' = p  for p < cut,   p + u  from there on,   u drawn from 0 … max_positions - length

Zhu et al. 2023, "PoSE: Efficient Context Window Extension of LLMs via Positional Skip-wise Training", section 3.2. The
paper also shifts the first part; the authors' code of October 2023 leaves it at 0, for distances to be met more evenly,
and cuts within the first half.
"""

from __future__ import annotations

import torch

from posenc.positions import Positions
from posenc.support.checked import checked


@checked
def pose(batch: int, length: int, max_positions: int = 16384, *, generator: torch.Generator | None = None) -> Positions:
    """Consecutive positions with one skip in every row, as the authors' code draws them.

    batch          rows
    length         tokens of a row, from 2
    max_positions  positions wanted: the last one is below it
    generator      the source of the random numbers; torch's own if left out

    Raises ValueError for a length above max_positions, or below 2.
    """
    if not 2 <= length <= max_positions:
        raise ValueError(f"length: expected a whole number from 2 to max_positions={max_positions}, got {length}")
    cut = 1 + torch.randint((length + 1) // 2, (batch, 1), generator=generator)
    skip = torch.randint(max_positions - length + 1, (batch, 1), generator=generator)
    plain = torch.arange(length)
    return Positions.at(plain + skip * (plain >= cut))
