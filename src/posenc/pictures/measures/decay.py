"""How scores change with distance: the sinusoid's similarity, RoPE's score, and the bound that is cited for their decay.

All curves depend on the lag k alone. None of them falls steadily: the bound first rises at 18 → 19 (d_head = 128), the
score of all-ones vectors at 11 → 12, and independent random vectors show no decay at all.

Legend: k lags, n = d/2 pairs, r rows (one query and one key each).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc import frequencies
from posenc.support.checked import checked
from posenc.support.tensors import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


@checked
def sinusoidal_similarity(d_model: int, lags: Num[Tensor, "k"], base: float = 10000.0) -> Float[Tensor, "k"]:
    """PE(p)·PE(p+k) = Σ_i cos kω_i: d/2 at lag 0, the same for k and -k, the same for every p.

    Raises ValueError for an odd width, whose last sine stands alone and makes the product depend on p.
    """
    return _angles(d_model, lags, base).cos().sum(dim=-1)


@checked
def rope_score(d_head: int, lags: Num[Tensor, "k"], base: float = 10000.0) -> Float[Tensor, "k"]:
    """q̂·k̂ for q and k of ones, without 1/√d: 2 Σ_i cos kω_i, twice the sinusoid's similarity at that width."""
    return 2 * sinusoidal_similarity(d_head, lags, base)


@checked
def rope_score_of(
    q: Float[Tensor, "r d"], k: Float[Tensor, "r d"], lags: Num[Tensor, "k"], base: float = 10000.0
) -> Float[Tensor, "r k"]:
    """q̂·k̂ of every row, the query `lag` positions after the key, without 1/√d; pairs are neighbouring channels.

    With q̃ = q_2i + i·q_2i+1 the rotations become one factor: Re Σ_i q̃_i k̃_i* e^(i·lag·ω_i).
    """
    angle = _angles(q.shape[-1], lags, base)  # [k, n]
    turn = torch.polar(torch.ones_like(angle), angle)
    product = _complex(q) * _complex(k).conj()  # [r, n]
    return (product @ turn.T).real


@checked
def rope_bound(d_head: int, lags: Num[Tensor, "k"], base: float = 10000.0) -> Float[Tensor, "k"]:
    """(2/d) Σ_i |S_i|,  S_i = Σ_{j<i} e^(i·k·ω_j),  i = 1 … d/2: the factor of the bound that depends on the lag.

    Summation by parts gives |q̂·k̂| <= max_i |h_{i+1} - h_i| · Σ_i |S_i| with h_i = q̃_i k̃_i* and h_{d/2} = 0.
    Su et al. 2021, "RoFormer", section 3.4.3.
    """
    angle = _angles(d_head, lags, base)
    return torch.polar(torch.ones_like(angle), angle).cumsum(dim=-1).abs().mean(dim=-1)


@checked
def first_rise(curve: Float[Tensor, "k"]) -> int | None:
    """The first index whose successor is larger by more than rounding, 1e-12 of the curve; None where it never rises."""
    with_values(curve=curve)
    rises = (curve.diff() > 1e-12 * curve.abs().max()).nonzero()
    return int(rises[0]) if len(rises) else None


def _angles(d: int, lags: Tensor, base: float) -> Float[Tensor, "k n"]:
    with_values(lags=lags)
    omega = torch.tensor(frequencies.rotary(d, base), dtype=torch.float64)
    if d % 2:
        raise ValueError(
            f"d_model, d_head: expected an even width, got {d}; the last sine of an odd one has no cosine beside it"
        )
    return lags.double()[:, None] * omega


def _complex(x: Float[Tensor, "r d"]) -> Tensor:
    return torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2).contiguous())
