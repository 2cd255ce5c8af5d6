"""Kernels of the distance with learned scales: the score falls with the logarithm or with a power of the distance.

    log      logits += -r1·ln(1 + r2·|i - j|)        r1, r2 > 0
    power    logits += -r1·|i - j|^r2                r1 > 0, 0 < r2 ≤ 2

Chi et al. 2022, "KERPLE: Kernelized Relative Positional Embedding for Length Extrapolation": -bias is a
conditionally positive definite kernel for these r1 and r2. One pair for each head.

The authors' code keeps r1 and r2 themselves and clamps them in place at every forward: from 0.01 on, the exponent up to 2.
Here a forward writes nothing: softplus and 2·sigmoid keep every parameter inside its range, and no gradient is cut off.
Legend: h query heads, n distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import DistanceBias
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_distances, exact_dtype, on_device_of

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num

Kernel = Literal["log", "power"]


class KERPLE(DistanceBias):
    """-r1·ln(1 + r2·|distance|) or -r1·|distance|^r2, r1 and r2 learned for each head. Any length, integers or reals.

    n_heads  query heads
    kernel   "log", which extrapolates best in the paper, or "power"; power with r2 = 1 is ALiBi with learned slopes

    Parameters: scale [n_heads], r1 = softplus(scale); shape [n_heads], r2 = softplus(shape) for "log" and 2·sigmoid(shape)
    for "power". They start as in the authors' code: of the factor outside of the kernel r1 ~ U(0, 2) for "log" and U(0, 1)
    for "power", of the one inside r2 ~ U(0, 1) and U(0, 2).
    Time O(queries + keys) for a call on consecutive positions and as much memory, like ALiBi; O(queries·keys) elsewhere.
    """

    exact_parameters = ("scale", "shape")

    @checked
    def __init__(self, n_heads: int, *, kernel: Kernel = "log") -> None:
        checks.one_of(get_args(Kernel), kernel=kernel)
        super().__init__(n_heads=n_heads, kernel=kernel)
        self.kernel = kernel
        uniform = torch.rand(2, n_heads, dtype=torch.float64).clamp(1e-3, 1 - 1e-3)
        outside, inside = uniform * torch.tensor([[2.0], [1.0]] if kernel == "log" else [[1.0], [2.0]])
        self.scale = nn.Parameter(_inverse_softplus(outside).to(exact_dtype()))
        shape = _inverse_softplus(inside) if kernel == "log" else (inside / 2).logit()
        self.shape = nn.Parameter(shape.to(exact_dtype()))

    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        check_distances(delta)
        on_device_of(self.scale, delta=delta)
        r1, shape = F.softplus(self.scale.double())[:, None], self.shape.double()[:, None]
        distance = delta.abs().double()
        if self.kernel == "log":
            return -r1 * torch.log1p(F.softplus(shape) * distance)
        near = distance == 0  # 0 to a learned power has no derivative
        return (-r1 * distance.where(~near, 1.0) ** (2 * shape.sigmoid())).where(~near, 0.0)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> KERPLE:
        part = KERPLE(**{**self.configuration, "n_heads": stop - start}).to(self.scale)
        part.scale.copy_(self.scale[start:stop])
        part.shape.copy_(self.shape[start:stop])
        return part


def _inverse_softplus(x: Tensor) -> Tensor:
    return x.expm1().log()
