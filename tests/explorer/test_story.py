"""The start page: one scene that takes a sentence from a bag of words to what attention sees, and leads to every view."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from posenc.explorer import views

STEPS = ("bag", "hands", "row", "table", "shift", "scores", "mask", "attention")
TYPED = {"en": "Who saw whom, and who saw you", "zh": "猫追老鼠，老鼠追猫"}
WORDS = {"en": ["Who", "saw", "whom", "and", "who", "saw", "you"], "zh": list("猫追老鼠老鼠追猫")}
TOKENS = ".picture .scene .token"


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def turned(x: np.ndarray, position: np.ndarray) -> np.ndarray:
    """RoPE of pairs (0, 1), (2, 3) … by complex numbers, base 100."""
    pairs = x[:, 0::2] + 1j * x[:, 1::2]
    moved = pairs * np.exp(1j * position[:, None] * 100.0 ** (-np.arange(4) / 4))
    return np.stack([moved.real, moved.imag], axis=-1).reshape(x.shape)


@pytest.mark.parametrize("sentence", ["我爱你，你爱我吗", "The cat chases the mouse", "a " * 24])
def test_its_numbers_are_the_formulas(sentence):
    """From the vectors that the printed program draws, by numpy alone."""
    found = views.data("story", {"sentence": sentence})
    made: dict[str, Any] = {}
    exec(found.python, made)
    q, k, v = (made[name][0, 0].numpy() for name in "qkv")
    got = {name: np.asarray(values) for name, values in found.arrays.items()}
    count = len(q)
    near = {"rtol": 1e-12, "atol": 1e-13}

    angle = np.arange(64)[:, None] * 100.0 ** (-np.arange(4) / 4)
    table = np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(64, 8)
    np.testing.assert_allclose(got["omega"], 100.0 ** (-np.arange(4) / 4), **near)
    np.testing.assert_allclose(got["table"], table, **near)
    apart = np.linalg.norm(table[:, None] - table, axis=-1)
    np.testing.assert_allclose(got["closest"], apart[~np.eye(64, dtype=bool)].min(), **near)
    assert got["missed"].shape == (9,)
    assert got["missed"].max() < 1e-14

    at = np.arange(count)
    for start in (0, 1, 32):
        rotated = turned(q, at + start) @ turned(k, at + start).T / np.sqrt(8)
        np.testing.assert_allclose(got["rotated"][start], rotated, **near)
        rows = table[start : start + count]
        np.testing.assert_allclose(got["added"][start], (q + rows) @ (k + rows).T / np.sqrt(8), **near)

    slopes = np.array([0.0, *(2.0 ** -np.arange(1, 9))])
    np.testing.assert_allclose(got["slopes"], slopes, **near)
    penalty = slopes[:, None, None] * np.abs(at[:, None] - at)
    later = np.triu(np.ones((count, count), bool), 1)
    logits = np.where(later, -np.inf, q @ k.T / np.sqrt(8) - penalty)
    np.testing.assert_allclose(got["logits"], logits, **near)
    np.testing.assert_allclose(got["weights"], softmax(logits), **near)
    for order, one in enumerate((at, at[::-1])):
        scores = q[one] @ k[one].T / np.sqrt(8)
        np.testing.assert_allclose(got["bag"][order], softmax(scores) @ v[one], **near)
        np.testing.assert_allclose(
            got["seen"][:, order], softmax(np.where(later, -np.inf, scores - penalty)) @ v[one], **near
        )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_typed_sentence_goes_from_the_bag_to_its_attention(opened, lang):
    page = opened(lang=lang, still=True)
    page.locator("[data-name=sentence] input").fill(TYPED[lang])
    page.keyboard.press("Enter")
    words = WORDS[lang]
    expect(page.locator(f"{TOKENS} .word")).to_have_text(words)
    numbers = {name: np.asarray(values) for name, values in views.data("story", {"sentence": TYPED[lang]}).arrays.items()}
    for step in STEPS:
        expect(page.locator(".view-story")).to_have_attribute("data-step", step)
        says = page.inner_text(".says")
        assert len(re.findall(r"[。！？]" if lang == "zh" else r"[.!?](?=\s|$)", says)) == 1, says
        expect(page.locator("[data-touch]")).to_have_count(1)
        expect(page.locator(".fact")).to_be_hidden()  # nothing is told before the reader has predicted
        page.locator(".choice").first.click()
        assert page.locator(".choice.right").count() == 1
        assert page.inner_text(".predict .answer")
        expect(page.locator(".fact")).to_be_visible()
        if step == "bag":  # the results go along with the words
            before = cells(page)
            np.testing.assert_array_equal(before, numbers["bag"][0])
            page.click("[data-touch=backwards]")
            np.testing.assert_array_equal(cells(page), numbers["bag"][1][::-1])
            np.testing.assert_allclose(cells(page), before, atol=1e-14)
        elif step == "scores":
            page.locator("[data-touch=start]").fill("32")
            np.testing.assert_array_equal(cells(page), numbers["rotated"][32])
            assert page.locator(f"{TOKENS} .at").first.text_content() == "32"
        elif step == "mask":
            page.locator("[data-touch=head]").fill("1")
            shown = cells(page)
            later = np.triu(np.ones_like(shown, dtype=bool), 1)
            assert np.isinf(shown[later]).all()
            np.testing.assert_array_equal(shown[~later], numbers["logits"][1][~later])
        elif step == "attention":
            page.locator(f"{TOKENS} .word").nth(2).click()
            np.testing.assert_array_equal(cells(page)[:, 0], numbers["weights"][1][2])
            percents = page.locator(f"{TOKENS} .number").all_text_contents()
            assert percents == [f"{round(100 * one)}%" for one in numbers["weights"][1][2]]
        if step != STEPS[-1]:
            page.click("[data-role=on]")
    expect(page.locator(".beyond")).to_have_attribute("href", "#/stretch")


def cells(page: Any) -> np.ndarray:
    rows = page.locator(TOKENS).evaluate_all(
        "all => all.map((one) => [...one.querySelectorAll('rect[data-value]')].map((cell) => cell.dataset.value))"
    )
    return np.array([[float(value.replace("Infinity", "inf")) for value in row] for row in rows])


# Every part of a word, and where its chip stands.
PARTS = "[one, ...one.querySelectorAll('.chip, .word, .at, .face')]"
MARK = f"all => all.forEach((one, word) => {PARTS}.forEach((part) => (part.mine = word)))"
KEPT = f"all => all.map((one) => {PARTS}.map((part) => part.mine))"
BOX = "one.querySelector('.chip').getBoundingClientRect()"
PLACES = f"all => all.map((one) => {BOX}).map(({{ x, y }}) => [x, y])"


def test_a_word_is_the_same_element_in_every_step_and_sentence(opened):
    page = opened(still=True)
    tokens = page.locator(TOKENS)
    tokens.evaluate_all(MARK)
    count = len(tokens.evaluate_all(KEPT)[0])
    assert count == 8  # the group, chip, letters, position and four faces
    wanted = [[word] * count for word in range(7)]
    colours = page.locator(f"{TOKENS} .chip").evaluate_all("all => all.map((one) => one.style.stroke)")
    assert len(set(colours)) == 7
    for step in (*STEPS[1:], *STEPS[-2:-4:-1]):
        page.click(f".rail a[href*='step={step}']")
        expect(page.locator(".view-story")).to_have_attribute("data-step", step)
        assert tokens.evaluate_all(KEPT) == wanted, step
        assert page.locator(f"{TOKENS} .chip").evaluate_all("all => all.map((one) => one.style.stroke)") == colours, step
    page.click(".rail a[href*='step=scores']")
    page.locator("[data-name=sentence] input").fill("You love me but do I love you too")
    page.keyboard.press("Enter")
    expect(page.locator(f"{TOKENS} .word")).to_have_text(["You", "love", "me", "but", "do", "I", "love", "you", "too"])
    expect(page.locator(".view-story")).to_have_attribute("data-step", "scores")
    assert tokens.evaluate_all(KEPT) == [*wanted, [None] * count, [None] * count]


@pytest.mark.parametrize("still", [False, True])
def test_nothing_jumps_and_without_motion_all_is_placed_at_once(opened, still):
    page = opened(still=still)
    tokens = page.locator(TOKENS)
    page.wait_for_timeout(400)
    before = np.array(tokens.evaluate_all(PLACES))
    steps = page.evaluate(
        f"""(tokens) => new Promise((done) => {{
          const places = () => ({PLACES})([...document.querySelectorAll(tokens)]);
          const seen = [];
          const frame = () => {{ seen.push(places()); seen.length < 90 ? requestAnimationFrame(frame) : done(seen); }};
          document.querySelector(".rail a[href*='step=table']").click();
          frame();
        }})""",
        TOKENS,
    )
    page.wait_for_timeout(1200)
    after = np.array(tokens.evaluate_all(PLACES))
    way = np.array([before, *steps, after])
    total = np.linalg.norm(after - before, axis=-1)
    assert total.min() > 20
    largest = np.linalg.norm(np.diff(way, axis=0), axis=-1).max(axis=0) / total
    if still:
        assert largest.min() == 1.0
    else:
        assert largest.max() < 0.5, "a word covers half of its way in one frame"


def test_only_what_is_seen_moves_and_numbers_wait_for_their_cells(opened):
    """What moves unseen, and text that moves, is what makes the frames of a step slow."""
    page = opened("story?sentence=I+love+you+and+you+love+me")
    for step in (*STEPS[1:], *STEPS[-2:-4:-1]):
        moving = page.evaluate(
            """(step) => new Promise((done) => {
              document.querySelector(`.rail a[href*="step=${step}"]`).click();
              requestAnimationFrame(() => requestAnimationFrame(() => done(document.getAnimations()
                .filter((one) => one instanceof CSSTransition && one.effect.target.closest("main .scene"))
                .map(({ effect: { target } }) => [target.getAttribute("class"), getComputedStyle(target).visibility])
              )));
            })""",
            step,
        )
        assert moving, step
        assert {name for name, visibility in moving if visibility == "hidden" or name in ("number", "numbers")} == set(), (
            step
        )
        assert (
            page.locator(f"{TOKENS} .number").evaluate_all(
                "all => all.filter((one) => one.textContent && getComputedStyle(one).visibility === 'visible').length"
            )
            == 0
        ), step
        page.wait_for_timeout(700)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("width", "height"), [(390, 844), (1440, 900)])
def test_one_screen_has_sentence_picture_touch_and_question(opened, lang, width, height):
    page = opened(lang=lang, width=width, height=height, still=True)
    over = {}
    for step in STEPS:
        page.click(f".rail a[href*='step={step}']")
        expect(page.locator(".view-story")).to_have_attribute("data-step", step)
        page.evaluate("scrollTo(0, 0)")
        bottoms = page.evaluate(
            """(parts) => Object.fromEntries(parts
              .map((one) => [one, document.querySelector(one).getBoundingClientRect()])
              .map(([one, { top, bottom }]) => [one, top >= 0 ? bottom : Infinity]))""",
            ["[data-name=sentence] input", ".says", ".picture .scene", "[data-touch]", ".choices"],
        )
        rail = page.locator(".rail").bounding_box()
        last = rail["y"] if width < 640 else height
        over |= {f"{step} {part}": bottom for part, bottom in bottoms.items() if bottom > last}
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = page.locator(TOKENS).evaluate_all(
            f"all => all.map((one) => {BOX}).map(({{ left, right, top, bottom }}) => [left, right, top, bottom])"
        )
        left, right, top, bottom = np.array(boxes).T
        crossed = (left[:, None] < right) & (left < right[:, None]) & (top[:, None] < bottom) & (top < bottom[:, None])
        assert crossed.sum() == len(boxes), f"{step}: words stand on one another"
    assert over == {}


def test_every_step_has_an_address_and_keeps_the_sentence(opened):
    page = opened("story?step=shift&sentence=she+sees+him&shift=5", lang="zh")
    expect(page.locator(".view-story")).to_have_attribute("data-step", "shift")
    expect(page.locator(f"{TOKENS} .at").first).to_have_text("0→5")
    expect(page.locator(".rail [aria-current]")).to_have_text("5")
    page.click("[data-role=on]")
    expect(page.locator(".rail [aria-current]")).to_have_text("6")
    expect(page.locator(".rail a[href*='step=shift']")).to_have_class("done")
    page.click("[data-language=en]")
    expect(page.locator(".step-head h2")).to_contain_text("RoPE's scores")
    expect(page.locator(f"{TOKENS} .word")).to_have_text(["she", "sees", "him"])
    page.reload()
    page.wait_for_selector("main[data-ready]")
    expect(page.locator(".view-story")).to_have_attribute("data-step", "scores")
    expect(page.locator(f"{TOKENS} .word")).to_have_text(["she", "sees", "him"])
    page.click(".thumbnail >> nth=7")
    expect(page.locator(".view-story")).to_have_attribute("data-step", "attention")
    expect(page.locator(f"{TOKENS} .word")).to_have_text(["she", "sees", "him"])


def test_a_step_taken_just_before_the_language_changes_counts(opened):
    """The window's address comes after a delay; what reads it does not."""
    page = opened("story?step=shift", lang="zh")
    page.evaluate("document.querySelector('[data-role=on]').click(); document.querySelector('[data-language=en]').click()")
    expect(page.locator(".step-head h2")).to_contain_text("RoPE's scores")


