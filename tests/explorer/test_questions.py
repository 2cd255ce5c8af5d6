"""Every view answers its three questions without scrolling: their parts are inside a window of 1440 x 900."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from posenc.explorer import views

PAGES = ["start", *views.PAGES]
QUESTIONS = runpy.run_path(str(Path(__file__).parents[2] / "docs/explorer_questions.py"))["QUESTIONS"]
REDRAWN = ["terms", "precision", "paths"]

INSIDE = """(selector) => {
  const found = [...document.querySelectorAll(`main ${selector}`)].filter((one) => one.checkVisibility());
  return found.map((one) => one.getBoundingClientRect())
    .map(({ left, top, right, bottom }) => [left, top, right, bottom].map(Math.round));
}"""


def test_every_view_has_three_questions_in_both_languages():
    assert list(QUESTIONS) == PAGES
    for asked in QUESTIONS.values():
        assert len({part for *_, part in asked}) == 3
        assert all(english.endswith("?") and chinese.endswith("？") for english, chinese, _ in asked)


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.acceptance)])
@pytest.mark.parametrize("names", [REDRAWN, pytest.param(PAGES, marks=pytest.mark.acceptance)], ids=["some", "all"])
def test_the_answers_are_in_the_window(browser, server, lang, names):
    locale = "zh-CN" if lang == "zh" else "en-GB"
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale=locale, reduced_motion="reduce")
    page = context.new_page()
    page.goto(server)
    missing = {}
    for name in names:
        page.goto(f"{server}/#/{'' if name == 'start' else name}")
        page.wait_for_selector(f"main[data-ready]:has(.view-{'story' if name == 'start' else name})")
        for english, _, part in QUESTIONS[name]:
            found = page.evaluate(INSIDE, part)
            if not found or any(left < 0 or top < 0 or right > 1440 or bottom > 900 for left, top, right, bottom in found):
                missing[f"{name}: {english}"] = (part, found)
    context.close()
    assert missing == {}
