"""BAM by loops over pairs, from the formula of the authors' README. Bianchessi et al. 2025."""

import math

import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.alibi import ALiBi
from posenc.encodings.bam import BAM

from .by_hand import add, attention, close, draw, products, sees

A, S = [0.3, -1.2, 0.7, 0.0], [1.0, 0.35, -0.4, 2.1]


def made() -> BAM:
    encoding = BAM(4).double()
    with torch.no_grad():
        encoding.log_scale.copy_(torch.tensor(A, dtype=torch.float64))
        encoding.shape.copy_(torch.tensor(S, dtype=torch.float64))
    return encoding


def readme(a, s, distance):
    return -math.exp(a) * (abs(distance) + 1e-5) ** s


def wrong_sign(a, s, distance):
    return -readme(a, s, distance)


def scale_inside(a, s, distance):
    return -((math.exp(a) * (abs(distance) + 1e-5)) ** s)


def without_epsilon(a, s, distance):
    return -math.exp(a) * max(abs(distance), 1e-12) ** s


def biased(q, k, at_q, at_k, formula=readme):
    return add(products(q, k), lambda b, h, i, j: formula(A[h], S[h], at_q[b][i] - at_k[b][j]))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa", "toeplitz"])
@torch.no_grad()
def test_bias_by_loops(impl, causal):
    q, k, v = draw(1, 2, 4, 6, 5), draw(2, 2, 2, 6, 5), draw(3, 2, 2, 6, 5)
    rows, order = [range(40, 46), range(6)], [range(6)] * 2
    at = Positions.arange(2, 6, torch.tensor([40, 0]))
    got = attend(*map(torch.from_numpy, (q, k, v)), made(), at, causal=causal, impl=impl)
    close(got, attention(biased(q, k, rows, rows), v, sees(order, order, causal=causal)))


def test_real_positions_elsewhere():
    q, k, v = draw(1, 1, 4, 3, 5), draw(2, 1, 4, 5, 5), draw(3, 1, 4, 5, 5)
    at_q, at_k = [[0.5, -2.25, 9.0]], [[0.0, 7.75, 1.5, 2.0, 3.0]]
    positions = (Positions.at(torch.tensor(rows, dtype=torch.float64)) for rows in (at_q, at_k))
    got = attend(*map(torch.from_numpy, (q, k, v)), made(), *positions, causal=False)
    close(got, attention(biased(q, k, at_q, at_k), v, lambda b, i, j: True))


@pytest.mark.parametrize("mistake", [wrong_sign, scale_inside, without_epsilon])
def test_the_oracle_sees_a_broken_formula(mistake):
    q, k, v = (draw(seed, 1, 4, 6, 5) for seed in (1, 2, 3))
    rows = [range(6)]
    got = attend(*map(torch.from_numpy, (q, k, v)), made(), Positions.arange(1, 6))
    with pytest.raises(AssertionError):
        close(got, attention(biased(q, k, rows, rows, mistake), v, sees(rows, rows)), atol=1e-3)


def test_an_exponent_of_one_is_alibi_and_fresh_parameters_prefer_no_distance():
    delta = torch.arange(-9, 10)
    encoding = BAM(2).double()
    assert (encoding.at_distance(delta) == -1).all()
    with torch.no_grad():
        encoding.shape.fill_(1.0)
        encoding.log_scale.copy_(torch.tensor([0.5, 0.25]).log())
    close(encoding.at_distance(delta), ALiBi(2, slopes=(0.5, 0.25)).at_distance(delta), atol=1e-5)


def test_gradients_by_differences():
    encoding, at = made(), Positions.arange(1, 4)
    q, k, v = (torch.from_numpy(draw(seed, 1, 4, 4, 3)) for seed in (1, 2, 3))
    assert torch.autograd.gradcheck(lambda *_: attend(q, k, v, encoding, at), tuple(encoding.parameters()))


def test_the_toeplitz_backend_serves_inference_alone():
    q, at = torch.zeros(1, 4, 3, 2, dtype=torch.float64), Positions.arange(1, 3)
    with torch.no_grad():
        attend(q, q, q, made(), at, impl="toeplitz")
    with pytest.raises(ValueError, match="toeplitz"):
        attend(q, q, q, made(), at, impl="toeplitz")


def test_a_slice_of_the_heads():
    delta = torch.arange(-5, 6)
    close(made().heads(1, 3).at_distance(delta), made().at_distance(delta)[1:3])


def test_wrong_arguments():
    with pytest.raises(ValueError, match="n_heads: expected a whole number from 1, got 0"):
        BAM(0)
