"""Wavelets by loops over pairs and channels. Oka et al. 2025, equations 10 to 14."""

import math

import pytest
import torch

from posenc import Positions, attend, create
from posenc.encodings.shaw import Shaw
from posenc.encodings.wavelet import Wavelet

from .by_hand import add, attention, close, draw, products, sees

D, S = 6, 2


def ricker(u):
    return (1 - u**2) * math.exp(-(u**2) / 2)


def gaussian(u):
    return math.exp(-(u**2))


def vector(m, n, wave=ricker, narrowest=1.0, mirrored=False, fixed=False):
    """Equation 14: a = 2^0, 2^1, …; b = 0, 1, …, d/s - 1."""
    t = n - m if mirrored else m - n
    return [wave((t - b) / (narrowest * (1 if fixed else 2**power))) for power in range(S) for b in range(D // S)]


def expected(q, k, v, at_q, at_k, may, **wrong):
    logits = add(
        products(q, k),
        lambda b, h, i, j: (
            sum(x * y for x, y in zip(q[b, h, i], vector(at_q[b][i], at_k[b][j], **wrong), strict=True)) / math.sqrt(D)
        ),
    )
    return attention(logits, v, may)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa", "relative"])
def test_keys_by_loops(impl, causal):
    q, k, v = draw(1, 2, 4, 9, D), draw(2, 2, 2, 9, D), draw(3, 2, 2, 9, D)
    rows, order = [range(5, 14), range(9)], [range(9)] * 2
    at = Positions.arange(2, 9, torch.tensor([5, 0]))
    got = attend(*map(torch.from_numpy, (q, k, v)), Wavelet(D, n_scales=S), at, causal=causal, impl=impl)
    close(got, expected(q, k, v, rows, rows, sees(order, order, causal=causal)))


@pytest.mark.parametrize("impl", ["reference", "relative"])
def test_queries_and_keys_that_begin_elsewhere(impl):
    q, k, v = draw(1, 1, 2, 3, D), draw(2, 1, 2, 7, D), draw(3, 1, 2, 7, D)
    at_q, at_k = Positions.arange(1, 3, torch.tensor([6])), Positions.arange(1, 7, torch.tensor([2]))
    got = attend(*map(torch.from_numpy, (q, k, v)), Wavelet(D, n_scales=S, narrowest=4.0), at_q, at_k, impl=impl)
    rows = [range(6, 9)], [range(2, 9)]
    close(got, expected(q, k, v, *rows, sees(*rows), narrowest=4.0))


def test_real_positions_in_any_order():
    q, k, v = draw(1, 2, 4, 3, D), draw(2, 2, 4, 5, D), draw(3, 2, 4, 5, D)
    at_q, at_k = [[0.5, -2.25, 9.0], [1.0, 0.0, 3.5]], [[0.0, 7.75, 1.5, 2.0, 3.0], [0.25, 0.5, 1.0, 2.0, 8.0]]
    positions = (Positions.at(torch.tensor(rows, dtype=torch.float64)) for rows in (at_q, at_k))
    got = attend(*map(torch.from_numpy, (q, k, v)), Wavelet(D, n_scales=S), *positions, causal=False)
    close(got, expected(q, k, v, at_q, at_k, lambda b, i, j: True))


@pytest.mark.parametrize("wrong", [{"wave": gaussian}, {"mirrored": True}, {"fixed": True}, {"narrowest": 2.0}])
def test_the_oracle_sees_a_broken_formula(wrong):
    q, k, v = (draw(seed, 1, 4, 6, D) for seed in (1, 2, 3))
    rows = [range(6)]
    got = attend(*map(torch.from_numpy, (q, k, v)), Wavelet(D, n_scales=S), Positions.arange(1, 6))
    with pytest.raises(AssertionError):
        close(got, expected(q, k, v, rows, rows, sees(rows, rows), **wrong), atol=1e-3)


def test_shaw_with_wavelets_in_its_table_is_the_same():
    shaw = Shaw(D, max_distance=8, values=False).double()
    with torch.no_grad():
        shaw.keys.copy_(torch.tensor([vector(0, n) for n in range(-8, 9)], dtype=torch.float64))
    tensors = [torch.from_numpy(draw(seed, 1, 2, 8, D)) for seed in (1, 2, 3)]
    at = Positions.arange(1, 8)
    close(attend(*tensors, Wavelet(D, n_scales=S), at, causal=False), attend(*tensors, shaw, at, causal=False).detach())


def test_defaults_are_those_of_the_paper():
    assert Wavelet(128).scales == tuple(2.0**n for n in range(8))
    assert Wavelet(6).scales == (1.0, 2.0)
    assert Wavelet(128, narrowest=4.0).scales == tuple(2.0**n for n in range(2, 10))
    assert not list(Wavelet(8).parameters())


def test_far_away_every_wavelet_is_zero():
    tensors = [torch.from_numpy(draw(seed, 1, 2, 1, 16)) for seed in (1, 2)]
    v = torch.from_numpy(draw(3, 1, 2, 2, 16))
    at = Positions.at(torch.tensor([[0]])), Positions.at(torch.tensor([[2**40, -(2**40)]]))
    k = tensors[1].expand(-1, -1, 2, -1)
    got = [attend(tensors[0], k, v, one, *at, causal=False) for one in (Wavelet(16), create("nope"))]
    close(got[0], got[1])


def test_wrong_arguments():
    with pytest.raises(ValueError, match="n_scales: d_head=6 cannot be shared evenly by 4 scales"):
        Wavelet(6, n_scales=4)
    with pytest.raises(ValueError, match="narrowest"):
        Wavelet(8, narrowest=0.0)
    q = torch.zeros(1, 1, 3, 4)
    with pytest.raises(ValueError, match="d_head"):
        attend(q, q, q, Wavelet(8), Positions.arange(1, 3))
