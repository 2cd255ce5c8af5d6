"""Digits by position: every error agrees with mpmath or with the faulty code copied here, and the page shows them."""

from __future__ import annotations

import itertools
import math
import re
import struct

import mpmath
import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from widths import fits

from posenc.explorer import views
from posenc.pictures import measures

RECIPES = [
    "float32",
    "power",
    "float32 angle",
    "textbook",
    "float16",
    "float16 positions",
    "bfloat16",
    "bfloat16 positions",
]


def exact(position: int, channel: int, d_model: int, base: float = 10000.0) -> float:
    with mpmath.workdps(50):
        angle = position * mpmath.mpf(base) ** (mpmath.mpf(-2 * (channel // 2)) / d_model)
        return float((mpmath.sin, mpmath.cos)[channel % 2](angle))


def single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def bfloat16(value: int) -> int:
    """Eight significant bits, ties to even."""
    step = 2 ** max(value.bit_length() - 8, 0)
    return step * round(value / step)


def float16(value: int) -> int:
    step = 2 ** max(value.bit_length() - 11, 0)
    return step * round(value / step)


@pytest.mark.parametrize(("position", "channel"), [(257, 0), (2049, 1), (8191, 6), (100_001, 3), (1_000_000, 2)])
def test_every_step_is_what_its_code_does(position, channel):
    asked = {"position": position, "channel": channel, "d_model": 16}
    steps = views.data("precision", asked).arrays["steps"]
    omega = 10000.0 ** (-2 * (channel // 2) / 16)
    true = exact(position, channel, 16)
    by_name = dict(zip(["exact", *RECIPES], steps, strict=True))
    assert steps[0, 3] == pytest.approx(true, abs=2e-10)  # fp64 rounds the angle
    for name in ("exact", "float32", "power", "float16", "bfloat16"):
        assert by_name[name][:3] == pytest.approx([position, omega, position * omega], rel=1e-15)
    assert by_name["float32"][3] == pytest.approx(true, abs=6e-8)
    assert by_name["power"][3] == pytest.approx(true, abs=6e-8)
    assert by_name["float16"][3] == pytest.approx(true, abs=2**-12 + 3e-8)
    assert by_name["bfloat16"][3] == pytest.approx(true, abs=2**-9 + 3e-8)
    assert by_name["bfloat16 positions"][0] == bfloat16(position)
    assert by_name["bfloat16 positions"][3] == pytest.approx(exact(bfloat16(position), channel, 16), abs=2e-10)
    if position < 65504:
        assert by_name["float16 positions"][0] == float16(position)
        assert by_name["float16 positions"][3] == pytest.approx(exact(float16(position), channel, 16), abs=2e-10)
    else:
        assert math.isinf(by_name["float16 positions"][0])
        assert math.isnan(by_name["float16 positions"][3])
    assert by_name["float32 angle"][1:3].tolist() == [single(omega), single(position * single(omega))]
    np.testing.assert_allclose(steps[1:, 4], steps[1:, 3] - steps[0, 3], atol=0)


def test_the_largest_errors_so_far():
    data = views.data("precision", {"d_model": 16})
    positions, errors = data.arrays["positions"], data.arrays["errors"]
    assert (positions[0], positions[319], positions[-1]) == (1, 320, 1_000_000)
    assert list(data.facts["recipes"]) == RECIPES
    flat = dict(zip(RECIPES, errors, strict=True))
    for name, most in (("float32", 3e-8), ("power", 3e-8), ("float16", 2**-12), ("bfloat16", 2**-9)):
        most += 3e-8  # torch casts float64 to a 16-bit dtype by way of float32
        assert 0.3 * most < flat[name][200] <= flat[name][-1] <= most
    for name, first, to in (("bfloat16 positions", 257, bfloat16), ("float16 positions", 2049, float16)):
        assert (flat[name][positions < first] < 1e-12).all()
        some = int(positions[np.searchsorted(positions, first)])
        wanted = max(
            abs(exact(to(p), c, 16) - exact(p, c, 16)) for p in positions.tolist() if p <= some for c in (0, 1, 2, 3)
        )
        assert flat[name][np.searchsorted(positions, some)] == pytest.approx(wanted, rel=1e-9)
    assert np.isnan(flat["float16 positions"][-1])
    for name in ("float32 angle", "textbook"):  # a digit for every tenfold position
        assert 5 < flat[name][-1] / flat[name][np.searchsorted(positions, 100_000)] < 20
    for row in errors:
        assert (np.diff(row[np.isfinite(row)]) >= 0).all()


@pytest.mark.parametrize(("rows", "apart"), [(100, 6.6e-6), (8192, 4.7e-4)])
def test_how_far_the_two_tutorials_are_apart(rows, apart):
    from posenc.explorer.views.precision import power, textbook

    positions = torch.arange(rows)
    assert float((textbook(positions, 512, 10000.0) - power(positions, 512, 10000.0)).abs().max()) == pytest.approx(
        apart, rel=0.02
    )


def test_odd_widths_stop_the_tutorials_and_nothing_else():
    data = views.data("precision", {"d_model": 7})
    assert set(data.facts["failed"]) == {"textbook", "power"}
    assert all(data.facts["failed"].values())
    finite = np.isfinite(data.arrays["errors"][:, 0])
    assert finite.tolist() == [name not in ("textbook", "power") for name in RECIPES]


def test_what_is_said_of_rows_that_coincide():
    assert measures.distinct_rows_of_rounded_positions(8, 4096, torch.bfloat16) == 769
    assert len({bfloat16(p) for p in range(4096)}) == 769
    for cast, first in ((bfloat16, 257), (float16, 2049)):
        assert next(p for p in range(1, 5000) if cast(p) == cast(p - 1)) == first
    assert measures.distinct_rows_of_rounded_table(4, 16384, torch.bfloat16) == 16384


def test_neighbours_and_what_a_dtype_makes_of_them():
    arrays = views.data("precision", {"position": 4100}).arrays
    integers = arrays["integers"].tolist()
    assert integers == list(range(4092, 4116))
    assert arrays["as_bfloat16"].tolist() == [bfloat16(p) for p in integers]
    assert arrays["as_float16"].tolist() == [float16(p) for p in integers]


@pytest.mark.parametrize("asked", [{}, {"position": 1_000_000, "d_model": 7, "base": 100.0}])
def test_the_printed_python_makes_the_same_numbers(asked):
    data = views.data("precision", asked)
    namespace: dict[str, object] = {}
    exec(data.python, namespace)
    for name in ("positions", "errors", "integers", "as_bfloat16", "as_float16"):
        wanted = data.arrays[name]
        wanted = wanted.double() if isinstance(wanted, torch.Tensor) else wanted
        np.testing.assert_allclose(namespace[name].double(), wanted, err_msg=name)


# In the browser.


def cell(page, recipe: str, column: int) -> float:
    return float(page.locator(f"[data-recipe='{recipe}'] td").nth(column).get_attribute("data-value"))


def test_the_page_shows_the_numbers_of_a_link(opened):
    page = opened("precision?position=8191&channel=6&d_model=16")
    assert float(page.get_attribute("[data-role=value]", "data-value")) == pytest.approx(exact(8191, 6, 16), abs=1e-11)
    assert float(page.get_attribute("[data-role=bfloat16]", "data-value")) == pytest.approx(exact(8192, 6, 16), abs=1e-11)
    assert cell(page, "bfloat16 positions", 0) == 8192
    assert cell(page, "bfloat16 positions", 4) == pytest.approx(exact(8192, 6, 16) - exact(8191, 6, 16), abs=1e-11)
    assert cell(page, "float32", 5) == 7
    assert "8192" in page.inner_text("[data-role=strip]")


@pytest.mark.acceptance
def test_an_answer_moves_to_the_collision(opened):
    page = opened("precision")
    assert page.locator(".strip .shared").count() == 0
    page.click(".choice >> text=/^257$/")
    page.wait_for_url(re.compile("position=257"))
    page.wait_for_selector(".strip .shared")
    first = page.locator(".strip .shared").first
    assert (first.get_attribute("data-value"), first.get_attribute("data-count")) == ("256", "2")
    assert "256" in page.inner_text("[data-role=live]")
    page.click("[data-dtype=float16]")
    page.wait_for_url(re.compile("strip=float16"))
    assert page.locator(".strip .shared").count() == 0


@pytest.mark.acceptance
def test_keys_and_mouse_move_the_position(opened):
    page = opened("precision?position=100")
    page.focus(".chart")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("position=101"))
    page.keyboard.press("End")
    page.wait_for_url(re.compile("position=1000000"))
    box = page.locator(".chart svg").bounding_box()
    page.mouse.click(box["x"] + 52 + (box["width"] - 52 - 168) / 2, box["y"] + 100)  # the middle of six decades
    page.wait_for_url(re.compile(r"position=(9[89]\d|10[012]\d)\b"))


@pytest.mark.acceptance
def test_odd_widths_on_the_page(opened):
    page = opened("precision?d_model=7", lang="zh", width=390)
    assert "报错" in page.inner_text("[data-recipe=textbook]")
    fits(page)


@pytest.mark.acceptance
def test_lines_that_coincide_are_both_seen_and_named(opened):
    """The numpy tutorial's table is the exact one rounded once; its line is drawn wide under the other."""
    errors = dict(zip(RECIPES, views.data("precision", {}).arrays["errors"], strict=True))
    assert np.array_equal(errors["power"], errors["float32"])
    page = opened("precision", height=1000)
    said = page.inner_text("[data-role=covered]")
    assert "“rounded once to float32” and “numpy tutorial, float64 power”" in said
    over, under = page.locator(".chart path.line.dashed").first, page.locator(".chart path.line.wide")
    assert under.count() == 1
    assert under.get_attribute("d") == over.get_attribute("d")
    width = "one => parseFloat(getComputedStyle(one).strokeWidth)"
    assert under.evaluate(width) >= 3 * over.evaluate(width)
    words = page.locator(".end-word").all()
    assert len(words) == len(RECIPES)
    tops = sorted(word.bounding_box()["y"] for word in words)
    assert min(b - a for a, b in itertools.pairwise(tops)) >= 12
    failed = opened("precision?d_model=7")
    expect(failed.locator("[data-role=covered]")).to_be_hidden()
