"""Bilevel positions: the index of a token within its segment, and the number of the segment.

    (n, s)   s counts the ends of segments before the token, n the tokens since the last of them

He et al. 2024, "Two Stones Hit One Bird: Bilevel Positional Encoding for Better Length Extrapolation", and the authors'
code, where full stops and line breaks end a segment and belong to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.tensors import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Bool


@checked
def bipe_ids(ends: Bool[Tensor, "b t"]) -> Positions:
    """Coordinates [b, t, 2]: index within the segment, number of the segment.

    ends  [b, t], True where a token is the last of its segment; the last token of the row need not be

    Raises ValueError for a mask without tokens.
    """
    with_values(ends=ends)
    begins = torch.cat([torch.ones_like(ends[:, :1]), ends[:, :-1]], dim=1)
    index = torch.arange(ends.shape[1], device=ends.device).expand_as(ends)
    within = index - index.masked_fill(~begins, 0).cummax(dim=1).values
    return Positions.at(torch.stack([within, begins.long().cumsum(dim=1) - 1], dim=-1))
