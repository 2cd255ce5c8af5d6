"""The start page: its figures show the library's numbers, move, and lead to every view."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from posenc.explorer import views
from sampling import one_in

MEASURED = Path(views.__file__).parents[2] / "catalogue" / "measured.json"


@pytest.mark.acceptance
def test_a_chapter_without_views_is_seen_once_it_was_opened(opened):
    page = opened()
    second = page.locator(".rail li:not(.before) a").nth(1)
    expect(second).to_have_class("")
    second.click()
    expect(second).to_have_class("done")
    expect(page.locator("#chapter-2 h2")).to_be_focused()


def test_its_numbers_are_the_formulas():
    data = views.data("story", {})
    table = [[(math.sin, math.cos)[c % 2](p * 100 ** (-2 * (c // 2) / 32)) for c in range(32)] for p in range(32)]
    np.testing.assert_allclose(data.arrays["table"], table, atol=1e-14)
    np.testing.assert_array_equal(data.arrays["bits"] @ (1 << np.arange(5)), np.arange(32))
    np.testing.assert_allclose(data.arrays["bias"], [[-d / 2 ** (h + 1) for d in range(33)] for h in range(8)])
    score = [[np.mean([math.cos((i - j) * 100 ** (-2 * n / 32)) for n in range(16)]) for j in range(24)] for i in range(24)]
    np.testing.assert_allclose(data.arrays["scores"], score, atol=1e-14)
    assert data.facts["blind"]["nope"] < 1e-14 < 0.1 < data.facts["blind"]["sinusoidal"]


def test_what_it_says_was_measured_is_what_the_lab_measured():
    task = next(task for task in json.loads(MEASURED.read_text())["tasks"] if task["name"] == "language_model")
    arms = {arm["name"]: arm["cells"] for arm in task["arms"]}
    shown = views.data("story", {}).facts["measured"]
    assert (shown["trained"], shown["lengths"]) == (64, [64, 72, 96, 128, 256, 512])
    for one in shown["series"]:
        np.testing.assert_allclose(one["bits"], [np.mean(cell["seeds"]) for cell in arms[one["name"]]], atol=2e-5)


@pytest.mark.acceptance
def test_words_change_places_and_take_their_results_along(opened):
    page = opened()
    words = page.locator(".token")
    before = [words.nth(n).bounding_box()["x"] for n in range(3)]
    page.click("[data-role=swap]")
    expect(page.locator(".tokens")).to_have_attribute("aria-label", re.compile("each: 你 爱 我$"))
    page.wait_for_timeout(700)
    after = [words.nth(n).bounding_box()["x"] for n in range(3)]
    assert np.allclose(after, before[::-1], atol=1)


@pytest.mark.acceptance
def test_every_slider_moves_its_figure(opened):
    page = opened("", lang="zh")
    sliders = page.locator(".figure input[type=range]")
    assert sliders.count() == 6
    for number in range(6):
        figure = page.locator(".figure").filter(has=page.locator("input[type=range]")).nth(number)
        before = figure.inner_html()
        heard = sliders.nth(number).get_attribute("aria-valuetext")
        sliders.nth(number).press("ArrowRight")
        assert figure.inner_html() != before
        assert sliders.nth(number).get_attribute("aria-valuetext") != heard
    expect(sliders.nth(4)).to_have_attribute("aria-valuetext", re.compile("^4: 分数 0"))


@pytest.mark.acceptance
def test_a_screen_reader_hears_the_score_that_the_figure_shows(opened):
    page = opened()
    slider = page.locator("#chapter-6 input")
    slider.press("ArrowRight")
    score = f"{views.data('story', {}).arrays['scores'][4, 0]:.3f}"
    expect(slider).to_have_attribute("aria-valuetext", f"4: score {score}")
    expect(page.locator("#chapter-6 .formula")).to_contain_text(score)


def test_it_leads_to_every_view_and_answers_its_questions(opened):
    page = opened()
    expect(page.locator(".all-views li")).to_have_count(len(views.PAGES))
    for question in page.locator(".questions details").all():
        question.locator("summary").click()
        assert len(question.locator("p").inner_text()) > 60
    page.locator(".chapter .links a").first.click()
    page.wait_for_selector(".view-order")
    page.go_back()
    page.wait_for_selector(".start")


@pytest.mark.acceptance
def test_the_chapters_lead_through_the_views_in_their_order(opened):
    """So that "Next" follows the story."""
    page = opened()
    links = page.locator(".chapter .links a").evaluate_all("all => all.map((one) => one.hash.slice(2))")
    assert tuple(links) == views.PAGES[1:], "stretch stands before the story"
    page.goto(f"{page.url.split('#')[0]}#/{links[0]}")
    for name in links[1:3]:
        expect(page.locator("[rel=next]")).to_have_attribute("href", f"#/{name}")
        page.click("[rel=next]")
        page.wait_for_selector(f"main[data-ready] .view-{name}")


@pytest.mark.parametrize(("motion", "drawn"), one_in(2, [("no-preference", True), ("reduce", False)]))
def test_the_table_draws_itself_once_unless_motion_is_unwanted(browser, server, motion, drawn):
    """While it draws, the rows that are not yet there are cleared."""
    context = browser.new_context(reduced_motion=motion)
    page = context.new_page()
    page.add_init_script(
        """window.cleared = [];
        const clear = CanvasRenderingContext2D.prototype.clearRect;
        CanvasRenderingContext2D.prototype.clearRect = function (x, y, width, height) {
          if (y > 0 && this.canvas.closest(".hero")) cleared.push(y / this.canvas.height);
          clear.call(this, x, y, width, height);
        };"""
    )
    page.goto(server)
    page.wait_for_selector("main[data-ready] .hero canvas")
    page.wait_for_timeout(2500)  # longer than the drawing
    cleared = page.evaluate("cleared")
    assert bool(cleared) == drawn
    assert cleared == sorted(cleared)  # from the first row to the last, once
    last = page.evaluate(
        """() => { const one = document.querySelector(".hero canvas");
        return one.getContext("2d").getImageData(1, one.height - 2, 1, 1).data[3]; }"""
    )
    assert last == 255
    context.close()
