"""The point of a view is on the first screen of a telephone: nothing of it is below, nothing is cut at the side."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from conftest import Opened
from sampling import every_second, one_in, thinned

WIDTH, HEIGHT = 390, 844
#: What has to be seen: every element of the selector, from its top to its bottom.
SEEN = {
    "stretch": (".written", ".lost .chart"),
    "compare": (".panel:not([hidden])",),
    "similarity": (".line-of-words > div", ".charted .legend"),
    "attention": (".frame .matrix:not(.signed:nth-child(3) *)",),
    "heads": (".attending svg",),
    "order": (".moving", ".choices > *"),
    "rotary_pair": (".plane svg", ".said", "[data-name=m]", "[data-name=n]", "[data-name=lock]"),
    "paths": (".plane svg", ".path .chart svg"),
}
BOXES = """(selector) => [...document.querySelector("main").querySelectorAll(selector)]
  .filter((one) => one.checkVisibility())
  .map((one) => [one.getBoundingClientRect(), one.closest(".scroll")])
  .map(([box, scroll]) => [box.left, box.right, box.bottom, scroll ? scroll.scrollWidth - scroll.clientWidth : 0])"""


def outside(page: Page, selector: str) -> list[list[float]]:
    boxes: list[list[float]] = page.evaluate(BOXES, selector)
    assert boxes, f"nothing is {selector}"
    return [box for box in boxes if box[0] < 0 or box[1] > WIDTH or box[2] > HEIGHT or box[3] > 1]


@pytest.mark.parametrize(("name", "lang"), thinned(2, every_second(tuple(SEEN), ("en", "zh"))))
def test_the_point_of_a_view_is_on_the_first_screen_of_a_telephone(opened: Opened, name: str, lang: str) -> None:
    page = opened(name, lang=lang, width=WIDTH, height=HEIGHT, still=True)
    found = {selector: outside(page, selector) for selector in SEEN[name]}
    assert {selector: boxes for selector, boxes in found.items() if boxes} == {}


@pytest.mark.parametrize("name", one_in(3, ["S1", "S4", "S7", "S13", "S15", "S16", "S17"]))
def test_the_figures_of_a_row_are_whole_on_a_telephone(opened: Opened, name: str) -> None:
    page = opened("table", lang="zh", width=WIDTH, height=HEIGHT, still=True)
    page.evaluate("name => { location.hash = name; }", name)
    expect(page.locator(f".row-card[data-row={name}] tbody tr").first).to_be_visible()
    assert outside(page, ".row-card table") == []


@pytest.mark.parametrize("name", ["rotary_pair", "extrapolation"])
def test_all_controls_stand_in_one_line_on_a_desktop(opened: Opened, name: str) -> None:
    page = opened(name, width=1440, still=True)
    line = page.locator(".control-row").bounding_box()
    tallest = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.control-row > * > *')].map((one) => one.clientHeight))"
    )
    assert line is not None
    assert line["height"] < 1.5 * tallest


def test_a_strip_has_one_colour_where_only_the_distance_counts(opened: Opened) -> None:
    """The pairs on the cursor's diagonal, which are equally far apart: RoPE and ALiBi against what is added to words."""
    page = opened("compare")
    colours = "(strip) => new Set(strip.style.background.match(/rgb\\([^)]*\\)/g)).size"
    found = {
        panel.locator("h2").inner_text(): panel.locator(".diagonal").evaluate(colours)
        for panel in page.locator(".panel").all()
    }
    assert {name for name, count in found.items() if count > 1} == {"Sinusoidal", "Learned"}


def test_the_cosine_stands_clear_of_the_line_that_it_names(opened: Opened) -> None:
    """At every slope: no corner of the text's box is on the other side of the line than the others."""
    page = opened("paths")
    for p, q in ((12, 45), (5, 60), (0, 30), (30, 63), (45, 12)):
        page.evaluate("([p, q]) => { location.hash = `/paths?p=${p}&q=${q}`; }", [p, q])
        page.wait_for_url(f"**p={p}&q={q}")
        page.wait_for_function("p => document.querySelector('text.here').textContent === String(p)", arg=p)
        sides = page.evaluate(
            """() => {
              const [line, text] = ["line.chord", "text.chord"].map((one) => document.querySelector(one));
              const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((one) => Number(line.getAttribute(one)));
              const box = text.getBBox(), [across, down] = [box.width, box.height * 0.6];
              const [left, top] = [box.x, box.y + box.height * 0.2];
              return [[0, 0], [1, 0], [0, 1], [1, 1]].map(([i, j]) =>
                Math.sign((x2 - x1) * (top + j * down - y1) - (y2 - y1) * (left + i * across - x1)));
            }"""
        )
        assert len(set(sides)) == 1, (p, q, sides)
