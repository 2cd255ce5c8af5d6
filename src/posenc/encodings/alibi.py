"""Attention with linear biases: the further away, the lower the score.

    logits += -m_h · |i - j|,   m_h = 2^(-8h/n) for h = 1 … n heads

Press et al. 2021, "Train Short, Test Long", section 3; slopes for other head counts as in the authors' code.
Legend: h query heads, n distances.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import DistanceBias
from posenc.kernels.eager import constant
from posenc.support.checked import checked
from posenc.support.tensors import check_distances

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


@checked
def alibi_slopes(n_heads: int, bias_max: float = 8.0) -> tuple[float, ...]:
    """The slope of every head, per position; the last of 2^k heads has 2^-bias_max: 8 in the paper, an option in MPT.

    n = 2^k: 2^(-8/n), 2^(-16/n), … 2^-8. Otherwise those of the power below, then every other one of the power above.
    Six heads: 1/4, 1/16, 1/64, 1/256, 1/2, 1/8. Raises ValueError for fewer than one head and for no positive bias_max.
    """
    power = 2 ** int(math.log2(n_heads))
    slopes = tuple(2.0 ** (-bias_max * h / power) for h in range(1, power + 1))
    return slopes if power == n_heads else (slopes + alibi_slopes(2 * power, bias_max)[::2])[:n_heads]


class ALiBi(DistanceBias):
    """-slope·|distance|, a slope per head. No parameters, any length, integers or reals.

    n_heads   query heads of the whole model; a tensor-parallel rank takes heads(start, stop) of it
    slopes    other slopes than the paper's, one per head
    bias_max  the exponent of the last slope, for slopes that are not given

    BLOOM and MPT add slope·(position of the key) instead: the same after a causal softmax, since a row of logits moves as a
    whole. Falcon divides its bias by √d_head and rounds it: see FalconALiBi.
    """

    @checked
    def __init__(self, n_heads: int, *, slopes: tuple[float, ...] | None = None, bias_max: float = 8.0) -> None:
        slopes = alibi_slopes(n_heads, bias_max) if slopes is None else tuple(map(float, slopes))
        super().__init__(n_heads=n_heads, slopes=slopes)
        if len(slopes) != n_heads or not all(map(math.isfinite, slopes)):
            raise ValueError(f"slopes: expected a finite number for each of {n_heads} heads, got {slopes}")
        self.slopes, self._falls = slopes, tuple(-slope for slope in slopes)

    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        check_distances(delta)
        return torch.outer(constant(self._falls, torch.float64, delta.device), delta.abs())  # fp64

    def heads(self, start: int, stop: int) -> ALiBi:
        return ALiBi(stop - start, slopes=self.slopes[start:stop])
