"""A shift is a rotation: the matrix, the shifted rows and the rounding error."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from posenc.explorer import views


def asked(**parameters):
    return views.data("shift", parameters)


def shown(page, role):
    return float(page.get_attribute(f"[data-role={role}]", "data-value"))


def settled(page, address):
    """Waits until the URL is written and Python has answered."""
    page.wait_for_url(re.compile(address))
    page.wait_for_selector(".stage:not([aria-busy])")


def row(p, d, base=10000.0):
    return np.array([(math.sin, math.cos)[c % 2](p * base ** (-2 * (c // 2) / d)) for c in range(d)])


@pytest.mark.parametrize(("p", "k", "pairs", "base"), [(10, 3, 4, 10000.0), (7, -20, 1, 10000.0), (1000, 1000, 64, 50.0)])
def test_the_matrix_moves_the_row(p, k, pairs, base):
    data = asked(p=p, k=k, pairs=pairs, base=base)
    d = 2 * pairs
    matrix = np.zeros((d, d))
    for i in range(pairs):
        angle = k * base ** (-2 * i / d)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [
            [math.cos(angle), math.sin(angle)],
            [-math.sin(angle), math.cos(angle)],
        ]
    np.testing.assert_allclose(data.arrays["matrix"], matrix, atol=1e-13)
    np.testing.assert_allclose(data.arrays["here"], row(p, d, base), atol=1e-12)
    np.testing.assert_allclose(data.arrays["there"], row(p + k, d, base), atol=1e-12)
    np.testing.assert_allclose(data.arrays["moved"], row(p + k, d, base), atol=1e-11)
    turned = [math.remainder(k * base ** (-2 * i / d), 2 * math.pi) for i in range(pairs)]
    np.testing.assert_allclose(data.arrays["turned"], turned, atol=1e-11)


def test_the_matrix_ignores_the_position_and_fp64_rounds():
    """S11: 1e-14 at position 10, 7e-11 in one channel of d = 128 at a million."""
    near, far = asked(p=10, pairs=64), asked(p=1_000_000, pairs=64)
    np.testing.assert_array_equal(near.arrays["matrix"], far.arrays["matrix"])
    assert near.facts["error"] < 1e-14
    worst = (far.arrays["there"] - far.arrays["moved"]).abs().max().item()
    assert worst == pytest.approx(7e-11, rel=0.1)
    assert worst < far.facts["error"] < 2e-10
    errors = np.asarray(far.arrays["errors"])
    assert errors[1] < 1e-14
    assert 5e-11 < errors[-1] < 5e-10
    assert (asked(k=-3).arrays["matrix"] == asked(k=3).arrays["matrix"].T).all()


def test_errors_are_the_largest_of_ten_positions():
    data = asked(pairs=2, k=5)
    matrix = np.asarray(data.arrays["matrix"])
    for decade, error in zip(data.arrays["decades"], data.arrays["errors"], strict=True):
        wanted = max(np.linalg.norm(row(p + 5, 4) - matrix @ row(p, 4)) for p in range(decade, decade + 10))
        assert error.item() == pytest.approx(wanted, rel=0.5, abs=2e-16)


def test_a_hand_is_dragged_and_the_matrix_stays(opened):
    page = opened("shift?p=10&k=3&row=2&column=2")
    before = shown(page, "cell")
    assert before == pytest.approx(math.cos(0.3), abs=1e-15)
    circle = page.locator(".circle").bounding_box()
    x, y = circle["x"] + circle["width"] / 2, circle["y"] + circle["height"] / 2
    radius = 100 * circle["width"] / 320
    page.mouse.move(x + radius * math.cos(1), y - radius * math.sin(1))  # p·ω = 10 · 0.1
    page.mouse.down()
    for angle in (1.5, 2, 2.5, 3, 3.5):
        page.mouse.move(x + radius * math.cos(angle), y - radius * math.sin(angle))
    page.mouse.up()
    settled(page, r"p=3[456]\b")
    p = int(re.search(r"p=(\d+)", page.url).group(1))
    assert f"p = {p}" in page.inner_text("[data-role=live]")
    assert shown(page, "cell") == before
    assert shown(page, "unchanged") == 0
    assert int(page.get_attribute("[data-role=unchanged]", "data-positions")) >= 2
    assert shown(page, "turned") == pytest.approx(0.3, abs=1e-13)
    assert shown(page, "moved") == pytest.approx(math.sin((p + 3) * 0.1), abs=1e-13)
    assert shown(page, "error") == views.data("shift", {"p": p}).facts["error"]


@pytest.mark.acceptance
def test_keys_move_p_and_k_and_the_cell(opened):
    page = opened("shift?p=999999&k=0")
    page.focus("[data-end=p]")
    for key in ("ArrowUp", "ArrowUp", "PageDown"):  # it ends at a million
        page.keyboard.press(key)
    settled(page, "p=999900")
    page.focus("[data-end=k]")
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    settled(page, "k=-2")
    page.focus("canvas")
    page.keyboard.press("ArrowRight")
    settled(page, "column=3")
    assert shown(page, "cell") == pytest.approx(math.sin(-0.2), abs=1e-15)
    assert "matrix[2, 3]" in page.inner_text(".code code")
    assert 0 < shown(page, "error") < 1e-10


def test_a_link_restores_and_the_prediction_answers(opened):
    page = opened("shift?p=500&k=-7&pairs=2&row=3&column=2&lang=zh")
    assert page.locator("[data-role=pair]").input_value() == "1"
    assert shown(page, "cell") == pytest.approx(-math.sin(-0.07), abs=1e-15)
    page.click("text=完全不变")
    assert page.inner_text(".predict .answer").startswith("正确。")
    page.select_option("[data-role=pair]", "0")
    page.wait_for_selector("[data-role=turned][data-value^='-0.71']")
    assert shown(page, "turned") == pytest.approx(math.remainder(-7, 2 * math.pi), abs=1e-12)
