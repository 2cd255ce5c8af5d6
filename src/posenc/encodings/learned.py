"""A learned vector for every position, added to the embeddings.

    x_p + table[p + row_offset]

Gehring et al. 2017, section 3.2; Devlin et al. 2018 (BERT); Radford et al. 2018 (GPT).
Legend: b batch, t tokens, d d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_embeddings, check_range

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Resizing = Literal["ends", "centres", "nearest"]


class Learned(AbsoluteEncoding):
    """x + table[position]. Defined for the positions of its table only.

    d_model        channels
    max_positions  positions 0 … max_positions-1 can be asked for
    row_offset     rows before position 0, as in BART and OPT (2); the table has max_positions + row_offset rows
    padding_row    the row that padding reads: RoBERTa counts from padding_idx + 1 and gives padding row padding_idx, so
                   row_offset=padding_idx + 1, padding_row=padding_idx. None: padding reads the row of its position
    clamp          positions beyond the table read its last row (TAPAS, ProphetNet) instead of being refused

    Raises ValueError for a position outside the table, naming position and limit (a device assert off the CPU), and for a
    padding_row that there is not.
    """

    @checked
    def __init__(
        self, d_model: int, max_positions: int, *, row_offset: int = 0, padding_row: int | None = None, clamp: bool = False
    ) -> None:
        checks.whole(0, row_offset=row_offset)
        super().__init__(
            d_model=d_model, max_positions=max_positions, row_offset=row_offset, padding_row=padding_row, clamp=clamp
        )
        if padding_row is not None and padding_row not in range(max_positions + row_offset):
            raise ValueError(f"padding_row: expected a row 0 … {max_positions + row_offset - 1}, got {padding_row}")
        self.d_model, self.max_positions, self.row_offset = d_model, max_positions, row_offset
        self.padding_row, self.clamp = padding_row, clamp
        self.table = nn.Parameter(torch.empty(max_positions + row_offset, d_model))
        nn.init.normal_(self.table, std=0.02)

    @checked
    def largest_position(self, dtype: torch.dtype = torch.float32) -> int | None:
        return None if self.clamp else self.max_positions - 1

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        check_coords(self, at, integers=True)
        if self.padding_row is not None:
            at = at.replaced(coords=at.coords.masked_fill(at.document < 0, 0))  # whatever it says: it is not read
        if self.clamp:
            at = at.replaced(coords=at.coords.clamp(max=self.max_positions - 1))
        check_range(self, at, 0, self.max_positions - 1, "the table ends there; resize(n) makes a longer one")
        rows = at.coords + self.row_offset
        if self.padding_row is not None:
            rows = rows.masked_fill(at.document < 0, self.padding_row)
        return x + F.embedding(rows, self.table).to(x.dtype)

    @checked
    @torch.no_grad()
    def resize(self, max_positions: int, mode: Resizing = "ends") -> Learned:
        """A new encoding for `max_positions` positions; the rows before position 0 stay as they are.

        "ends"     linear between the first and the last row, which are kept
        "centres"  linear between the middles of equal cells (align_corners=False)
        "nearest"  row ⌊i·old/new⌋ (TimeSformer's frames)
        """
        if mode not in get_args(Resizing):
            raise ValueError(f"mode: expected one of {', '.join(get_args(Resizing))}, got {mode!r}")
        options = {"row_offset": self.row_offset, "padding_row": self.padding_row, "clamp": self.clamp}
        resized = Learned(self.d_model, max_positions, **options).to(self.table)  # type: ignore[arg-type]
        before, rows = self.table[: self.row_offset], self.table[self.row_offset :]
        if mode == "nearest":
            rows = rows[torch.arange(max_positions, device=rows.device) * self.max_positions // max_positions]
        else:
            ends = mode == "ends"
            rows = F.interpolate(rows.T[None].double(), size=max_positions, mode="linear", align_corners=ends)[0].T
        resized.table.copy_(torch.cat([before, rows.to(before.dtype)]))
        return resized
