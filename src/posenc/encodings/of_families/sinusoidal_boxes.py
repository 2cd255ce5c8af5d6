"""Relative positions of boxes: sinusoids of every difference, projected and multiplied with the query like a key.

    logits += q_i·P [R(s(c_0(j) - c_0(i))) | R(s(c_1(j) - c_1(i))) | …] / √d_head

    R(δ) = [sin δω | cos δω],   ω_n = base^(-2n/w), n = 0 … w/2 - 1

Hong et al. 2022, "BROS", section 3.1; eight differences, of the four corners of two boxes. All heads share P.
Legend: b batch, h query heads, i query, j key, d d_head, c coordinates, w channels of one difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc import frequencies
from posenc.encoding import BiasFn, PositionalEncoding, scale_of
from posenc.encodings.bases.coordinates import check_reads, select
from posenc.kernels.sin_cos import sin_cos_table
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_coords, check_width, full_precision, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float

CORNERS = (0, 1, 2, 1, 2, 3, 0, 3)  # of a box (x0, y0, x1, y1), clockwise from the upper left


class SinusoidalBoxes(PositionalEncoding):
    """q·P of the sinusoids of all differences. Coordinates are real numbers, (x0, y0, x1, y1) unless said.

    d_head  channels of a head
    width   channels of the sinusoid of one difference, even
    axes    coordinates per token
    reads   the coordinate of each difference; the corners of a box unless said, and all in turn where axes is not 4
    scale   differences are multiplied with it
    base    of the sinusoids

    Parameter: project [d_head, len(reads)·width]. Raises ValueError for an odd width and a coordinate that there is not.
    """

    def __init__(
        self,
        d_head: int,
        width: int,
        *,
        axes: int = 4,
        reads: Sequence[int] | None = None,
        scale: float = 100.0,
        base: float = 10000.0,
    ) -> None:
        checks.whole(d_head=d_head, axes=axes)
        checks.even(width=width)
        checks.positive(scale=scale, base=base)
        reads = CORNERS if reads is None and axes == 4 else reads
        chosen = check_reads(reads, axes)
        super().__init__(d_head=d_head, width=width, axes=axes, reads=chosen, scale=scale, base=base)
        self.d_head, self.reads, self.axes = d_head, chosen, axes
        self.frequencies = tuple(f * scale for f in frequencies.rotary(width, base))
        self.project = nn.Parameter(torch.empty(d_head, len(self.reads) * width))
        nn.init.normal_(self.project, std=0.02)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        """(sin, cos) of every coordinate that is read and frequency, [b, t, r·n, 2]."""
        check_coords(self, at)
        return (sin_cos_table(select(at, self.reads), [self.frequencies] * len(self.reads), dtype),)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        with full_precision(q):
            added = self._product(q @ self.project.to(q.dtype), at_q, at_k) * scale_of(self, self.d_head)
        return lambda b, h, i, j: added[b, h, i, j]

    def _product(self, g: Float[Tensor, "b h i m"], at_q: Positions, at_k: Positions) -> Float[Tensor, "b h i j"]:
        """g·R of the differences j - i: with g = (g_s | g_c) it is (g_s c_i + g_c s_i)·s_j + (g_c c_i - g_s s_i)·c_j."""
        sin_q, cos_q = (part[:, None] for part in tables_at(self, at_q, g.dtype)[0].unbind(-1))  # [b, 1, i, n]
        sin_k, cos_k = tables_at(self, at_k, g.dtype)[0].unbind(-1)
        g_sin, g_cos = (part.flatten(-2) for part in g.unflatten(-1, (len(self.reads), 2, -1)).unbind(-2))
        query = torch.cat([g_sin * cos_q + g_cos * sin_q, g_cos * cos_q - g_sin * sin_q], dim=-1)
        product: Tensor = query @ torch.cat([sin_k, cos_k], dim=-1)[:, None].transpose(-1, -2)
        return product
