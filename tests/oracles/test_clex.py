"""CLEX by loops: the authors' equation of ln ω, solved in another way. Chen et al. 2023, arXiv 2310.16450."""

import math

import pytest
import torch

from posenc import Positions, attend, create
from posenc.encodings.scalings.clex import CLEX

from .by_hand import attention, close, draw, products, sees, turned

D, WIDTH, BASE = 8, 2, 10000.0


def alpha(t):
    return 2 * t - 1


def slow_alpha(t):
    return t


def stretched(n, t, grows):
    return (BASE * grows(t) ** (D / (D - 2))) ** (-2 * n / D)


def solved(up, down, t, act=math.tanh, grows=alpha, sign=1.0, reads_time=True, steps=400):
    """dz/dt = a((z + ln ν) U)·D + d ln ν/dt by the classic Runge-Kutta method; d ln ν/dt by a difference."""
    pairs = range(D // 2)

    def slope(now, z):
        read = [z[n] + (math.log(stretched(n, now, grows)) if reads_time else 0.0) for n in pairs]
        hidden = [act(sum(read[n] * up[n][w] for n in pairs)) for w in range(len(down))]
        known = [math.log(stretched(n, now + 1e-6, grows) / stretched(n, now - 1e-6, grows)) / 2e-6 for n in pairs]
        return [sign * sum(hidden[w] * down[w][n] for w in range(len(down))) + known[n] for n in pairs]

    z, h = [math.log(BASE ** (-2 * n / D)) for n in pairs], (t - 1) / steps
    for number in range(steps):
        now = 1 + number * h
        first = slope(now, z)
        second = slope(now + h / 2, [a + h / 2 * b for a, b in zip(z, first, strict=True)])
        third = slope(now + h / 2, [a + h / 2 * b for a, b in zip(z, second, strict=True)])
        last = slope(now + h, [a + h * b for a, b in zip(z, third, strict=True)])
        z = [
            a + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4) for a, k1, k2, k3, k4 in zip(z, first, second, third, last, strict=True)
        ]
    return [math.exp(one) for one in z]


def silu(x):
    return x / (1 + math.exp(-x))


def drawn(**options):
    encoding = CLEX(D, **{"width": WIDTH, "step": 0.02, **options}).double()
    with torch.no_grad():
        encoding.up.copy_(torch.from_numpy(0.3 * draw(7, D // 2, WIDTH * D)))
        encoding.down.copy_(torch.from_numpy(0.1 * draw(8, WIDTH * D, D // 2)))
    return encoding


@pytest.mark.parametrize(("activation", "by_hand"), [("tanh", math.tanh), ("silu", silu)])
@pytest.mark.parametrize("factor", [1.0, 1.5, 4.0])
def test_frequencies_solve_the_authors_equation(factor, activation, by_hand):
    encoding = drawn(factor=factor, activation=activation)
    expected = solved(encoding.up.tolist(), encoding.down.tolist(), factor, by_hand)
    assert encoding.frequencies_now().values == pytest.approx(expected, rel=1e-7)
    start = [BASE ** (-2 * n / D) for n in range(D // 2)]
    assert (encoding.frequencies_now().values == pytest.approx(start, rel=1e-12)) is (factor == 1)


@pytest.mark.parametrize("wrong", [{"act": silu}, {"grows": slow_alpha}, {"sign": -1.0}, {"reads_time": False}])
def test_the_oracle_sees_a_broken_formula(wrong):
    encoding = drawn(factor=4.0)
    expected = solved(encoding.up.tolist(), encoding.down.tolist(), 4.0, steps=40, **wrong)
    assert encoding.frequencies_now().values != pytest.approx(expected, rel=1e-2)


def test_the_default_step_is_small_enough():
    assert drawn(factor=8.0, step=0.1).frequencies_now().values == pytest.approx(
        drawn(factor=8.0).frequencies_now().values, rel=1e-6
    )


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_attention_turns_by_them(layout):
    encoding = drawn(factor=3.0, layout=layout)
    omega = solved(encoding.up.tolist(), encoding.down.tolist(), 3.0)
    q, k, v = draw(1, 1, 2, 5, D), draw(2, 1, 2, 5, D), draw(3, 1, 2, 5, D)
    at = [list(range(70, 75))]
    turn_q, turn_k = q.copy(), k.copy()
    for made in (turn_q, turn_k):
        for h in range(2):
            for t in range(5):
                made[0, h, t] = turned(made[0, h, t], [at[0][t] * one for one in omega], layout)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(1, 5, torch.tensor([70])))
    close(got, attention(products(turn_q, turn_k), v, sees(at, at)), atol=1e-5)  # 70 turns of an error of 1e-7


def test_a_fresh_one_is_ntk_scaling():
    ntk = create("ntk", d_head=D, factor=7.0).frequencies.values
    assert CLEX(D, factor=4.0).frequencies_now().values == pytest.approx(ntk, rel=1e-14)


def test_lengths_share_the_parameters():
    encoding = drawn(trained_length=100, largest_factor=6)
    assert [encoding.at_length(n).factor for n in (1, 100, 101, 200, 201, 5000)] == [1, 1, 2, 2, 3, 6]
    assert encoding.at_length(150) is encoding
    longer = encoding.at_length(350)
    assert longer.configuration["factor"] == longer.factor == 4.0
    assert longer.identity != encoding.identity
    before = longer.frequencies_now()
    with torch.no_grad():
        encoding.down.mul_(2)
    assert longer.frequencies_now() != before
    q = torch.randn(1, 1, 4, D, dtype=torch.float64)
    attend(q, q, q, longer, Positions.arange(1, 4)).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in encoding.parameters())


def test_solved_frequencies_make_a_rope_that_does_the_same():
    encoding = drawn(factor=3.0)
    tensors = [torch.from_numpy(draw(seed, 1, 2, 5, D)) for seed in (1, 2, 3)]
    at = Positions.arange(1, 5)
    fixed = create("rope", d_head=D, layout="half", frequencies=encoding.frequencies_now())
    close(attend(*tensors, fixed, at), attend(*tensors, encoding, at))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="factor: expected at least 1"):
        CLEX(D, factor=0.5)
    with pytest.raises(ValueError, match="factor, step: expected at most 10000 steps"):
        CLEX(D, factor=1e300)
    with pytest.raises(ValueError, match="activation"):
        CLEX(D, activation="relu")
    with pytest.raises(ValueError, match="d_head"):
        CLEX(2)
