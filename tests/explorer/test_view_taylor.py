"""Taylor's split: orders are the coefficients of the output, and what is left out is the rest."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from posenc import measures
from posenc.explorer import views


def asked(**given):
    """The arrays, the facts, and the variables of the printed program."""
    data = views.data("taylor", given)
    made: dict[str, object] = {}
    exec(data.python, made)
    return {name: np.asarray(array) for name, array in data.arrays.items()}, data.facts, made


def value(page, role: str) -> float:
    return float(page.get_attribute(f"[data-role={role}]", "data-value"))


def attention(x, p, w_q, w_k, epsilon):
    """The output for positions of that size, in numpy."""
    here = x + epsilon * p
    power = np.exp((here @ w_q) @ (here @ w_k).T / 2)
    return power / power.sum(-1, keepdims=True) @ here


def test_orders_are_the_coefficients_of_the_output_and_what_is_left_out_is_the_rest():
    """The coefficients of a polynomial through the outputs at complex circle points, by the discrete Fourier transform."""
    a, facts, made = asked(sentence="这部 电影 很 无聊 但 表演 很 精彩")
    given = [made[name].numpy() for name in ("x", "p", "w_q", "w_k")]
    points, radius = 16, 0.1
    circle = radius * np.exp(2j * np.pi * np.arange(points) / points)
    outputs = np.stack([attention(*given, one) for one in circle])
    coefficients = [(outputs * (circle / radius)[:, None, None] ** -n).mean(0).real / radius**n for n in range(3)]
    assert a["orders"][0] == pytest.approx(np.linalg.norm(coefficients[0]))
    assert a["orders"][1] == pytest.approx(np.linalg.norm(coefficients[1]), rel=1e-9)
    for n, e in enumerate(a["epsilon"]):
        rest = attention(*given, e) - coefficients[0] - e * coefficients[1]
        assert a["left_out"][0, n] == pytest.approx(np.linalg.norm(rest), rel=1e-6)
        assert a["left_out"][1, n] == pytest.approx(np.linalg.norm(rest - e**2 * coefficients[2]), rel=1e-5)
    assert a["orders"][4] == a["left_out"][1, -1]
    assert facts["output_difference"] < 1e-12


def test_after_the_second_order_the_third_is_left_and_without_the_half_the_second():
    a, *_ = asked()
    slopes = np.log(a["left_out"][:, 4] / a["left_out"][:, 0]) / np.log(a["epsilon"][4] / a["epsilon"][0])
    np.testing.assert_allclose(slopes, [2, 3, 2], atol=0.1)


def test_own_is_one_position_alone():
    """Second derivatives of single positions by central differences of the output; the mixed ones by autodiff."""
    a, _, made = asked(sentence="猫 吃 鱼")
    x, p, w_q, w_k = (made[name].numpy() for name in ("x", "p", "w_q", "w_k"))
    h, own = 1e-3, 0
    for m in range(3):
        one = p * (np.arange(3) == m)[:, None]
        plus, here, minus = (attention(x, one, w_q, w_k, e) for e in (h, 0, -h))
        own = own + (plus - 2 * here + minus) / h**2 / 2
    assert a["orders"][2] == pytest.approx(np.linalg.norm(own), rel=1e-5)
    given = [torch.from_numpy(one) for one in (x, p, w_q, w_k)]

    def output(amount):
        here = given[0] + amount[:, None] * given[1]
        return ((here @ given[2]) @ (here @ given[3]).T / 2).softmax(-1) @ here

    hessian = torch.func.jacrev(torch.func.jacrev(output))(torch.zeros(3).double()) / 2
    mixed = hessian.sum((-2, -1)) - hessian.diagonal(dim1=-2, dim2=-1).sum(-1)
    assert a["orders"][3] == pytest.approx(float(mixed.norm()), rel=1e-12)


def test_the_score_ends_with_its_second_order():
    """The sizes of the four terms, which terms checks against their formulas."""
    a, *_ = asked()
    terms = np.asarray(views.data("terms", {}).arrays["stages"][0])
    sizes = [np.linalg.norm(one) for one in (terms[0], terms[1] + terms[2], terms[3])]
    np.testing.assert_allclose(a["score"], sizes, rtol=1e-12)


def test_the_page_shows_each_order_at_the_chosen_size(opened):
    page = opened("taylor?scale=4")
    a, *_ = asked(sentence="cat chases mouse mouse chases cat")
    e = a["epsilon"][4]
    wanted = [a["orders"][0], e * a["orders"][1], e**2 * a["orders"][2], e**2 * a["orders"][3], a["left_out"][1, 4]]
    roles = ("order-value", "order-first", "order-own", "order-mixed", "order-left")
    assert [value(page, role) for role in roles] == pytest.approx(wanted, abs=1e-14)
    assert value(page, "score-first") == pytest.approx(e * a["score"][1])
    assert value(page, "score-left") == 0


def test_two_requests_at_once_are_both_answered():
    """The server computes two at a time, and the levels of forward differentiation belong to the process."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: measures.taylor_split(eps=0.1), range(24)))
    finally:
        sys.setswitchinterval(before)
    assert len(set(found)) == 1
