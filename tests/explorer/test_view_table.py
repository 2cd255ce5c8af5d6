"""The table of waves: the page shows the library's values, and every control works."""

from __future__ import annotations

import io
import itertools
import math
import re
import time

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

import posenc
from posenc.explorer import views
from sampling import one_in

DRAWN = "main[data-ready]"


def value(page) -> float:
    return float(page.get_attribute("[data-role=value]", "data-value"))


@pytest.mark.parametrize("layout", ["interleaved", "sin_cos", "cos_sin"])
def test_every_layout_is_the_formula(layout):
    data = views.data("table", {"length": 7, "d_model": 6, "base": 50.0, "layout": layout})
    order = {"interleaved": [0, 1, 2, 3, 4, 5], "sin_cos": [0, 2, 4, 1, 3, 5], "cos_sin": [1, 3, 5, 0, 2, 4]}[layout]
    wanted = [[(math.sin, math.cos)[c % 2](p * 50.0 ** (-2 * (c // 2) / 6)) for c in order] for p in range(7)]
    np.testing.assert_allclose(data.arrays["table"], wanted, atol=1e-15)


def test_a_cell_gives_its_value_formula_and_python(opened):
    page = opened("table?length=50&d_model=128&p=2&channel=5")
    assert value(page) == pytest.approx(math.cos(2 * 10000 ** (-4 / 128)), abs=1e-15)
    box = page.locator("canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 20.5 / 128, box["y"] + box["height"] * 30.5 / 50)
    page.wait_for_url(re.compile("p=30&channel=20"))
    wanted = math.sin(30 * 10000 ** (-20 / 128))
    assert value(page) == pytest.approx(wanted, abs=1e-15)
    assert "sin(30" in page.inner_text(".formula").replace(" ", "")
    code = page.inner_text(".code code")
    assert re.search(r"table\[30, 20\]", code)
    page.click("text=Copy Python")
    assert page.evaluate("navigator.clipboard.readText()") == code
    namespace: dict[str, object] = {}
    exec(code, namespace)
    assert namespace["table"][30, 20].item() == pytest.approx(wanted)


def test_keys_move_the_cursor(opened):
    page = opened("table?length=20&d_model=8&p=3&channel=4")
    page.focus("canvas")
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowRight", "End", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    table = posenc.sinusoidal_table(20, 8)
    assert value(page) == pytest.approx(table[4, 6].item(), abs=1e-6)
    assert "position 4, channel 6" in page.inner_text("[data-role=live]")


@pytest.mark.acceptance
def test_it_plays_at_its_speed_and_steps(opened):
    page = opened("table?length=50&d_model=16&p=0&speed=20", height=800)  # a window of its own, whose clock stands
    page.clock.install()
    page.clock.pause_at(time.time() + 3600)
    page.click("[data-role=play]")
    page.clock.run_for(700)
    page.click("[data-role=play]")
    page.clock.run_for(250)
    there = int(re.search(r"p=(\d+)", page.url).group(1))
    assert 13 <= there <= 15
    page.clock.resume()
    page.click("[data-role=step]")
    page.wait_for_url(re.compile(f"p={there + 1}&"))
    page.click("[data-role=back]")
    page.click("[data-role=back]")
    page.wait_for_url(re.compile(f"p={there - 1}&"))


@pytest.mark.acceptance
def test_the_page_says_how_far_its_own_arithmetic_is_off(opened):
    page = opened("table")
    assert 0 < float(page.get_attribute("[data-role=check]", "data-value")) < 1e-12


@pytest.mark.acceptance
def test_several_channels_stay_beside_the_chosen_one(opened):
    """Channels 0, 32 and 64, as in the notes, until the reader takes one away or keeps another."""
    page = opened("table?channel=5")
    lines = page.locator(".legend > *")
    expect(lines).to_have_text([re.compile(f"^channel {channel} ") for channel in (5, 0, 32, 64)])
    page.get_by_role("button", name="Keep channel 5").click()
    page.locator(".stage button", has_text=re.compile("^32 ×$")).click()
    expect(lines).to_have_text([re.compile(f"^channel {channel} ") for channel in (5, 0, 64)])


def test_a_link_restores_the_state(opened):
    page = opened("table?length=30&d_model=20&base=100&layout=sin_cos&p=7&channel=3")
    state = page.evaluate("[...document.querySelectorAll('.controls input[type=number]')].map(input => input.value)")
    assert state == ["30", "20", "100"]
    assert value(page) == pytest.approx(math.sin(7 * 100 ** (-6 / 20)), abs=1e-15)


# web/src/colours.ts, light: −1 is blue, 0 nearly white, +1 red.
DIVERGING = ["#16448e", "#3a7abe", "#92bce0", "#f7f7f7", "#f4ac92", "#d3544a", "#941230"]


def painted(values: np.ndarray) -> np.ndarray:
    """Colours of values from -1 to 1, [..., 3]: straight lines between the colours of the map."""
    colours = np.array([[int(one[i : i + 2], 16) for i in (1, 3, 5)] for one in DIVERGING])
    at = np.linspace(-1, 1, len(colours))
    return np.stack([np.interp(values, at, colours[:, channel]) for channel in range(3)], axis=-1)


@pytest.mark.parametrize("ratio", [1, 2])
@pytest.mark.parametrize(("d", "width"), one_in(3, [(512, 1100), (1024, 1440), (1024, 700)]))
def test_the_rendered_pixels_are_means_of_blocks(browser, server, d, width, ratio):
    """No column is dropped or doubled: the screen shows single columns, or means of as many columns everywhere."""
    context = browser.new_context(viewport={"width": width, "height": 900}, device_scale_factor=ratio, color_scheme="light")
    page = context.new_page()
    page.goto(f"{server}/#/table?length=100&d_model={d}&p=0&channel=0")
    page.wait_for_selector(DRAWN)
    box = page.locator(".heatmap canvas").bounding_box()
    left, top = (math.floor(box[axis]) - 1 for axis in ("x", "y"))
    clip = {"x": left, "y": top, "width": math.ceil(box["width"]) + 3, "height": box["height"] + 3}
    picture = Image.open(io.BytesIO(page.screenshot(clip=clip, full_page=True))).convert("RGB")
    context.close()
    around = np.asarray(picture, dtype=float)
    across_all = round(box["width"] * ratio)
    table = views.data("table", {"length": 100, "d_model": d}).arrays["table"]
    block = -(-d // across_all)
    cells = -(-d // block)
    height, across = round(box["height"] * ratio) // 100, across_all // cells
    assert (across_all, round(box["height"] * ratio)) == (cells * across, 100 * height)
    means = np.stack([table[:, i : i + block].mean(axis=1) for i in range(0, d, block)], axis=1)
    wanted = painted(means).repeat(height, axis=0).repeat(across, axis=1)
    clear = (slice(8 * ratio, None), slice(8 * ratio, None))  # beside the cursor
    # The browser moves the canvas to whole pixels: one of these pixels is its first.
    corners = itertools.product(range(4 * ratio), range(4 * ratio))
    seen = [around[y : y + 100 * height, x : x + across_all] for y, x in corners]
    apart = [np.abs(one[clear] - wanted[clear]).max() for one in seen if one.shape == wanted.shape]
    assert min(apart) <= 1.5
