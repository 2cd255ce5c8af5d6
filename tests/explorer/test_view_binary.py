"""Counting with clocks: bits, hands and distances follow from the position."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from posenc.explorer import views

DRAWN = "[aria-current][data-value]"


def asked(**parameters):
    return views.data("binary", parameters)


def shown(page, role):
    return float(page.get_attribute(f"[data-role={role}]", "data-value"))


def settled(page, address):
    """Waits until the URL is written and Python has answered."""
    page.wait_for_url(re.compile(address))
    page.wait_for_selector(".stage:not([aria-busy])")


def rows(length, d, base):
    angle = np.arange(length)[:, None] * float(base) ** (-2 * np.arange(d // 2) / d)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, d)


@pytest.mark.parametrize(("clocks", "base"), [(1, 10000.0), (4, 10000.0), (12, 4096.0), (16, 50.0)])
def test_table_and_distances_are_the_formula(clocks, base):
    data = asked(clocks=clocks, base=base)
    wanted = rows(4096, 2 * clocks, base)
    np.testing.assert_allclose(data.arrays["table"], wanted[:128], atol=1e-13)
    np.testing.assert_allclose(data.arrays["apart"], np.linalg.norm(wanted - wanted[0], axis=1), atol=1e-10)
    np.testing.assert_allclose(data.arrays["one_apart"], 2 * np.abs(np.sin(np.arange(4096) / 2)), atol=1e-10)


def test_the_notes_figures():
    """S13: the closest two of 4096 rows."""
    data = asked()
    found = dict(zip(data.arrays["widths"], data.arrays["closest"], strict=True))
    for d, distance, lag in ((2, 6.03e-5, 710), (4, 0.0444, 1885), (8, 0.645, 63), (512, 3.714, 1)):
        assert found[d] == (pytest.approx(distance, rel=2e-3), lag)
        apart = np.linalg.norm(rows(4096, d, 10000) - rows(1, d, 10000), axis=1)[1:]
        assert int(apart.argmin()) + 1 == lag
        assert apart.min() == pytest.approx(distance, rel=2e-3)


def test_clocks_like_bits_are_each_half_as_fast():
    omega = np.asarray(asked(clocks=12, base=4096.0).arrays["omega"])
    np.testing.assert_allclose(omega[1:] / omega[:-1], 0.5)


@pytest.mark.parametrize("request_", [{}, {"clocks": 1}, {"clocks": 12, "base": 4096.0}], ids=str)
def test_the_python_gives_the_same_numbers(request_):
    data = views.data("binary", request_)
    namespace: dict[str, object] = {}
    exec(data.python, namespace)
    for name, values in data.arrays.items():
        np.testing.assert_array_equal(np.asarray(namespace[name]), np.asarray(values), err_msg=name)


def test_bits_and_hands_stand_at_the_position(opened):
    page = opened("binary?p=709&clock=1&speed=20")
    assert page.get_attribute(DRAWN, "data-value") == f"{709:012b}"
    page.click("[data-role=step]")
    settled(page, "p=710")
    assert page.get_attribute(DRAWN, "data-value") == f"{710:012b}"
    assert page.locator("tr[aria-current] td.flipped").count() == 2  # …101 becomes …110
    angle = 710 * 10000 ** (-2 / 8)
    assert (shown(page, "sin"), shown(page, "cos")) == pytest.approx((math.sin(angle), math.cos(angle)), abs=1e-12)
    hand = page.locator(".face >> nth=1").locator(".hand:not(.mirror)")
    x, y = (float(hand.get_attribute(name)) for name in ("x2", "y2"))
    assert math.atan2(-y, x) == pytest.approx(math.atan2(math.sin(angle), math.cos(angle)), abs=1e-2)
    page.click("[data-role=play]")
    expect(page.locator(DRAWN)).not_to_have_attribute("data-value", f"{710:012b}")
    page.click("[data-role=play]")
    there = int(page.get_attribute(DRAWN, "data-value"), 2)
    assert there > 710
    settled(page, f"p={there}")
    assert 0 < shown(page, "check") < 1e-12


@pytest.mark.acceptance
def test_the_sine_alone_leaves_two_angles(opened):
    page = opened("binary?p=2&clock=0", lang="zh")
    assert page.locator("[data-role=other]").count() == 0
    assert page.is_hidden(".face >> nth=0 >> .mirror")
    page.click("text=两个 >> nth=0")
    settled(page, "sine=true")
    assert page.is_visible(".face >> nth=1 >> .mirror")
    assert shown(page, "angle") == pytest.approx(2)
    assert shown(page, "other") == pytest.approx(math.pi - 2)
    assert math.sin(shown(page, "other")) == pytest.approx(math.sin(2))
    page.click("details.more summary")
    page.uncheck("input[role=switch]")
    page.wait_for_selector("[data-role=other]", state="detached")


@pytest.mark.acceptance
def test_one_clock_comes_round_and_a_click_shows_where(opened):
    page = opened("binary?clocks=8")
    page.focus("[data-see='2']")
    page.keyboard.press("Enter")
    settled(page, "p=710&?.*clocks=1|clocks=1&?.*p=710")
    assert shown(page, "turns") == pytest.approx(710 / (2 * math.pi))
    assert float(page.get_attribute(".legend b", "data-value")) == pytest.approx(6.03e-5, rel=1e-3)
    page.click("[data-role=halves]")
    settled(page, "base=4096")
    assert page.locator(".face").count() == 12
    page.click("[data-clock='3']")
    settled(page, "clock=3")
    assert shown(page, "turns") == pytest.approx(710 / (2 * math.pi * 8))
    assert f"angle = 710 * omega[3]  # {710 / 8}" in page.inner_text(".code code")
