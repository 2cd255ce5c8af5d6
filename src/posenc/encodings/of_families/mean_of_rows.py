"""A learned vector for every position, averaged over the positions of a token that has several: the mentions of LUKE.

    x + (Σ_n table[p_n]) / (number of places)

Yamada et al. 2020, "LUKE", section 3.1.
Legend: b batch, t tokens, n places, d d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_between, check_coords, check_embeddings

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class MeanOfRows(AbsoluteEncoding):
    """x + the mean of the rows of its positions; -1 means no position, and a token without positions is unchanged.

    d_model        channels
    max_positions  rows
    places         coordinates per token, filled up with -1

    Parameter: table [max_positions, d_model]. Raises ValueError for a place that there is not, naming it and the limit (a
    device assert off the CPU), TypeError for places that are not integers.
    """

    def __init__(self, d_model: int, max_positions: int, places: int = 30) -> None:
        super().__init__(d_model=d_model, max_positions=max_positions, places=places)
        checks.whole(d_model=d_model, max_positions=max_positions, places=places)
        self.d_model, self.max_positions, self.axes = d_model, max_positions, places
        self.table = nn.Parameter(torch.empty(max_positions, d_model))
        nn.init.normal_(self.table, std=0.02)

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        check_coords(self, at, integers=True)
        places = at.coords if at.coords.ndim == 3 else at.coords[..., None]
        check_between(places, -1, self.max_positions - 1, "MeanOfRows: position", ": the table ends there")
        there = (places >= 0)[..., None]
        rows = F.embedding(places.clamp(min=0), self.table) * there
        return x + (rows.sum(dim=-2) / there.sum(dim=-2).clamp(min=1)).to(x.dtype)
