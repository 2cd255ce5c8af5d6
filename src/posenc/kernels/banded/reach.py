"""How far back a query must look under a bias that falls with distance: beyond, weights are exactly 0.

A query's largest logit is at least that of its own key. By Cauchy and Schwarz |q_i·k_j·scale| ≤ bound, the product of the
largest norms, so that key j weighs at most exp(bias[i - j] - bias[0] + 2·bound) times the own key. The kernel's weights
below e^-86.6 are 0 (`exponentiate` in lanes.h), so leaving such keys out loses nothing.

Legend: b batch, h query heads, g key heads, t tokens, d channel, n distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from posenc.shapes import Float, Int

WEIGHTLESS = 88.0  # more than 86.6, for what rounding may add
ROUNDING = 1.001  # of bounds and biases, in fp32


def can_fall(bias: Float[Tensor, "h n"]) -> bool:
    """Whether any head's last distance can be weightless, whatever the queries and keys."""
    return bool((bias[:, 0] - bias[:, -1] > WEIGHTLESS).any())


def reaches(
    q: Float[Tensor, "b h t d"], k: Float[Tensor, "b g t d"], bias: Float[Tensor, "h n"], scale: float
) -> Int[Tensor, "b h"] | None:
    """The last distance that is not weightless, for every row and head; None if q, k or the bias at 0 are not finite."""
    longest_q, longest_k = (torch.linalg.vector_norm(x, dim=3).amax(2) for x in (q, k))
    bound = abs(scale) * longest_q * longest_k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    least = bias[:, 0] - WEIGHTLESS - 2 * ROUNDING * bound - (ROUNDING - 1) * bias[:, 0].abs()
    if not bool(least.isfinite().all()):
        return None
    # The largest bias from every distance on: it falls even where the bias rises again. NaN weighs something.
    from_here = bias.nan_to_num(nan=torch.inf, neginf=-torch.inf).flip(1).cummax(1).values.flip(1)
    return (
        torch.searchsorted(-from_here.expand(len(q), -1, -1).contiguous(), -least[..., None], right=True)[..., 0] - 1
    ).clamp(0)
