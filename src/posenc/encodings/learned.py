"""A learned vector for every position, added to the embeddings.

    x_p + table[p + row_offset]

Gehring et al. 2017, section 3.2; Devlin et al. 2018 (BERT); Radford et al. 2018 (GPT).
Legend: b batch, t tokens, d d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import PositionalEncoding, Site, absolute_at_layer, check_tokens, check_width
from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Float


class Learned(PositionalEncoding):
    """x + table[position]. Knows the positions of its table and no others.

    d_model        channels
    max_positions  positions 0 … max_positions-1 can be asked for
    row_offset     rows before position 0, as in BART and OPT (2); the table has max_positions + row_offset rows

    Raises ValueError for a position outside the table, naming position and limit (a device assert off the CPU).
    """

    sites = Site.EMBED
    traits = frozenset({"local", "norm_preserving"})

    def __init__(self, d_model: int, max_positions: int, *, row_offset: int = 0) -> None:
        super().__init__(d_model=d_model, max_positions=max_positions, row_offset=row_offset)
        self.d_model, self.max_positions, self.row_offset = d_model, max_positions, row_offset
        self.table = nn.Parameter(torch.empty(max_positions + row_offset, d_model))
        nn.init.normal_(self.table, std=0.02)

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_width(self, "d_model", x.shape[-1], self.d_model)
        check_tokens(self, x, at, axis=1)
        self.check_coords(at, integers=True)
        self.check_range(at, 0, self.max_positions - 1, "the table ends there; resize(n) makes a longer one")
        return x + F.embedding(at.coords + self.row_offset, self.table).to(x.dtype)

    def at_layer(self, n: int) -> PositionalEncoding:
        return absolute_at_layer(self, n)

    @torch.no_grad()
    def resize(self, max_positions: int) -> Learned:
        """A new encoding for `max_positions` positions, its rows interpolated linearly; first and last row are kept."""
        resized = Learned(self.d_model, max_positions, row_offset=self.row_offset).to(self.table)
        before, rows = self.table[: self.row_offset], self.table[self.row_offset :]
        rows = F.interpolate(rows.T[None].double(), size=max_positions, mode="linear", align_corners=True)[0].T
        resized.table.copy_(torch.cat([before, rows.to(before.dtype)]))
        return resized
