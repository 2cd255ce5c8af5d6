"""T5's bias along several coordinates: one table of buckets for each, summed.

    logits += Σ_a b_a[h, bucket_a(⌊s_a·(c_a(j) - c_a(i))⌋)]        buckets as in T5, both ways

LayoutLMv2 (Xu et al. 2020, section 2) and LayoutLMv3 (Huang et al. 2022, section 2.2): token index, left x, lower y.
UDOP (Tang et al. 2022, section 3.3): token index, and the middle of a box in x and y, real numbers of 0 … 1 in hundredths.
Legend: b batch, h query heads, i query, j key, a axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding, usual_scale
from posenc.encodings.t5 import Buckets
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import INTEGERS, check_coords

if TYPE_CHECKING:
    from posenc.support.shapes import Num


class T5Axes(PositionalEncoding):
    """The sum over coordinate axes of b[bucket(distance along the axis)], learned, for attention both ways.

    n_heads         query heads
    n_buckets       rows of each axis's table; how many there are says how many coordinates a token has
    max_distance    for each axis: from here on, everything falls into the last bucket
    scaling         for each axis: multiplied with the distance, then cut to a whole number (UDOP: 1, 100, 100)
    bias_over_sqrt  divides the bias by √d_head too (LayoutLMv3)
    scale           the softmax scale: None is 1/√d_head; UDOP, a T5, has 1.0

    Parameters: axis_tables.0, .1, … [n_buckets, n_heads]. Real coordinates are
    subtracted in float32, as UDOP does with its boxes. Raises TypeError for real
    coordinates where no axis is scaled, ValueError for sizes that do not fit.
    """

    reads_vectors = False

    @checked
    def __init__(
        self,
        n_heads: int,
        *,
        n_buckets: Sequence[int] = (32, 64, 64),
        max_distance: Sequence[int] = (128, 256, 256),
        scaling: tuple[float, ...] | list[float] | None = None,
        bias_over_sqrt: bool = False,
        scale: float | None = None,
    ) -> None:
        sizes, limits = tuple(n_buckets), tuple(max_distance)
        factors = (1,) * len(sizes) if scaling is None else tuple(scaling)
        for size, limit in zip(sizes, limits, strict=False):
            checks.whole(n_buckets=size, max_distance=limit)
        for factor in factors:
            checks.positive(scaling=factor)
        if scale is not None:
            checks.positive(scale=scale)
            checks.moderate(scale=scale)
        super().__init__(
            n_heads=n_heads,
            n_buckets=sizes,
            max_distance=limits,
            scaling=factors,
            bias_over_sqrt=bias_over_sqrt,
            scale=scale,
        )
        if not sizes or len({len(sizes), len(limits), len(factors)}) != 1:
            raise ValueError(
                "n_buckets, max_distance, scaling: expected one of each for every axis, "
                f"got {sizes}, {limits} and {factors}"
            )
        self.buckets = tuple(Buckets.of(size, limit, bidirectional=True) for size, limit in zip(sizes, limits, strict=True))
        self.scaling, self.bias_over_sqrt, self.scale = factors, bias_over_sqrt, scale
        self.axes = len(sizes)
        self.axis_tables = nn.ParameterList(nn.Parameter(torch.empty(size, n_heads).normal_(std=0.02)) for size in sizes)

    def bucket(self, axis: int, delta: Num[Tensor, "*s"]) -> Tensor:
        """The bucket of a distance query - key along an axis."""
        if self.scaling[axis] != 1:
            delta = (delta * self.scaling[axis]).trunc().long()
        elif delta.dtype not in INTEGERS:
            # Whole numbers beside real ones (UDOP's token index beside its boxes) come as reals.
            delta = delta.trunc().long()
        return self.buckets[axis](delta)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        for at in (at_q, at_k):
            check_coords(self, at, integers=all(factor == 1 for factor in self.scaling))
        scale = q.shape[-1] ** -0.5 if self.bias_over_sqrt else 1.0
        tables = [table.to(q.dtype) * scale for table in self.axis_tables]
        query, key = (at.coords.float() if at.coords.is_floating_point() else at.coords for at in (at_q, at_k))
        query, key = (coords if coords.ndim == 3 else coords[..., None] for coords in (query, key))

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            terms = [table[self.bucket(axis, query[b, i, axis] - key[b, j, axis]), h] for axis, table in enumerate(tables)]
            total: Tensor = sum(terms[1:], start=terms[0])
            return total

        return of_pair

    def softmax_scale(self, d_head: int) -> float:
        return usual_scale(d_head) if self.scale is None else self.scale

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> T5Axes:
        part = T5Axes(**{**self.configuration, "n_heads": stop - start}).to(self.axis_tables[0])
        for target, source in zip(part.axis_tables, self.axis_tables, strict=True):
            target.copy_(source[:, start:stop])
        return part
