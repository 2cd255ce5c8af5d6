"""A learned bias per head and bucket of distance; buckets are exact when near and logarithmic when far.

    logits += b[h, bucket(i - j)]
    bucket(n) = n                                                      for n < e
              = e + ⌊ (N - e) · ln(n/e) / ln(max_distance/e) ⌋         up to N - 1,   e = N/2

Bidirectional halves N and gives keys after the query the upper half.
Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1, and mesh-tensorflow's code.
Legend: h query heads, n distances, N buckets.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from posenc.encoding import usual_scale
from posenc.encodings.bases.bias_table import BiasTable
from posenc.kernels.eager import constant
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import INTEGERS

if TYPE_CHECKING:
    from posenc.support.shapes import Int, Num


class T5(BiasTable):
    """b[bucket(distance)], learned.

    n_heads        query heads
    n_buckets      rows of the table
    max_distance   from this many positions on, everything falls into the last bucket
    bidirectional  False: for causal attention. True: half of the buckets are for keys after the query
    scale          the softmax scale: None is 1/√d_head; T5 itself was trained with 1.0

    Positions may count something else than tokens: LongT5's bias toward its global tokens is this one with the number of
    its block for every query and the number of the block that it sums up for every key.

    Raises ValueError for sizes that leave no bucket, TypeError for positions that are not integers.
    """

    @checked
    def __init__(
        self,
        n_heads: int,
        *,
        n_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = False,
        scale: float | None = None,
    ) -> None:
        checks.whole(n_buckets=n_buckets, max_distance=max_distance)
        if scale is not None:
            checks.positive(scale=scale)
            checks.moderate(scale=scale)
        super().__init__(
            n_heads=n_heads, n_buckets=n_buckets, max_distance=max_distance, bidirectional=bidirectional, scale=scale
        )
        self.buckets = Buckets.of(n_buckets, max_distance, bidirectional)
        self.thresholds, self.bidirectional, self.scale = self.buckets.starts, bidirectional, scale
        self.traits = self.traits if bidirectional else self.traits | {"causal_only"}
        self.table = nn.Parameter(torch.empty(n_buckets, n_heads))
        nn.init.normal_(self.table, std=0.02)

    @checked
    def bucket(self, delta: Num[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        """The bucket of i - j = `delta`, by comparisons of integers only."""
        return self.buckets(delta)

    @checked
    def row(self, delta: Num[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        return self.buckets(delta)

    def softmax_scale(self, d_head: int) -> float:
        return usual_scale(d_head) if self.scale is None else self.scale


class Buckets(NamedTuple):
    """The buckets of one side: 0, 1, 2, … and then one more from each of `starts` on; keys after the query come after."""

    exact: int
    starts: tuple[int, ...]
    after: int

    @classmethod
    def of(cls, n_buckets: int, max_distance: int, bidirectional: bool) -> Buckets:
        """Raises ValueError for sizes that leave no bucket."""
        per_side = n_buckets // 2 if bidirectional else n_buckets
        return cls(per_side // 2, bucket_starts(per_side, max_distance), per_side if bidirectional else 0)

    def __call__(self, delta: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        """The bucket of i - j = `delta`; one way only, keys after the query share bucket 0."""
        if delta.dtype not in INTEGERS:
            raise TypeError(f"T5: needs integer positions, got {delta.dtype} as delta")
        distance = (delta.abs() if self.after else delta.clamp(min=0)).long()
        starts = constant((*range(1, self.exact + 1), *self.starts), torch.int64, delta.device)
        bucket = torch.bucketize(distance, starts, right=True)  # how many buckets have begun
        return bucket + self.after * (delta < 0) if self.after else bucket


def bucket_starts(n_buckets: int, max_distance: int) -> tuple[int, ...]:
    """The smallest distance of every logarithmic bucket after the first: exact, in whole numbers.

    Bucket e + m begins where (n/e)^(N-e) >= (max_distance/e)^m, that is n^(N-e) >= max_distance^m · e^(N-e-m).
    """
    exact = n_buckets // 2
    if exact < 1 or max_distance <= exact:
        raise ValueError(
            f"n_buckets, max_distance: {n_buckets} buckets a side need max_distance > {exact} >= 1, got {max_distance}"
        )
    logarithmic = n_buckets - exact
    starts, distance = [], exact
    for m in range(1, logarithmic):
        least = max_distance**m * exact ** (logarithmic - m)
        distance += bisect_left(range(distance, max_distance), least, key=lambda n: n**logarithmic)
        starts.append(distance)
    return tuple(starts)
