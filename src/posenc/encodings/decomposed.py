"""Two learned vectors for every pair of positions in an image: one by the difference in rows, one by that in columns.

    logits += q_i·R[Δr + H - 1] + q_i·C[Δc + W - 1],   (Δr, Δc) = position of the query - position of the key

The query is not divided by √d here. Li et al. 2021, "MViTv2", section 4.1, equation 4; as the image encoders of ViTDet and
Segment Anything have it, shared by all heads.
Legend: b batch, h query heads, i query, j key, d d_head, H height, W width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn
from posenc.encodings.bases.window_bias import InWindow, check_window
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_width, full_precision


class DecomposedBias(InWindow):
    """q·R[difference in rows] + q·C[difference in columns], learned.

    d_head  channels of a head
    window  (height, width) of the image, or of the window that attention is limited to, in positions

    Parameters: rows [2H - 1, d_head] and columns [2W - 1, d_head], from furthest before to furthest after. Another size has
    a table of its own: resized(window). Coordinates are (row, column), whole numbers; tokens of one document further apart
    than the window are a ValueError.
    """

    def __init__(self, d_head: int, window: tuple[int, int]) -> None:
        checks.whole(d_head=d_head)
        window = check_window("DecomposedBias", window)
        super().__init__(d_head=d_head, window=window)
        self.d_head, self.window = d_head, window
        self.rows = nn.Parameter(torch.empty(2 * window[0] - 1, d_head))
        self.columns = nn.Parameter(torch.empty(2 * window[1] - 1, d_head))
        for table in (self.rows, self.columns):
            nn.init.trunc_normal_(table, std=0.02)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        self.check_window(at_q, at_k)
        with full_precision(q):
            by_row, by_column = (q @ table.to(q.dtype).T for table in (self.rows, self.columns))  # [b, h, i, 2H - 1]
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            (down, across), (height, width) = (query[b, i] - key[b, j]).unbind(-1), self.window
            down, across = down.clamp(1 - height, height - 1), across.clamp(1 - width, width - 1)  # pairs of two windows
            return by_row[b, h, i, down + height - 1] + by_column[b, h, i, across + width - 1]

        return of_pair

    @torch.no_grad()
    def resized(self, window: tuple[int, int]) -> DecomposedBias:
        """For an image of another size: both tables interpolated linearly, as MViTv2 and its followers do."""
        part = DecomposedBias(self.d_head, window).to(self.rows)
        for target, source in ((part.rows, self.rows), (part.columns, self.columns)):
            target.copy_(F.interpolate(source.T[None], size=len(target), mode="linear")[0].T)
        return part


@checked
def decomposed(d_head: int, *, height: int = 14, width: int = 14) -> DecomposedBias:
    """`DecomposedBias` of an image or window.

    d_head         channels of a head
    height, width  of the image, or of the window that attention is limited to, in patches

    Raises ValueError for sizes that are not positive.
    """
    return DecomposedBias(d_head, (height, width))
