"""The start page: its figures show the library's numbers, move, and lead to every view."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
from playwright.sync_api import expect

from posenc.explorer import views

MEASURED = Path(views.__file__).parents[1] / "measured.json"


def test_a_chapter_without_views_is_seen_once_it_was_opened(opened):
    page = opened()
    second = page.locator(".rail a").nth(1)
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


def test_words_change_places_and_take_their_results_along(opened):
    page = opened()
    words = page.locator(".token")
    before = [words.nth(n).bounding_box()["x"] for n in range(3)]
    page.click("[data-role=swap]")
    expect(page.locator(".tokens")).to_have_attribute("aria-label", re.compile("each: 你 爱 我$"))
    page.wait_for_timeout(700)
    after = [words.nth(n).bounding_box()["x"] for n in range(3)]
    assert np.allclose(after, before[::-1], atol=1)


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
