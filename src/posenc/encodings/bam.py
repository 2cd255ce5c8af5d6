"""A bias with a learned scale and exponent for each head: a generalised Gaussian of the distance, as a prior of attention.

    logits += -e^a·(|i - j| + ε)^s        ε = 10^-5

Bianchessi et al. 2025, "Bayesian Attention Mechanism: A Probabilistic Framework for Positional Encoding and Context Length
Extrapolation", there θ_α, θ_β for a, s; the formula is that of the README and the code of the authors' repository, with the
offset μ at 0 as there. s = 1 is ALiBi with learned slopes, s = 0 the same bias everywhere, which is no encoding. With s < 0
near keys lose attention instead of far ones: the heads that find things far away.
Legend: h query heads, n distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import DistanceBias
from posenc.kernels.eager import wants_gradient
from posenc.structure import Structure
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_distances, on_device_of

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num

EPSILON = 1e-5  # what keeps a negative power of distance 0 finite


class BAM(DistanceBias):
    """-e^a·(|distance| + 10^-5)^s, a and s learned for each head. Any length, integers or reals.

    n_heads  query heads

    Parameters: log_scale [n_heads], a; shape [n_heads], s, of any sign. Both start at 0, as in the authors' code: at first
    no distance is preferred.
    Without gradients time O(queries + keys) for a call on consecutive positions and as much memory, like ALiBi;
    O(queries·keys) elsewhere and in training, where the derivative at distance 0 is up to 10^5 times the others: the
    Toeplitz backend's rounding would show for a token that sees itself alone.
    """

    exact_parameters = ("log_scale", "shape")

    @checked
    def __init__(self, n_heads: int) -> None:
        checks.whole(n_heads=n_heads)
        super().__init__(n_heads=n_heads)
        self.log_scale = nn.Parameter(torch.zeros(n_heads))
        self.shape = nn.Parameter(torch.zeros(n_heads))

    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        check_distances(delta)
        on_device_of(self.log_scale, delta=delta)
        distance = delta.abs().double() + EPSILON
        return -self.log_scale.double().exp()[:, None] * distance ** self.shape.double()[:, None]

    def structure(self) -> Structure | None:
        return None if wants_gradient(self.log_scale, self.shape) else super().structure()

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> BAM:
        part = BAM(stop - start).to(self.log_scale)
        part.log_scale.copy_(self.log_scale[start:stop])
        part.shape.copy_(self.shape[start:stop])
        return part
