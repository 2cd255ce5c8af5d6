"""Similarity by distance: every curve agrees with its formula and the notes' numbers; the page computes the same curves."""

from __future__ import annotations

import cmath
import math
import re

import numpy as np
import pytest
from widths import fits

from posenc.explorer import views
from posenc.explorer.parameters import Refused


def arrays(**asked):
    return {name: np.asarray(values) for name, values in views.data("similarity", asked).arrays.items()}


def number(page, role: str) -> float:
    return float(page.get_attribute(f"[data-role={role}]", "data-value"))


def omega(d: int, base: float) -> list[float]:
    return [base ** (-2 * i / d) for i in range(d // 2)]


def table_row(p: int, d: int, base: float) -> np.ndarray:
    return np.array([(math.sin, math.cos)[c % 2](p * base ** (-2 * (c // 2) / d)) for c in range(d)])


@pytest.mark.parametrize("p", [0, 3, 70])
def test_rows_of_the_table_multiply_to_the_curve_wherever_they_stand(p):
    found = arrays(kind="sinusoidal", d=12, base=50.0, reach=9)
    wanted = [table_row(p, 12, 50.0) @ table_row(p + k, 12, 50.0) for k in range(-9, 10)]
    np.testing.assert_array_equal(found["lags"], range(-9, 10))
    np.testing.assert_allclose(found["similarity"], wanted, atol=1e-12)
    np.testing.assert_allclose(found["omega"], omega(12, 50.0), atol=1e-15)
    np.testing.assert_array_equal(found["vectors"], [[1, 0] * 6] * 2)


def test_the_score_of_ones_and_the_bound_are_their_formulas():
    found = arrays(kind="rope", d=10, base=100.0, reach=8)
    for index, k in enumerate(range(-8, 9)):
        turns = [cmath.exp(1j * k * w) for w in omega(10, 100.0)]
        assert found["score"][index] == pytest.approx(2 * sum(turn.real for turn in turns), abs=1e-13)
        sums = [abs(sum(turns[: i + 1])) for i in range(5)]
        assert found["bound"][index] == pytest.approx(2 / 10 * sum(sums), abs=1e-13)


@pytest.mark.parametrize(("d", "score", "bound"), [(64, 5, 11), (128, 11, 18), (256, 24, 37)])
def test_the_first_rises_are_those_of_the_facts(d, score, bound):
    assert views.data("similarity", {"kind": "sinusoidal", "d": d}).facts["rises"] == {"similarity": score}
    assert views.data("similarity", {"kind": "rope", "d": d}).facts["rises"] == {"score": score, "bound": bound}


def test_random_scores_keep_their_spread_and_like_vectors_decay():
    found = arrays(kind="random", reach=512)
    near, far = slice(512 - 4, 512 + 5), slice(512 + 300, None)
    assert found["spread"][far].mean() / found["spread"][near].mean() == pytest.approx(1, abs=0.1)
    assert np.abs(found["independent"]).max() < 0.05 * found["equal"][512]
    assert found["equal"][far].mean() < 0.35 * found["equal"][512]
    # The query stands k after the key, in pairs of neighbouring channels: turned by hand to two positions.
    q, k = (row[0::2] + 1j * row[1::2] for row in found["vectors"])
    turn = np.exp(1j * np.array(omega(128, 1e4)))
    for lag in (-17, 0, 40):
        assert found["one"][512 + lag] == pytest.approx(
            ((q * turn ** (100 + lag)) @ (k * turn**100).conj()).real, abs=1e-10
        )


@pytest.mark.parametrize("asked", [{"d": 7}, {"d": 1024}, {"reach": 4096}, {"kind": "alibi"}, {"base": 1.0}])
def test_what_is_out_of_bounds_is_refused(asked):
    with pytest.raises(Refused, match=next(iter(asked))):
        views.data("similarity", asked)


def test_the_answer_comes_before_the_curve_is_whole(opened):
    page = opened("similarity")
    assert page.locator(".sliding").is_hidden()
    page.click(".choice >> nth=1")
    page.click("[data-role=rise-similarity]")
    page.wait_for_url(re.compile("k=12"))
    wanted = sum(math.cos(12 * w) for w in omega(128, 1e4))
    assert number(page, "value") == pytest.approx(wanted, abs=1e-12)
    assert number(page, "rise-similarity") == 11
    assert "cos(12·1.0000)" in page.inner_text(".formula").replace(" ", "")
    assert "distance 12" in page.inner_text("[data-role=live]")


@pytest.mark.acceptance
def test_moving_p_moves_only_the_hump(opened):
    page = opened("similarity?revealed=true&k=20&p=50")
    chart = page.locator(".chart").first
    line = chart.locator("path.line").first
    before = line.get_attribute("d")
    hump = page.locator(".sliding .chart").first
    moving = hump.locator("path.line").first.get_attribute("d")
    hump.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("p=51"))
    hump.scroll_into_view_if_needed()
    box = hump.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + 60)
    page.wait_for_url(re.compile(r"p=1[4-6]\d"))
    assert line.get_attribute("d") == before
    assert hump.locator("path.line").first.get_attribute("d") != moving
    assert 0 < number(page, "apart") < 1e-12
    assert number(page, "check") < 1e-12
    namespace: dict[str, object] = {}
    code = page.inner_text(".code code")
    exec(code, namespace)
    p = int(re.search(r"p=(\d+)", page.url).group(1))
    assert f"table[{p}] @ table[{p + 20}]" in code
    values = page.locator(".charted").first.locator("[data-value]")
    wanted = sum(math.cos(20 * w) for w in omega(128, 1e4)) / 64
    assert [float(values.nth(i).get_attribute("data-value")) for i in range(4)] == pytest.approx([wanted] * 4, abs=1e-13)


def test_keys_move_the_cursor_and_a_link_restores_rope(opened):
    page = opened("similarity?kind=rope&d=64&reach=40&k=-3", lang="zh", width=390, dark=True)
    page.locator(".chart").first.focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "End", "ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_url(re.compile("k=39"))
    assert number(page, "value") == pytest.approx(2 * sum(math.cos(39 * w) for w in omega(64, 1e4)), abs=1e-12)
    assert (number(page, "rise-score"), number(page, "rise-bound")) == (5, 11)
    assert number(page, "apart") < 1e-12
    fits(page)


@pytest.mark.acceptance
def test_random_vectors_show_their_spread(opened):
    page = opened("similarity?kind=random&k=25")
    found = arrays(kind="random")
    assert number(page, "value") == pytest.approx(found["independent"][64 + 25])
    assert float(page.get_attribute("output[data-role=spread]", "data-value")) == pytest.approx(found["spread"][64 + 25])
    assert number(page, "equal") == pytest.approx(found["equal"][64 + 25])
    assert page.locator(".predict").is_hidden()
    assert number(page, "apart") < 1e-12


@pytest.mark.acceptance
def test_the_drawing_stays_with_its_numbers_until_the_next_answer(opened):
    """The cursor moves while numbers of another kind are on their way."""
    page = opened("similarity?revealed=true&k=3")
    held = []
    page.route("**/data/similarity", lambda route: held.append(route))
    page.select_option("[data-name=kind] select", index=1)
    page.locator(".chart").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("k=4"))
    wanted = sum(math.cos(4 * w) for w in omega(128, 1e4))
    assert number(page, "value") == pytest.approx(wanted, abs=1e-12)
    assert page.locator("[data-role=rise-similarity]").count() == 1
    held[0].continue_()
    page.wait_for_selector("[data-role=rise-score]")
    assert number(page, "value") == pytest.approx(2 * wanted, abs=1e-12)
