"""2-D ALiBi: the further apart two patches are, in a straight line, the lower the score.

    logits += -m_h · √(Δy² + Δx²),   m_h the slopes of ALiBi

Fuller et al. 2023, "CROMA: Remote Sensing Representations with Contrastive Radar-Optical Masked Autoencoders", section 3,
and get_2dalibi of the authors' code.
Legend: b batch, h query heads, i query, j key.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from posenc.encoding import BiasFn, PositionalEncoding
from posenc.encodings.alibi import alibi_slopes
from posenc.kernels.eager import constant
from posenc.positions import Positions, own_rows
from posenc.support.checked import checked
from posenc.support.tensors import check_coords


class ALiBi2D(PositionalEncoding):
    """-slope·distance of two places, a slope per head. No parameters, images of any size, whole or real coordinates.

    n_heads  query heads of the whole model; a tensor-parallel rank takes heads(start, stop) of it
    slopes   other slopes than ALiBi's, one per head

    Distances in fp64. Raises ValueError for slopes that are not one finite number for each head.
    """

    reads_vectors = False
    axes = 2

    @checked
    def __init__(self, n_heads: int, *, slopes: tuple[float, ...] | None = None) -> None:
        slopes = alibi_slopes(n_heads) if slopes is None else tuple(map(float, slopes))
        super().__init__(n_heads=n_heads, slopes=slopes)
        if len(slopes) != n_heads or not all(map(math.isfinite, slopes)):
            raise ValueError(f"slopes: expected a finite number for each of {n_heads} heads, got {slopes}")
        self.slopes = slopes

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        for at in (at_q, at_k):
            check_coords(self, at)
        slopes, query, key = constant(self.slopes, torch.float64, q.device), at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            b = own_rows(b, at_q, at_k)
            apart = (query[b, i] - key[b, j]).double()
            return (-slopes[h] * apart.square().sum(dim=-1).sqrt()).to(q.dtype)

        return of_pair

    def heads(self, start: int, stop: int) -> ALiBi2D:
        return ALiBi2D(stop - start, slopes=self.slopes[start:stop])
