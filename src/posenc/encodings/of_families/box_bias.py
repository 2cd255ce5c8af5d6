"""A bias by where a patch is from the sides of a query's box: inside, outside, how far.

    rows      f_y([log(y_j - top_i), log(y_j - bottom_i)])      columns   f_x([log(x_j - left_i), log(x_j - right_i)])
    logits    + rows_h + columns_h,   log(δ) = sign(δ)·log₂(1 + 8|δ|) / log₂ 8,   f two layers, relu between

Lin et al. 2023, "DETR Doesn't Need Multi-Scale or Locality Design" (Plain DETR), section 4.2; SAM 3 in its code.
Legend: b batch, h query heads, i query, j key.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_coords, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class BoxBias(PositionalEncoding):
    """A network of log distances for rows, and one for columns; their sum is added to the logits.

    n_heads  query heads
    hidden   channels of the networks

    Queries stand at (x, y, width, height), middle and size of their box, keys at (y, x), all as shares of the image. A
    query with a width below 0 has no box, and no bias (SAM 3's token for whether anything is there).
    Parameters, for rows and columns: …_inner [hidden, 2], …_inner_offset [hidden], …_outer [n_heads, hidden],
    …_outer_offset [n_heads]. Raises ValueError for sizes that are none and other coordinates.
    """

    traits = frozenset({"local", "norm_preserving"})
    axes = 4

    def __init__(self, n_heads: int, hidden: int = 256) -> None:
        super().__init__(n_heads=n_heads, hidden=hidden)
        checks.whole(n_heads=n_heads, hidden=hidden)
        for name in ("rows", "columns"):
            setattr(self, f"{name}_inner", nn.Parameter(torch.randn(hidden, 2) / math.sqrt(2)))
            setattr(self, f"{name}_inner_offset", nn.Parameter(torch.zeros(hidden)))
            setattr(self, f"{name}_outer", nn.Parameter(torch.randn(n_heads, hidden) / math.sqrt(hidden)))
            setattr(self, f"{name}_outer_offset", nn.Parameter(torch.zeros(n_heads)))

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_coords(self, at_q)
        if at_k.coords.ndim != 3 or at_k.coords.shape[-1] != 2:
            raise ValueError(f"BoxBias: keys stand at (y, x), got coords {list(at_k.coords.shape)}")
        x, y, width, height = at_q.coords.double().unbind(-1)  # [b, i]
        keys = at_k.coords.double()
        with full_precision(q):
            rows = self._network("rows", keys[:, None, :, 0], y - height / 2, y + height / 2)
            columns = self._network("columns", keys[:, None, :, 1], x - width / 2, x + width / 2)
            table = (rows + columns).masked_fill((width < 0)[..., None, None], 0).to(q.dtype)  # [b, i, j, h]
        table = table.expand(q.shape[0], *table.shape[1:])
        return lambda b, h, i, j: table[b, i, j, h]

    def _network(
        self, name: str, place: Float[Tensor, "b 1 j"], low: Float[Tensor, "b i"], high: Float[Tensor, "b i"]
    ) -> Float[Tensor, "b i j h"]:
        inner, offset, outer, outer_offset = (
            getattr(self, f"{name}_{part}").double() for part in ("inner", "inner_offset", "outer", "outer_offset")
        )
        distance = torch.stack([place - low[..., None], place - high[..., None]], dim=-1)
        seen = distance.sign() * torch.log2(1 + 8 * distance.abs()) / math.log2(8)
        return F.linear(F.linear(seen, inner, offset).relu(), outer, outer_offset)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> BoxBias:
        """The encoding of heads start … stop-1 alone."""
        part = BoxBias(stop - start, self.configuration["hidden"]).to(next(self.parameters()))
        for name, target in part.named_parameters():
            source = getattr(self, name)
            target.copy_(source[start:stop] if "_outer" in name else source)
        return part
