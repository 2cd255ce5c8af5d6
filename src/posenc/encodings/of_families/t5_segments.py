"""T5's bias within a segment, one learned number for every pair of segments across: CPM-Ant.

    logits += b[h, bucket(i - j)]              where query and key are in one segment
    logits += b[h, N + S·segment_i + segment_j]   elsewhere

Source: CPM-Ant's code (OpenBMB, CPM-Live), SegmentPositionEmbedding; buckets as in T5, both ways.
Legend: h query heads, i query, j key, N buckets, S segments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding
from posenc.encodings.t5 import Buckets
from posenc.positions import Positions, own_rows
from posenc.support import checks
from posenc.support.tensors import check_between, check_coords

if TYPE_CHECKING:
    from posenc.support.shapes import Int


class SegmentedT5(PositionalEncoding):
    """b[bucket(distance)] within a segment, b[segment of the query, segment of the key] across.

    Coordinates are (position, segment).

    n_heads                  query heads
    n_segments               kinds of segments, numbered from 0; 32 in CPM-Ant
    n_buckets, max_distance  of the buckets, 512 and 2048 in CPM-Ant

    Parameter: table [n_buckets + n_segments², n_heads]. Raises ValueError for a segment that there is not.
    """

    traits = frozenset({"local", "norm_preserving"})  # a shift of both coordinates renames the segments
    axes = 2

    def __init__(self, n_heads: int, *, n_segments: int = 32, n_buckets: int = 512, max_distance: int = 2048) -> None:
        checks.whole(n_heads=n_heads, n_segments=n_segments, n_buckets=n_buckets, max_distance=max_distance)
        super().__init__(n_heads=n_heads, n_segments=n_segments, n_buckets=n_buckets, max_distance=max_distance)
        self.buckets = Buckets.of(n_buckets, max_distance, bidirectional=True)
        self.n_segments, self.n_buckets = n_segments, n_buckets
        self.table = nn.Parameter(torch.empty(n_buckets + n_segments**2, n_heads))
        nn.init.normal_(self.table, std=0.02)

    def row(self, query: Int[Tensor, "*s 2"], key: Int[Tensor, "*s 2"]) -> Int[Tensor, "*s"]:
        """The row of the table for queries and keys at (position, segment)."""
        (at_q, segment_q), (at_k, segment_k) = query.unbind(-1), key.unbind(-1)
        across = self.n_buckets + segment_q * self.n_segments + segment_k
        return torch.where(segment_q == segment_k, self.buckets(at_q - at_k), across)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        for at in (at_q, at_k):
            check_coords(self, at, integers=True)
            self._check_segments(at.coords[..., 1])
        table, query, key = self.table.to(q.dtype), at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            b = own_rows(b, at_q, at_k)
            return table[self.row(query[b, i], key[b, j]), h]

        return of_pair

    def _check_segments(self, segments: Int[Tensor, "b t"]) -> None:
        check_between(segments, 0, self.n_segments - 1, "SegmentedT5: segment")

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> SegmentedT5:
        part = SegmentedT5(**{**self.configuration, "n_heads": stop - start}).to(self.table)
        part.table.copy_(self.table[:, start:stop])
        return part
