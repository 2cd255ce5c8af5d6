"""The four terms of a score: each agrees with its formula; their sum, diagonals and changes under a shift."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect
from widths import fits

from posenc.explorer import views

SENTENCES = ("猫 吃 鱼", "这部 电影 很 无聊 但 表演 很 精彩")
ENGLISH = "cat chases mouse mouse chases cat"


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
    np.testing.assert_allclose(a["stages"][0], wanted, atol=1e-11)
    np.testing.assert_allclose(a["absolute_score"], (x + p) @ through @ (x + p).T, atol=1e-11)
    q, k = x @ a["w_q"], x @ a["w_k"]
    u, v = a["u"], a["v"]
    for i in range(t):
        for j in range(t):
            r = sinusoid([i - j], base)[0].T.reshape(4) @ a["w_r"]  # [sin | cos]
            placed = p[i] @ a["w_q"]
            four = np.array([q[i] @ k[j], q[i] @ r, u @ k[j], v @ r]) / 2
            steps = [[four[0], four[1], wanted[2][i, j], placed @ r / 2], [*four[:3], placed @ r / 2], four]
            np.testing.assert_allclose(a["stages"][1:, :, i, j], steps, atol=1e-11)
            assert a["relative_score"][i, j] == pytest.approx(four.sum(), abs=1e-12)
    for kind in ("absolute", "relative"):
        power = np.exp(a[f"{kind}_score"])
        np.testing.assert_allclose(a[f"{kind}_weights"], power / power.sum(-1, keepdims=True), atol=1e-12)
        assert facts["stages"][0 if kind == "absolute" else 3]["difference"] < 1e-12


def still(numbers) -> list[bool]:
    return [number < 1e-12 for number in numbers]


def test_who_survives_a_shift_and_whose_diagonals_are_constant():
    """Content · content, others only if projections are the identity; with Transformer-XL all, one by i-j alone."""
    _, drawn = asked(shift=100)
    _, identity = asked(shift=100, projection="identity")
    assert still(drawn["stages"][0]["moved"]) == [True, False, False, False]
    assert still(identity["stages"][0]["moved"]) == [True, False, False, True]
    assert still(drawn["stages"][0]["along_diagonals"]) == [False] * 4
    assert still(identity["stages"][0]["along_diagonals"]) == [False, False, False, True]
    for facts in (drawn, identity):
        assert still(facts["stages"][3]["moved"]) == [True] * 4
        assert still(facts["stages"][3]["along_diagonals"]) == [False, False, False, True]


def test_equal_words_have_equal_rows_of_content():
    content = asked()[0]["stages"][0, 0]
    assert (content[0] == content[5]).all()
    assert (content[0] != content[1]).any()


def test_the_printed_program_makes_the_same_arrays():
    data = views.data("terms", {"shift": 5, "seed": 1})
    made: dict[str, object] = {}
    exec(data.python, made)
    for name, array in data.arrays.items():
        np.testing.assert_array_equal(made[name], array)


def marked(page) -> dict[str, float]:
    """The numbers below the maps, by the map."""
    read = "all => all.map((one) => [one.dataset.term, Number(one.querySelector('output').dataset.value)])"
    return dict(page.locator(".term").evaluate_all(read))


def test_a_cell_gives_four_numbers_their_sum_and_its_weight(opened):
    page = opened("terms?term=cp")
    a, _ = asked(sentence=ENGLISH)
    box = page.locator("[data-term=cp] canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 4.5 / 6, box["y"] + box["height"] * 3.5 / 6)
    page.wait_for_url(re.compile("row=3&column=4"))
    four = a["stages"][0, :, 3, 4]
    wanted = [*four, a["absolute_score"][3, 4], a["absolute_weights"][3, 4]]
    assert list(marked(page).values()) == pytest.approx(wanted, abs=1e-14)
    assert value(page, "term") == pytest.approx(four[1], abs=1e-14)
    line = page.inner_text(".formula-line:nth-child(2)").split("] =")[1]
    numbers = [float(n.replace("−", "-")) for n in re.findall(r"−?\d+\.?\d*", line)]
    assert numbers[:4] == pytest.approx(four, abs=1e-4)
    assert sum(numbers[:4]) == pytest.approx(numbers[4], abs=3e-4)
    page.mouse.move(1, 1)
    page.focus(".product")
    page.keyboard.press("ArrowLeft")
    assert value(page, "term") == pytest.approx(a["stages"][0, 1, 3, 3], abs=1e-14)
    assert "word · position" in page.inner_text("[data-role=live]")
    assert value(page, "check") < 1e-12


def test_the_maps_melt_from_added_positions_to_transformer_xl(opened):
    """A click moves evenly to the step; half way between two steps every map is the mean of both."""
    page = opened("terms?row=2&column=5&stage=0.5")
    a, _ = asked(sentence=ENGLISH)
    half = (a["stages"][0] + a["stages"][1])[:, 2, 5] / 2
    assert list(marked(page).values())[:5] == pytest.approx([*half, half.sum()], abs=1e-14)
    assert page.locator(".term.changing").evaluate_all("all => all.map((one) => one.dataset.term)") == ["cp", "pp"]
    page.click("[data-stage='3']")
    page.wait_for_url(re.compile("stage=3(&|$)"))
    last = a["stages"][3, :, 2, 5]
    assert list(marked(page).values())[:5] == pytest.approx([*last, a["relative_score"][2, 5]], abs=1e-14)
    expect(page.locator("[data-term=pp] b")).to_have_text("v · distance")
    made: dict[str, object] = {}
    exec(page.inner_text(".code code"), made)
    np.testing.assert_array_equal(made["stages"], a["stages"])


@pytest.mark.acceptance
def test_a_term_switched_off_leaves_the_sum_and_the_weights(opened):
    page = opened("terms?row=1&column=2")
    a, _ = asked(sentence=ENGLISH)
    page.click("[data-switch=pp]")
    page.focus("[data-switch=pc]")
    page.keyboard.press("Space")
    scores = a["stages"][0, :2].sum(0)
    assert value(page) == pytest.approx(scores[1, 2], abs=1e-14)
    assert marked(page)["sum"] == pytest.approx(scores[1, 2], abs=1e-14)
    assert value(page, "weight") == pytest.approx(np.exp(scores[1, 2]) / np.exp(scores[1]).sum(), abs=1e-14)
    assert "stages[0, [0, 1], 1, 2].sum()" in page.inner_text(".code code")


def test_a_link_restores_transformer_xl_moved(opened):
    page = opened("terms?stage=3&shift=50&term=pp&row=2&column=0")
    a, facts = asked(sentence=ENGLISH, shift=50)
    assert value(page, "term") == pytest.approx(a["stages"][3, 3, 2, 0], abs=1e-14)
    assert value(page, "difference") == facts["stages"][3]["difference"]
    assert page.locator("[data-role=moved].yes").count() == 4
    assert page.locator("[data-role=diagonals].yes").count() == 1


@pytest.mark.acceptance
def test_prediction_moves_the_sentence(opened):
    page = opened("terms?stage=3", lang="zh", width=390)
    page.click(".choice:not([data-stage]) >> nth=0")
    expect(page.locator(".answer")).to_contain_text("单位矩阵")
    expect(page.locator("[data-role=moved]")).to_have_count(4)
    expect(page.locator("[data-role=moved].yes")).to_have_count(1)
    fits(page)


def test_all_of_the_sum_is_on_one_screen_of_a_telephone(opened):
    page = opened("terms", width=390, height=844)
    boxes = [one.bounding_box() for one in page.locator(".term canvas").all()]
    assert len(boxes) == 6
    assert max(box["y"] + box["height"] for box in boxes) < 844 - 44
    assert min(box["width"] for box in boxes) > 70
