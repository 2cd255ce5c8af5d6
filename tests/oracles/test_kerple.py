"""KERPLE by loops over pairs. Chi et al. 2022, equations of the logarithmic and the power variant."""

import math

import pytest
import torch

from posenc import Positions, attend
from posenc.checking import laws
from posenc.encodings.alibi import ALiBi
from posenc.encodings.kerple import KERPLE

from .by_hand import add, attention, close, draw, products, sees

R1, R2 = [0.3, 1.7, 0.02, 4.0], [0.9, 0.05, 1.99, 1.0]


def with_scales(kernel: str, r1=R1, r2=R2) -> KERPLE:
    """The inverses of softplus and of 2·sigmoid, written out."""
    encoding = KERPLE(len(r1), kernel=kernel).double()
    with torch.no_grad():
        for head, (one, two) in enumerate(zip(r1, r2, strict=True)):
            encoding.scale[head] = math.log(math.exp(one) - 1)
            encoding.shape[head] = math.log(math.exp(two) - 1) if kernel == "log" else math.log(two / (2 - two))
    return encoding


def papers(kernel: str, r1: float, r2: float, distance: float) -> float:
    if kernel == "log":
        return -r1 * math.log(1 + r2 * abs(distance))
    return -r1 * abs(distance) ** r2


def biased(q, k, at_q, at_k, kernel, formula=papers):
    return add(products(q, k), lambda b, h, i, j: formula(kernel, R1[h], R2[h], at_q[b][i] - at_k[b][j]))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa", "toeplitz"])
@pytest.mark.parametrize("kernel", ["log", "power"])
def test_bias_by_loops(kernel, impl, causal):
    q, k, v = draw(1, 2, 4, 6, 5), draw(2, 2, 2, 6, 5), draw(3, 2, 2, 6, 5)
    rows, order = [range(40, 46), range(6)], [range(6)] * 2
    at = Positions.arange(2, 6, torch.tensor([40, 0]))
    got = attend(*map(torch.from_numpy, (q, k, v)), with_scales(kernel), at, causal=causal, impl=impl)
    close(got, attention(biased(q, k, rows, rows, kernel), v, sees(order, order, causal=causal)))


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_real_positions_elsewhere(kernel):
    q, k, v = draw(1, 2, 4, 3, 5), draw(2, 2, 4, 5, 5), draw(3, 2, 4, 5, 5)
    at_q, at_k = [[0.5, -2.25, 9.0], [1.0, 0.0, 3.5]], [[0.0, 7.75, 1.5, 2.0, 3.0], [0.25, 0.5, 1.0, 2.0, 8.0]]
    positions = (Positions.at(torch.tensor(rows, dtype=torch.float64)) for rows in (at_q, at_k))
    got = attend(*map(torch.from_numpy, (q, k, v)), with_scales(kernel), *positions, causal=False)
    close(got, attention(biased(q, k, at_q, at_k, kernel), v, lambda b, i, j: True))


def wrong_sign(kernel, r1, r2, distance):
    return -papers(kernel, r1, r2, distance)


def without_the_one(kernel, r1, r2, distance):
    return -r1 * math.log(r2 * abs(distance)) if distance else 0.0


def exchanged(kernel, r1, r2, distance):
    return papers(kernel, r2, r1, distance)


@pytest.mark.parametrize("mistake", [wrong_sign, without_the_one, exchanged])
def test_the_oracle_sees_a_broken_formula(mistake):
    q, k, v = (draw(seed, 1, 4, 6, 5) for seed in (1, 2, 3))
    rows = [range(6)]
    got = attend(*map(torch.from_numpy, (q, k, v)), with_scales("log"), Positions.arange(1, 6))
    with pytest.raises(AssertionError):
        close(got, attention(biased(q, k, rows, rows, "log", mistake), v, sees(rows, rows)), atol=1e-3)


def test_power_one_is_alibi():
    delta = torch.arange(-9, 10)
    power = with_scales("power", r1=[0.5, 0.25], r2=[1.0, 1.0])
    close(power.at_distance(delta), ALiBi(2, slopes=(0.5, 0.25)).at_distance(delta))


def test_the_logarithm_of_large_distances_does_not_overflow():
    far = with_scales("log").at_distance(torch.tensor([2**40]))
    for head in range(4):
        assert math.isclose(far[head].item(), -R1[head] * math.log(1 + R2[head] * 2**40), rel_tol=1e-12)


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_fresh_parameters_lie_in_the_ranges_of_the_authors_code(kernel):
    torch.manual_seed(0)
    bias = KERPLE(4096, kernel=kernel).double().at_distance(torch.tensor([1, 0]))
    assert not bias[:, 1].any()
    if kernel == "power":  # |1|^r2 is 1, so this is r1 ~ U(0, 1)
        assert 0 < -bias[:, 0].max() < 0.01
        assert 0.99 < -bias[:, 0].min() < 1
        assert abs(-bias[:, 0].mean() - 0.5) < 0.02


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_gradients_by_differences(kernel):
    encoding, at = with_scales(kernel), Positions.arange(1, 4)
    q, k, v = (torch.from_numpy(draw(seed, 1, 4, 4, 3)) for seed in (1, 2, 3))
    inputs = tuple(encoding.parameters())
    assert torch.autograd.gradcheck(lambda *_: attend(q, k, v, encoding, at), inputs)


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_a_slice_of_the_heads(kernel):
    delta = torch.arange(-5, 6)
    whole = with_scales(kernel)
    close(whole.heads(1, 3).at_distance(delta), whole.at_distance(delta)[1:3])


@pytest.mark.acceptance
def test_the_power_kernel_obeys_the_laws():
    laws.check(laws.draw_parameters(KERPLE(4, kernel="power"), seed=1))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="kernel: expected one of 'log', 'power', got 'exp'"):
        KERPLE(4, kernel="exp")
    with pytest.raises(ValueError, match="n_heads: expected a whole number from 1, got 0"):
        KERPLE(0)
