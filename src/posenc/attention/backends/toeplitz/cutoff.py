"""Causal rows under a bias by distance, in fp32 and bf16 on the CPU: keys without weight are not read.

    weight of the key at distance r ≤ e^(bias[r] - bias[0] + 2·|q|·|k|·scale) · weight of the query's own key

because no product is larger than that of the norms. Below e^-80 our kernel gives no weight, and a sum in fp32, whose
largest term is 1, would not show it. A head needs no keys further back: with ALiBi's slope m about 100/m tokens. What
torch's kernel computes there are subnormal numbers, which are slow.
Legend: b batch, h query heads, g key heads, t tokens, d channels, n distances 0 … t - 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.kernels import banded
from posenc.kernels.banded import gradients as banded_gradients

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

WEIGHTLESS = 82.0  # a logit as far below the largest has no weight in our kernel: e^-80 and less is 0


def attend(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    v: Float[Tensor, "b g t d"],
    bias: Float[Tensor, "h n"],
    scale: float,
) -> tuple[Float[Tensor, "b h t d"], Float[Tensor, "b h t"]]:
    """Attention of every query to its own key and all before it, and the logarithms of the sums of exponentials. Only where
    `banded.can_serve`.

    bias    of the distances 0 … t - 1
    """
    out = q.new_empty(q.shape[0], q.shape[2], q.shape[1], q.shape[3], dtype=torch.float32).transpose(1, 2)
    sums = bias.new_empty(q.shape[0], q.shape[2], q.shape[1]).transpose(1, 2)
    cutoff = cutoffs_of(q, k, v, bias, scale)
    banded.attend(q, k, v, bias, scale, int(cutoff.max()), out, cutoff, sums)
    return out.to(q.dtype), sums


def gradients(
    grad: Float[Tensor, "b h t d"],
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    v: Float[Tensor, "b g t d"],
    bias: Float[Tensor, "h n"],
    out: Float[Tensor, "b h t d"],
    sums: Float[Tensor, "b h t"],
    grad_sums: Float[Tensor, "b h t"] | None,
    scale: float,
    learned: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Gradients of `attend`: of q, k, v and, where it is `learned`, of the bias, in fp32."""
    inner = (grad.float() * out.float()).sum(dim=3)
    if grad_sums is not None:  # the logarithm of a sum of exponentials has the probabilities as its gradient
        inner = inner - grad_sums
    cutoff = cutoffs_of(q, k, v, bias, scale)
    return banded_gradients.gradients(grad, q, k, v, bias, sums, inner, scale, cutoff, learned)


def cutoffs_of(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    v: Float[Tensor, "b g t d"],
    bias: Float[Tensor, "h n"],
    scale: float,
) -> Int[Tensor, "b h"]:
    """The farthest distance at which a key may have a weight.

    It is the whole row where a number is infinite or none: then no key is left out.
    """
    of_q, of_k = (torch.linalg.vector_norm(x, dim=-1, dtype=torch.float32).amax(-1) for x in (q, k))  # [b, h], [b, g]
    spread = (
        2.001 * abs(scale) * of_q * of_k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    )  # .001 is more than rounding
    if not all(bool(end.isfinite()) for end in torch.aminmax(v)):
        spread = torch.full_like(spread, torch.inf)
    weightless = (bias[:, :1] - bias) > (WEIGHTLESS + spread)[..., None]  # [b, h, n]; False for NaN
    return torch.arange(bias.shape[1], device=q.device).where(~weightless, 0).amax(-1)
