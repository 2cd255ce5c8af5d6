"""LARoPE: positions are counted in parts of the sequence, so that speech and its text run side by side.

    p_n = γ·n / L

Kim et al. 2025, "Length-Aware Rotary Position Embedding for Text-Speech Alignment". RoPE of these positions
turns by γ(m/L_q - n/L_k) between frame m and letter n: pairs on the diagonal are at distance 0, however long either is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def larope_ids(lengths: Sequence[int], *, gamma: float = 10.0) -> Positions:
    """Real positions from 0 to below gamma, for every row of a batch; rows are padded on the right to the longest.

    lengths  L, tokens of each row: frames for queries, letters for keys
    gamma    γ, positions that a whole sequence takes; 10 in implementations of Supertonic

    Raises ValueError for a length that is not positive.
    """
    if not lengths:
        raise ValueError("lengths: expected at least one row, got none")
    for length in lengths:
        checks.whole(lengths=length)
    checks.positive(gamma=gamma)
    if not math.isfinite(gamma * max(lengths)):
        raise ValueError(f"gamma: {gamma} times {max(lengths)} tokens is no finite position")
    ends = torch.tensor(list(lengths))[:, None]
    at = Positions.from_mask(torch.arange(max(lengths)) < ends)
    return Positions(at.coords.double() * gamma / ends, at.order, at.document)
