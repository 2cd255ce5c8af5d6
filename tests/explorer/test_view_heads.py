"""What trained heads look at: the page shows the shipped models' numbers, and its sentences agree with them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from posenc.explorer import views
from posenc.explorer.trained_words import about, load, record, split
from posenc.explorer.views.heads import IN_ENGLISH, OPENING
from sampling import only

FILM, CAR = OPENING, "The red car is parked outside the building."


def value(page, role: str) -> float:
    return float(page.locator(f"[data-role={role}]").first.get_attribute("data-value"))


def test_the_printed_program_gives_the_arrays():
    data = views.data("heads", {"sentence": FILM, "encoding": "alibi"})
    made: dict[str, object] = {}
    exec(data.python, made)
    for name, array in data.arrays.items():
        np.testing.assert_array_equal(made[name], array)


def test_what_the_page_says_of_the_models_is_so():
    words = split(FILM).words
    film, noun, acting, praise = (words.index(word) for word in ("无聊", "电影", "表演", "精彩"))
    blind, rope = (load("descriptions", name).read(words) for name in ("nope", "rope"))
    second = rope.weights[1]
    assert min(second[:, film, noun].min(), second[:, acting, praise].min()) == pytest.approx(0.87, abs=0.005)
    assert blind.weights[:, :, film, noun].max() == pytest.approx(0.94, abs=0.005)
    assert blind.answers[acting] == "无聊"
    assert max(blind.chances[n] for n in (film, noun, acting, praise)) == pytest.approx(0.58, abs=0.005)
    for name in ("rope", "sinusoidal", "alibi"):
        assert record()[f"descriptions.{name}.right"][-1] == 1
    assert record()["descriptions.nope.linked"][-1].max() < 1 / 3
    linked = record()["descriptions.rope.linked"][-1, :, :, 0]
    assert (linked[0].min(), linked[0].max(), linked.max()) == pytest.approx((0.04, 0.08, 0.97), abs=0.005)
    words = split(IN_ENGLISH).words
    boring, film, acting, praise = (words.index(word) for word in ("boring", "film", "acting", "brilliant"))
    blind, rope = (load("reviews", name).read(words) for name in ("nope", "rope"))
    second = rope.weights[1]
    assert min(second[:, boring, film].min(), second[:, acting, praise].min()) == pytest.approx(0.92, abs=0.005)
    assert blind.weights[:, :, boring, film].max() == pytest.approx(0.82, abs=0.005)
    assert blind.answers[boring] == "acting"
    assert max(blind.chances[n] for n in (boring, film, acting, praise)) == pytest.approx(0.66, abs=0.005)
    assert [record()[f"reviews.{name}.right"][-1] for name in ("nope", "rope", "sinusoidal")] == [0, 1, 1]
    assert record()["reviews.alibi.right"][-1] == pytest.approx(0.99, abs=0.005)
    assert record()["reviews.nope.linked"][-1].max() < 1 / 3
    linked = record()["reviews.rope.linked"][-1, :, :, 0]
    assert (linked[0].min(), linked[0].max(), linked.max()) == pytest.approx((0.05, 0.05, 0.98), abs=0.005)
    assert record()["reviews.uniform"] == pytest.approx([0.05, 0.05])
    words = split(CAR).words
    for name in ("nope", "rope"):
        read = load("translation", name).read(words)
        for chinese, english in (("红色", "red"), ("建筑物", "building")):
            assert read.weights[1, :, read.words.index(chinese) - 1, words.index(english)].max() > 0.8
        assert record()[f"translation.{name}.right"][-1] == 1


def test_the_film_is_read_with_and_without_positions(opened):
    page = opened("heads", lang="zh")
    expect(page.locator("[data-name=sentence] input")).to_have_value(FILM)
    answers = page.locator(".model [data-role=answer]")
    expect(answers).to_have_text([f"→ {word}" for word in ["精彩", "电影", "无聊", "电影", "无聊", "电影", "精彩", "表演"]])
    words = split(FILM).words
    rope = load("descriptions", "rope").read(words)
    best = int(record()["descriptions.rope.linked"][-1].mean(-1).argmax())
    weight = float(rope.weights[best // 4, best % 4, 3, 1])
    assert value(page, "value") == pytest.approx(weight, abs=1e-12)
    assert (value(page, "right-without"), value(page, "right-with")) == (0, 1)
    page.locator(".attending").nth(1).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("query=7"))
    expect(page.locator("[data-role=live]")).to_contain_text("表演 → 精彩")
    page.locator(".model").nth(1).locator("[role=radio]").nth(0).click()
    page.wait_for_url(re.compile("right=0"))
    expect(page.locator(".formula-card")).to_contain_text("第 1 层第 1 头")
    made: dict[str, object] = {}
    exec(page.inner_text(".code code"), made)


def test_an_english_page_opens_with_the_difference(opened):
    page = opened("heads")
    expect(page.locator("[data-name=sentence] input")).to_have_value(IN_ENGLISH)
    assert (value(page, "right-without"), value(page, "right-with")) == (0, 1)
    expect(page.locator(".model h2 b")).to_have_text(["0 % right", "100 % right"])
    answers = ["boring", "acting", "brilliant", "acting", "boring", "film", "brilliant", "acting"]
    expect(page.locator(".model [data-role=answer]")).to_have_text([f"→ {word}" for word in answers])


@pytest.mark.parametrize("lang", only(("en", "zh"), "zh"))
def test_a_sentence_of_ones_own_is_read_with_its_unknown_words_marked(opened, lang):
    page = opened("heads", lang=lang, width=1440)
    field = page.locator("[data-name=sentence] input")
    for sentence, unknown, answers in (
        ("The soup is very good but the music was awful", ["soup"], ["weather", "awful", "music"]),
        ("I love you", ["you"], []),
        ("The coffee is very good but the music was awful", [], ["good", "coffee", "awful", "music"]),
    ):
        field.fill(sentence)
        field.press("Enter")
        second = page.locator(".model").nth(1)
        expect(second.locator("[data-role=answer]")).to_have_text([f"→ {word}" for word in answers])
        expect(second.locator(".unknown text.word")).to_have_text(unknown)
        told = page.locator(".unknown-words")
        expect(told).to_contain_text(unknown[0]) if unknown else expect(told).to_be_hidden()
        page.locator(".attending").nth(1).press("ArrowRight")
    expect(page.locator("[role=alert]:visible")).to_have_count(0)


def test_an_english_page_says_what_chinese_words_mean(opened):
    page = opened(f"heads?sentence={FILM}")
    assert (value(page, "right-without"), value(page, "right-with")) == (0, 1)
    expect(page.locator(".model h2 b")).to_have_text(["0 % right", "100 % right"])
    second = page.locator(".model").nth(1)
    expect(second.locator("[data-role=answer]")).to_have_text(["→ boring", "→ film", "→ brilliant", "→ acting"])
    known = set(split(FILM).words) - {"，", "。"}
    assert sum(bool(text) for text in second.locator(".gloss").all_text_contents()) == len(known)


def test_every_word_of_the_models_has_a_meaning_in_english():
    source = (Path(__file__).parents[2] / "web/src/views/heads_pictures.ts").read_text("utf-8")
    glossed = set(re.findall(r"([\u4e00-\u9fff]+): \"", source))
    words = {word for word in about()["tasks"]["descriptions"]["vocabulary"] if re.search("[\u4e00-\u9fff]", word)}
    assert glossed == words


@pytest.mark.acceptance
def test_a_typed_sentence_is_translated(opened):
    page = opened(f"heads?sentence={CAR}")
    expect(page.locator("[data-name=sentence] input")).to_have_value(CAR)
    expect(page.locator(".model").nth(1).locator(".asked text.word")).to_have_text(
        ["红色", "的", "汽车", "停", "在", "建筑物", "外面", "。"]
    )
    field = page.locator("[data-name=sentence] input")
    field.fill("the dirty taxi is stuck inside the small garage")
    field.press("Enter")
    expect(page.locator(".model").nth(1).locator(".asked text.word")).to_have_text(
        ["脏", "的", "出租车", "卡", "在", "小", "的", "车库", "里面", "。"]
    )
    read = load("translation", "rope").read(split("the dirty taxi is stuck inside the small garage").words)
    line = page.locator(".model").nth(1).locator(".arc.chosen").first
    query, key = int(line.get_attribute("data-query")), int(line.get_attribute("data-key"))
    assert float(line.get_attribute("data-value")) == pytest.approx(float(read.weights.amax((0, 1))[query, key]), abs=1e-12)


@pytest.mark.acceptance
def test_the_scrubber_shows_attention_by_distance_at_a_step(opened):
    page = opened("heads?snapshot=3&distance=17", lang="zh")
    attention = record()["descriptions.rope.attention"][3]
    best = int(record()["descriptions.rope.linked"][-1].mean(-1).argmax())
    shown = page.locator(".training .charted").nth(1).locator(".legend b")
    expect(shown).to_have_count(2)
    assert float(shown.nth(1).get_attribute("data-value")) == pytest.approx(attention[best // 4, best % 4, 17], abs=1e-7)
    page.click("[data-role=step]")
    expect(page.locator("[data-role=when] b")).to_have_attribute("data-value", "150")
