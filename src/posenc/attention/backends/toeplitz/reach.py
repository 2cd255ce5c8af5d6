"""Causal rows under a bias by distance, in fp32 on the CPU without gradients: keys without weight are not read.

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
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

LONG, WIDE = 64, 64  # tokens and channels from which on a row is taken
STORED = 2048  # longer rows with fewer channels too: up to here the lab has stored results, which repeat bit for bit
WEIGHTLESS = 82.0  # a logit as far below the largest has no weight in our kernel: e^-80 and less is 0


def served(q: Tensor, k: Tensor, v: Tensor, at_q: Positions, at_k: Positions, causal: bool) -> bool:
    """Whether `attended` can compute this, and is meant to."""
    if not (causal and at_q is at_k and at_q.consecutive_in == "row" and banded.served(q, k, v)):
        return False
    return q.shape[2] > STORED or q.shape[3] >= WIDE


def attended(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    v: Float[Tensor, "b g t d"],
    bias: Float[Tensor, "h n"],
    scale: float,
) -> Float[Tensor, "b h t d"]:
    """Attention of every query to its own key and all before it."""
    out = q.new_empty(q.shape[0], q.shape[2], q.shape[1], q.shape[3]).transpose(1, 2)
    reach = reach_of(q, k, v, bias, scale)
    banded.attended(q, k, v, bias, scale, int(reach.max()), out, reach)
    return out


def reach_of(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    v: Float[Tensor, "b g t d"],
    bias: Float[Tensor, "h n"],
    scale: float,
) -> Int[Tensor, "b h"]:
    """The farthest distance at which a key may have a weight.

    It is the whole row where a number is infinite or none: then no key is left out.
    """
    of_q, of_k = (torch.linalg.vector_norm(x, dim=-1).amax(-1) for x in (q, k))  # [b, h], [b, g]
    spread = (
        2.001 * abs(scale) * of_q * of_k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    )  # .001 is more than rounding
    if not all(bool(end.isfinite()) for end in torch.aminmax(v)):
        spread = torch.full_like(spread, torch.inf)
    weightless = (bias[:, :1] - bias) > (WEIGHTLESS + spread)[..., None]  # [b, h, n]; False for NaN
    return torch.arange(bias.shape[1], device=q.device).where(~weightless, 0).amax(-1)