def test_a_refused_sentence_says_why_and_leaves_the_scene(browser, server):
    """In a page of its own, because the browser's console tells of the refusal."""
    page = browser.new_page(locale="zh-CN")
    page.goto(f"{server}/#/story?step=table")
    page.wait_for_selector("main[data-ready]")
    page.locator("[data-name=sentence] input").fill("一")
    page.keyboard.press("Enter")
    expect(page.locator(".control-row .trouble")).to_contain_text("2")
    expect(page.locator(f"{TOKENS} .word")).to_have_text(list("我爱你你爱我吗"))
    page.close()


def test_the_map_is_drawn_from_the_sentence_and_leads_through_the_views_in_their_order(opened):
    """So that "Next" follows the story."""
    page = opened("story?sentence=she+sees+him")
    assert page.locator(".thumbnail .scene").count() == len(STEPS)
    for small in page.locator(".thumbnail .scene").all():
        assert small.locator(".word").all_text_contents() == ["she", "sees", "him"]
    links = page.locator(".all-views li a").evaluate_all("all => all.map((one) => one.hash.slice(2))")
    assert tuple(links) == views.PAGES
    page.goto(f"{page.url.split('#')[0]}#/{links[1]}")
    for name in links[2:4]:
        expect(page.locator("[rel=next]")).to_have_attribute("href", f"#/{name}")
        page.click("[rel=next]")
        page.wait_for_selector(f"main[data-ready] .view-{name}")
