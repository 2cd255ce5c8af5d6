"""How much of the position signal is relative: attention expanded to second order in the positions.

    f(X + P) = f(X) + p_mᵀ∂_m f + p_nᵀ∂_n f + ½ p_mᵀ∂²_mm f p_m + ½ p_nᵀ∂²_nn f p_n + p_mᵀ∂²_mn f p_n + O(ε³)
               value   gradient_m gradient_n  curvature_m         curvature_n          mixed            remainder

Only the mixed term sees both positions at once. The two factors ½ are needed: without them the remainder is of second
order, not third.

Legend: t tokens, d d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding
from posenc.encodings.sinusoidal import sinusoidal_table
from posenc.pictures.measures.layers import Layers, normal, seeded
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.forward_mode import ONE_AT_A_TIME

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class TaylorTerms(NamedTuple):
    """The terms of the expansion; they sum to f(X + P)."""

    value: float
    gradient_m: float
    gradient_n: float
    curvature_m: float
    curvature_n: float
    mixed: float
    remainder: float

    @property
    def relative_share(self) -> float:
        """|mixed| over the sum of the sizes of all terms that hold a position; the remainder is none of them."""
        sizes = [abs(term) for term in self[1:6]]
        return sizes[-1] / sum(sizes)

    @property
    def remainder_without_half(self) -> float:
        """The remainder without the factors ½, which is of second order."""
        return self.remainder - self.curvature_m - self.curvature_n


@checked
def taylor_split(
    *,
    eps: float = 1e-3,
    m: int = 1,
    n: int = 3,
    length: int = 5,
    d_model: int = 8,
    n_heads: int = 2,
    causal: bool = False,
    channel: int = 0,
    base: float = 10000.0,
    seed: int = 0,
) -> TaylorTerms:
    """The split of one output, `channel` of the later of the two tokens, of an attention layer with random weights.

    The positions ε·PE(m) and ε·PE(n), sinusoidal, are added to tokens m and n of a random X. The derivatives are those of
    (a, b) ↦ f(X + a·εp_m + b·εp_n) at 0, by automatic differentiation in fp64; the chain rule makes them the terms above.
    """
    terms = _split(eps, m, n, length, d_model, n_heads, causal, base, seed)
    if not 0 <= channel < d_model:
        raise ValueError(f"channel: expected 0 … {d_model - 1}, got {channel}")
    return TaylorTerms(*terms[:, max(m, n), channel].tolist())


@checked
def relative_share(
    *,
    eps: float = 1.0,
    m: int = 1,
    n: int = 3,
    length: int = 5,
    d_model: int = 8,
    n_heads: int = 2,
    causal: bool = False,
    base: float = 10000.0,
    seed: int = 0,
) -> float:
    """Σ|mixed| / Σ|all position terms| over every output of the layer, so that no single one decides."""
    sizes = _split(eps, m, n, length, d_model, n_heads, causal, base, seed)[1:6].abs().sum(dim=(1, 2))
    return float(sizes[-1] / sizes.sum())


def _split(
    eps: float, m: int, n: int, length: int, d_model: int, n_heads: int, causal: bool, base: float, seed: int
) -> Float[Tensor, "7 t d"]:
    if m == n or not (0 <= m < length and 0 <= n < length):
        raise ValueError(f"m, n: expected two different tokens of 0 … {length - 1}, got {m} and {n}")
    random = seeded(seed)
    x = normal(1, length, d_model, random=random)
    attention = Layers.draw(d_model, n_heads, None, 1, random)
    at, blind = Positions.arange(1, length), PositionalEncoding()
    table = eps * sinusoidal_table(length, d_model, base, dtype=torch.float64)
    directions = torch.zeros(2, length, d_model, dtype=torch.float64)
    directions[0, m], directions[1, n] = table[m], table[n]

    def output(amount: Float[Tensor, "2"]) -> Float[Tensor, "t d"]:
        return attention(x + torch.tensordot(amount, directions, dims=1), blind, at, causal)[0]

    origin = torch.zeros(2, dtype=torch.float64)
    value = output(origin)
    with ONE_AT_A_TIME:
        gradient = torch.func.jacfwd(output)(origin)  # [t, d, 2]
        curvature = torch.func.jacfwd(torch.func.jacfwd(output))(origin)  # [t, d, 2, 2]
    terms = torch.stack(
        [
            value,
            gradient[..., 0],
            gradient[..., 1],
            curvature[..., 0, 0] / 2,
            curvature[..., 1, 1] / 2,
            curvature[..., 0, 1],
        ]
    )
    if not bool(torch.isfinite(terms).all()):
        raise ValueError(f"eps: expected a number whose powers are finite, got {eps:g}")
    remainder = output(torch.ones_like(origin)) - terms.sum(dim=0)
    return torch.cat([terms, remainder[None]])
