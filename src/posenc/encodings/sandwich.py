"""Sinusoids kept only where they meet each other: the product of two positions' vectors, added to the score.

    logits += Σ_c cos((i - j)·ω_c) / r_h,   ω_c = base^(-2c/w) for c = 0 … w/2 - 1,   r_h = 8h/n for h = 1 … n heads

Chi et al. 2022, "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis", section 5. NeMo's
code takes c = 1 … w/2 and lowers all scores of a head by the same number, which no softmax sees.
Legend: h query heads, n distances, c waves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import DistanceBias
from posenc.kernels.eager import constant
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_distances

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


class Sandwich(DistanceBias):
    """A sum of cosines of the distance, divided by a number of each head. No parameters, any length, integers or reals.

    n_heads  query heads of the whole model; a tensor-parallel rank takes heads(start, stop) of it
    width    w, twice as many as there are waves, even; 128 in the paper, whatever the model's width
    base     of the frequencies
    ratios   other numbers than 8h/n to divide by, one per head

    Time O(w·(queries + keys)) for a call on consecutive positions, O(w·queries·keys) elsewhere.
    """

    @checked
    def __init__(
        self, n_heads: int, *, width: int = 128, base: float = 10000.0, ratios: tuple[float, ...] | None = None
    ) -> None:
        checks.even(width=width)
        checks.positive(base=base)
        ratios = tuple(8 * h / n_heads for h in range(1, n_heads + 1)) if ratios is None else tuple(map(float, ratios))
        super().__init__(n_heads=n_heads, width=width, base=base, ratios=ratios)
        if len(ratios) != n_heads or not all(math.isfinite(ratio) and ratio != 0 for ratio in ratios):
            raise ValueError(f"ratios: expected a number other than 0 for each of {n_heads} heads, got {ratios}")
        self.ratios = ratios
        self.frequencies = tuple(base ** (-2 * c / width) for c in range(width // 2))

    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        check_distances(delta)
        waves = delta.abs().double()[:, None] * constant(self.frequencies, torch.float64, delta.device)
        return waves.cos().sum(dim=-1) / constant(self.ratios, torch.float64, delta.device)[:, None]

    def heads(self, start: int, stop: int) -> Sandwich:
        return Sandwich(**{**self.configuration, "n_heads": stop - start, "ratios": self.ratios[start:stop]})
