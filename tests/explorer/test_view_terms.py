"""The four terms of a score: each agrees with its formula; their sum, diagonals and changes under a shift."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from widths import fits

from posenc.explorer import views

SENTENCES = ("猫 吃 鱼", "这部 电影 很 无聊 但 表演 很 精彩")


def asked(**given):
    data = views.data("terms", given)
    return {name: np.asarray(array) for name, array in data.arrays.items()}, data.facts


def sinusoid(positions, base: float) -> np.ndarray:
    angle = np.asarray(positions)[:, None] * base ** -np.array([0, 0.5])
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1)  # [t, 2, 2]


def value(page, role: str = "value") -> float:
    return float(page.get_attribute(f"[data-role={role}]", "data-value"))


GIVEN = ({}, {"shift": 37, "base": 20.0, "seed": 3}, {"projection": "identity"}, {"sentence": SENTENCES[1]})


@pytest.mark.parametrize("given", GIVEN)
def test_the_terms_are_their_formulas_and_sum_to_the_score(given):
    a, facts = asked(**given)
    t, shift, base = len(facts["words"]), given.get("shift", 0), given.get("base", 100.0)
    x, p = a["x"], sinusoid(np.arange(shift, shift + t), base).reshape(t, 4)
    through = a["w_q"] @ a["w_k"].T / 2
    wanted = [x @ through @ x.T, x @ through @ p.T, p @ through @ x.T, p @ through @ p.T]
    np.testing.assert_allclose(a["absolute"], wanted, atol=1e-11)
    np.testing.assert_allclose(a["absolute_score"], (x + p) @ through @ (x + p).T, atol=1e-11)
    q, k = x @ a["w_q"], x @ a["w_k"]
    u, v = a["u"], a["v"]
    for i in range(t):
        for j in range(t):
            r = sinusoid([i - j], base)[0].T.reshape(4) @ a["w_r"]  # [sin | cos]
            four = np.array([q[i] @ k[j], q[i] @ r, u @ k[j], v @ r]) / 2
            np.testing.assert_allclose(a["relative"][:, i, j], four, atol=1e-12)
            assert a["relative_score"][i, j] == pytest.approx(four.sum(), abs=1e-12)
    for kind in ("absolute", "relative"):
        power = np.exp(a[f"{kind}_score"])
        np.testing.assert_allclose(a[f"{kind}_weights"], power / power.sum(-1, keepdims=True), atol=1e-12)
        assert facts[kind]["difference"] < 1e-12


def still(numbers) -> list[bool]:
    return [number < 1e-12 for number in numbers]


def test_who_survives_a_shift_and_whose_diagonals_are_constant():
    """Content · content, others only if projections are the identity; with Transformer-XL all, one by i-j alone."""
    _, drawn = asked(shift=100)
    _, identity = asked(shift=100, projection="identity")
    assert still(drawn["absolute"]["moved"]) == [True, False, False, False]
    assert still(identity["absolute"]["moved"]) == [True, False, False, True]
    assert still(drawn["absolute"]["along_diagonals"]) == [False] * 4
    assert still(identity["absolute"]["along_diagonals"]) == [False, False, False, True]
    for facts in (drawn, identity):
        assert still(facts["relative"]["moved"]) == [True] * 4
        assert still(facts["relative"]["along_diagonals"]) == [False, False, False, True]


def test_equal_words_have_equal_rows_of_content():
    content = asked()[0]["absolute"][0]
    assert (content[0] == content[5]).all()
    assert (content[0] != content[1]).any()


def test_the_printed_program_makes_the_same_arrays():
    data = views.data("terms", {"shift": 5, "seed": 1})
    made: dict[str, object] = {}
    exec(data.python, made)
    for name, array in data.arrays.items():
        np.testing.assert_array_equal(made[name], array)


def test_a_cell_gives_four_numbers_their_sum_and_its_weight(opened):
    page = opened("terms")
    a, _ = asked()
    page.click("[data-term=cp] td[data-row='3'][data-column='4']")
    page.wait_for_url(re.compile("row=3"))
    assert value(page, "term") == pytest.approx(a["absolute"][1, 3, 4], abs=1e-14)
    assert value(page) == pytest.approx(a["absolute_score"][3, 4], abs=1e-14)
    assert value(page, "weight") == pytest.approx(a["absolute_weights"][3, 4], abs=1e-14)
    line = page.inner_text(".formula-line:nth-child(2)").split("] =")[1]
    numbers = [float(n.replace("−", "-")) for n in re.findall(r"−?\d+\.?\d*", line)]
    assert numbers[:4] == pytest.approx(a["absolute"][:, 3, 4], abs=1e-4)
    assert sum(numbers[:4]) == pytest.approx(numbers[4], abs=3e-4)
    page.keyboard.press("ArrowLeft")
    assert value(page, "term") == pytest.approx(a["absolute"][1, 3, 3], abs=1e-14)
    expect(page.locator("[data-term=cp] td[aria-selected=true]")).to_be_focused()
    assert "content · position" in page.inner_text("[data-role=live]")
    assert value(page, "check") < 1e-12


@pytest.mark.acceptance
def test_a_term_switched_off_leaves_the_sum_and_the_weights(opened):
    page = opened("terms?row=1&column=2")
    a, _ = asked()
    page.click("[data-switch=pp]")
    page.focus("[data-switch=pc]")
    page.keyboard.press("Space")
    scores = a["absolute"][:2].sum(0)
    assert value(page) == pytest.approx(scores[1, 2], abs=1e-14)
    assert value(page, "weight") == pytest.approx(np.exp(scores[1, 2]) / np.exp(scores[1]).sum(), abs=1e-14)
    shown = page.locator(".weights td[data-value]").evaluate_all("cells => cells.map(cell => Number(cell.dataset.value))")
    wanted = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(np.reshape(shown, (6, 6)), wanted, atol=1e-14)
    assert "absolute[[0, 1], 1, 2].sum()" in page.inner_text(".code code")


def test_a_link_restores_transformer_xl_moved(opened):
    page = opened("terms?model=relative&shift=50&term=pp&row=2&column=0")
    a, facts = asked(shift=50)
    assert value(page, "term") == pytest.approx(a["relative"][3, 2, 0], abs=1e-14)
    assert value(page, "difference") == facts["relative"]["difference"]
    assert page.locator("[data-role=moved].yes").count() == 4
    assert page.locator("[data-role=diagonals].yes").count() == 1


@pytest.mark.acceptance
def test_prediction_moves_the_sentence(opened):
    page = opened("terms?model=relative", lang="zh", width=390)
    page.click(".choice >> nth=0")
    expect(page.locator(".answer")).to_contain_text("单位矩阵")
    expect(page.locator("[data-role=moved]")).to_have_count(4)
    expect(page.locator("[data-role=moved].yes")).to_have_count(1)
    fits(page)


# Taylor -----------------------------------------------------------------------------------------------------------------


def attention(x, p, w_q, w_k, epsilon):
    """The output for positions of that size, in numpy."""
    here = x + epsilon * p
    power = np.exp((here @ w_q) @ (here @ w_k).T / 2)
    return power / power.sum(-1, keepdims=True) @ here


def test_orders_are_the_coefficients_of_the_output_and_what_is_left_out_is_the_rest():
    """The coefficients of a polynomial through the outputs at complex circle points, by the discrete Fourier transform."""
    a, facts = asked(sentence="这部 电影 很 无聊 但 表演 很 精彩")
    given = [a[name] for name in ("x", "p", "w_q", "w_k")]
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
    a, _ = asked()
    slopes = np.log(a["left_out"][:, 4] / a["left_out"][:, 0]) / np.log(a["epsilon"][4] / a["epsilon"][0])
    np.testing.assert_allclose(slopes, [2, 3, 2], atol=0.1)


def test_own_is_one_position_alone():
    """Second derivatives of single positions by central differences of the output; the mixed ones by autodiff."""
    a, _ = asked(sentence="猫 吃 鱼")
    x, p, w_q, w_k = (a[name] for name in ("x", "p", "w_q", "w_k"))
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


@pytest.mark.acceptance
def test_the_page_shows_each_order_at_the_chosen_size(opened):
    page = opened("terms?scale=4")
    a, _ = asked()
    e = a["epsilon"][4]
    wanted = [a["orders"][0], e * a["orders"][1], e**2 * a["orders"][2], e**2 * a["orders"][3], a["left_out"][1, 4]]
    roles = ("order-value", "order-first", "order-own", "order-mixed", "order-left")
    assert [value(page, role) for role in roles] == pytest.approx(wanted, abs=1e-14)
    assert value(page, "score-first") == pytest.approx(e * np.linalg.norm(a["absolute"][1] + a["absolute"][2]))
    assert value(page, "score-left") == 0
