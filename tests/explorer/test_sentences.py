"""What a typed sentence may be, how it is split, and how the page says that it is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from posenc.explorer import views
from posenc.explorer.parameters import Refused
from posenc.explorer.sentences import LONGEST, words_of
from sampling import one_in


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("我喜欢猫和狗", "我 喜 欢 猫 和 狗"),
        ("我 喜欢 猫", "我 喜欢 猫"),
        ("I ❤️ cats 🐱🐶!", "I ❤️ cats 🐱 🐶"),
        ("我爱🐱", "我 爱 🐱"),
        ("👩‍👩‍👧 love 👍🏽 🇨🇳🇫🇷", "👩‍👩‍👧 love 👍🏽 🇨🇳 🇫🇷"),
        ("don't stop, mother-in-law", "don't stop mother-in-law"),
    ],
)
def test_words(sentence, words):
    assert words_of(sentence) == tuple(words.split(" "))


def test_twenty_four_words_and_two_hundred_characters_fit_in_every_view():
    longest = " ".join(["wordword"] * 22 + ["last", "x"])
    assert (len(longest.split()), len(longest) <= LONGEST) == (24, False)
    sentence = " ".join(["sevenss"] * 23 + ["a" * 16])
    assert (len(sentence.split()), len(sentence)) == (24, LONGEST)
    for view in ("order", "attention", "rotary_pair", "terms", "taylor"):
        assert views.data(view, {"sentence": sentence}).arrays, view
        with pytest.raises(Refused):
            views.data(view, {"sentence": f"{sentence} b"})


def test_a_long_sentence_has_the_order_that_is_asked_for():
    found = views.data("order", {"sentence": "我喜欢猫和狗", "asked": "1,0,2,3,4,5", "encoding": "rope"}).arrays
    orders = np.asarray(found["orders"]).tolist()
    assert orders == [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [4, 3, 2, 1, 0, 5], [1, 0, 2, 3, 4, 5]]
    assert found["distance"][3] > 0.01 > 1e-12 > found["distance"][0]


@pytest.mark.parametrize(
    ("lang", "said"), [("en", "expected 2 to 24 words, got 1"), ("zh", "应有 2 到 24 个词，现有 1 个")]
)
def test_an_error_is_said_once_beside_its_field_in_the_language_of_the_page(browser, server, lang, said):
    page = browser.new_page(locale="zh-CN" if lang == "zh" else "en-GB")
    page.set_default_timeout(10_000)
    page.goto(f"{server}/#/order?sentence=cats")
    page.wait_for_selector("main[data-ready]")
    trouble = page.locator(".trouble:visible")
    expect(trouble).to_have_count(1)
    expect(trouble).to_contain_text(said)
    other = re.compile("[\u4e00-\u9fff]" if lang == "en" else "expected")
    assert not other.search(trouble.inner_text())
    field = page.locator("[data-name=sentence]").bounding_box()
    assert 0 <= trouble.bounding_box()["y"] - field["y"] < 60
    if lang == "en":
        page.locator("[data-name=sentence] input").fill("我喜欢猫和狗")
        page.keyboard.press("Enter")
        expect(page.locator(".words.moving button")).to_have_count(6)
        expect(trouble).to_have_count(0)
        page.focus(".words.moving [data-word='0']")
        page.keyboard.press("ArrowRight")
        page.wait_for_url(re.compile("asked=1%2C0%2C2%2C3%2C4%2C5|asked=1,0,2,3,4,5"))
        page.wait_for_selector(".stage:not([aria-busy])")
        assert page.locator(".words.moving button").evaluate_all("all => all.map((one) => one.dataset.word).join()") == (
            "1,0,2,3,4,5"
        )
    page.close()


# Words of a sentence without spaces


@pytest.mark.parametrize(("lang", "cut"), [("zh", "按词"), ("en", "by words")])
def test_chinese_is_cut_by_characters_or_by_words_and_the_choice_is_shown(opened, lang, cut):
    page = opened("rotary_pair?sentence=我喜欢猫和狗", lang=lang)
    chips, pressed = ".words button > :first-child", ".cut button[aria-pressed=true]"
    expect(page.locator(chips)).to_have_text(list("我喜欢猫和狗"))
    expect(page.locator(pressed)).to_have_attribute("data-cut", "characters")
    page.locator(".cut button", has_text=cut).click()
    expect(page.locator(chips)).to_have_text(["我", "喜欢", "猫", "和", "狗"])
    expect(page.locator(pressed)).to_have_attribute("data-cut", "words")
    expect(page.locator("[data-name=sentence] input")).to_have_value("我 喜欢 猫 和 狗")
    page.locator(".cut [data-cut=characters]").click()
    expect(page.locator(chips)).to_have_text(list("我喜欢猫和狗"))


def test_other_writing_beside_chinese_stays_whole_and_without_chinese_there_is_no_choice(opened):
    page = opened("order?sentence=我喜欢Python，不喜欢虫子")
    page.locator(".cut [data-cut=words]").click()
    expect(page.locator("[data-name=sentence] input")).to_have_value("我 喜欢 Python，不 喜欢 虫子")
    page.locator(".cut [data-cut=characters]").click()
    expect(page.locator("[data-name=sentence] input")).to_have_value("我 喜 欢 Python，不 喜 欢 虫 子")
    expect(opened("order?sentence=the cat sleeps").locator(".cut")).to_be_hidden()


# What nobody expects

FINE = [
    " ".join(f"w{n}" for n in range(24)),
    "❤️ 🐱 👩‍🚀",
    "שלום עולם טוב",
    "مرحبا يا عالم",
    "<img src=x onerror=alert(1)> & <b>bold</b>",
    "'; DROP TABLE words; --",
]
REFUSED = {"": "got 0", "cats": "got 1", " \u3000 ": "got 0", " ".join("abcdefghijklmnopqrstuvwxy"): "got 25"}


def stays(page: Page) -> None:
    """The rest of the page."""
    for part in ("header", "h1", "[data-name=sentence] input", ".code"):
        expect(page.locator(part).first).to_be_visible()
    assert page.locator("main :is(img, b > script)").count() == 0


@pytest.mark.parametrize("view", one_in(2, ["order", "rotary_pair", "terms", "attention", "taylor"]))
def test_whatever_is_typed_is_drawn_or_refused_in_one_sentence_at_its_field(browser, server, view):
    page, errors = browser.new_page(locale="en-GB"), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{server}/#/{view}")
    field = page.locator("[data-name=sentence] input")
    for sentence in FINE:
        field.fill(sentence)
        field.press("Enter")
        if view in ("order", "attention", "terms", "taylor"):  # where the program names the words
            expect(page.locator(".code code")).to_contain_text(repr(words_of(sentence)[-1])[1:-1], use_inner_text=False)
        page.wait_for_selector(".stage:not([aria-busy])", state="attached")
        expect(page.locator(".trouble:visible")).to_have_count(0)
        stays(page)
    for sentence, said in REFUSED.items():
        field.fill(sentence)
        field.press("Enter")
        trouble = page.locator("[data-name=sentence] + .trouble:visible")
        expect(trouble).to_contain_text(said)
        expect(page.locator(".trouble:visible")).to_have_count(1)
        assert len(trouble.inner_text()) < 120
        stays(page)
    field.fill("two hundred " * 100)
    field.press("Enter")
    expect(page.locator(":is(.trouble, [data-role=missing]):visible")).to_have_count(1)
    expect(field).to_be_visible()
    field.fill("the cat sleeps")
    field.press("Enter")
    expect(page.locator(":is(.trouble, [data-role=missing]):visible")).to_have_count(0)
    page.close()
    assert errors == []


@pytest.mark.parametrize(("lang", "said"), [("en", "cannot show"), ("zh", "无法显示")])
def test_impossible_numbers_of_an_address_are_named_and_the_controls_stay(opened, lang, said):
    page = opened("table", lang=lang)
    for query in ("length=1e999", "length=-3", "length=NaN", "p=2.5e9", "base=zero", "length=9&length=x"):
        page.evaluate("(to) => void (location.hash = to)", f"/table?{query}")
        name, value = query.split("&")[-1].split("=")
        notice = page.locator("[data-role=missing-asked]")
        expect(notice).to_contain_text(f"{name} = {value}")
        expect(notice).to_contain_text(said)
        for part in ("header", "h1", "[data-name=length]"):
            expect(page.locator(part).first).to_be_visible()
        page.click("[data-role=missing-nearest]")
        expect(notice).to_have_count(0)
