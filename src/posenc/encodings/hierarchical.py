"""A learned table of n positions that reaches n² of them: every position is a coarse row and a fine row of one table.

    x_p + α·u[⌊p/n⌋] + (1 - α)·u[p mod n],   u = (table - α·table[0])/(1 - α)

Su 2020, a post (kexue.fm 7947), as in bert4keras. The first n positions are those of the table: u[0] is table[0].
Legend: b batch, t tokens, d d_model, n rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_embeddings, check_range, full_precision, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class Hierarchical(AbsoluteEncoding):
    """x + α·u[p div n] + (1 - α)·u[p mod n], u made of a learned table: a trained table of BERT reaches n² positions.

    d_model  channels
    rows     n: rows of the table, positions 0 … n² - 1 can be asked for
    alpha    α, above 0 and below 1, but not 1/2: there p and its mirror image are the same

    Parameter: table [rows, d_model]; copy a trained one into it. Time O(t·d).
    Raises ValueError for a position outside, naming position and limit (a device assert off the CPU), and for another α.
    """

    @checked
    def __init__(self, d_model: int, *, rows: int = 512, alpha: float = 0.4) -> None:
        checks.whole(d_model=d_model, rows=rows)
        checks.finite(alpha=alpha)
        super().__init__(d_model=d_model, rows=rows, alpha=alpha)
        if not 0 < alpha < 1 or alpha == 0.5:
            raise ValueError(f"alpha: expected a number above 0 and below 1, but not 0.5, got {alpha}")
        self.d_model, self.rows, self.alpha = d_model, rows, alpha
        self.table = nn.Parameter(torch.empty(rows, d_model))
        nn.init.normal_(self.table, std=0.02)

    @checked
    def largest_position(self, dtype: torch.dtype = torch.float32) -> int | None:
        return self.rows**2 - 1

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        check_coords(self, at, integers=True)
        check_range(self, at, 0, self.rows**2 - 1, "the table reaches no further; give it more rows")
        dtype = working_dtype(x.dtype)
        with full_precision(x):
            table = self.table.to(dtype)
            basis = (table - self.alpha * table[:1]) / (1 - self.alpha)
            coarse, fine = F.embedding(at.coords // self.rows, basis), F.embedding(at.coords % self.rows, basis)
            return (x.to(dtype) + self.alpha * coarse + (1 - self.alpha) * fine).to(x.dtype)
