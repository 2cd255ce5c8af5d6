"""A pair of channels of q and k: the page shows the library's values, and moving both does not change the score."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from widths import fits

from posenc.explorer import views

LAST = 40
QUERY = (1.0, 0.5, -0.3, 0.8)
KEYS = ((0.6, -0.2, 0.9, 0.4), (0.3, 0.8, -0.5, 0.2), (0.7, 0.1, 0.4, -0.6), (-0.4, 0.9, 0.2, 0.5), (0.2, -0.7, 0.6, 0.3))


def turned(x, position, base):
    """Every pair as one complex number, times e^(i·position·ω)."""
    pairs = np.asarray(x)[0::2] + 1j * np.asarray(x)[1::2]
    return pairs * np.exp(1j * position * base ** (-np.arange(len(pairs)) / len(pairs)))


def product(q, k):
    """The inner products of the pairs."""
    return (q * k.conj()).real


def parts(m, word, n, base=100.0):
    """Pair by pair, the score of 正在 at m with a word at n."""
    return product(turned(QUERY, m, base), turned(KEYS[word], n, base))


def arrays(**asked):
    return {name: np.asarray(values) for name, values in views.data("rotary_pair", asked).arrays.items()}


def value(page, role) -> float:
    return float(page.get_attribute(f"[data-role={role}]", "data-value"))


def values(page, selector) -> list[float]:
    return page.eval_on_selector_all(selector, "all => all.map(one => +one.dataset.value)")


@pytest.mark.parametrize("asked", [{}, {"word": 3, "base": 10.0}, {"d_head": 10, "base": 10000.0, "word": 1}], ids=str)
def test_every_score_is_that_of_turned_pairs(asked):
    got, base = arrays(**asked), asked.get("base", 100.0)
    q, k = got["q"], got["k"]
    for m, n in [(0, 0), (2, 0), (40, 3), (7, 39)]:
        by_pair = product(turned(q, m, base), turned(k, n, base))
        np.testing.assert_allclose(got["scores"][m, n], by_pair.sum(), atol=1e-13)
        np.testing.assert_allclose(got["pair_scores"][:, m - n + LAST], by_pair, atol=1e-13)
        np.testing.assert_allclose(got["lag_scores"][m - n + LAST], by_pair.sum(), atol=1e-13)
        np.testing.assert_allclose(got["q_turned"][m, 0::2] + 1j * got["q_turned"][m, 1::2], turned(q, m, base), atol=1e-14)
        angles = [m * base ** (-2 * i / len(q)) for i in range(len(q) // 2)]
        code = np.array([f(angle) for angle in angles for f in (math.sin, math.cos)])
        np.testing.assert_allclose(got["added_lengths"][m], np.linalg.norm(q + code), atol=1e-14)


@pytest.mark.parametrize("asked", [{}, {"d_head": 64, "base": 10000.0}], ids=str)
def test_sliding_both_keeps_the_score_to_rounding_and_adding_does_not(asked):
    got = arrays(**asked)
    size = np.linalg.norm(got["q"]) * np.linalg.norm(got["k"])
    spreads = {name: [np.ptp(np.diagonal(got[name], o)) for o in range(-30, 31)] for name in ("scores", "added_scores")}
    assert max(spreads["scores"]) / size < 1e-15
    assert min(spreads["added_scores"]) / size > 0.1
    np.testing.assert_allclose(got["lengths"], np.linalg.norm(got["q"]), rtol=1e-15)


def test_the_sentence_is_the_worked_example():
    for word, key in enumerate(KEYS):
        got = arrays(word=word)
        np.testing.assert_array_equal(got["q"], QUERY)
        np.testing.assert_array_equal(got["k"], key)
        wanted = parts(2, word, word).sum()
        np.testing.assert_allclose(got["sentence"][:, word], wanted, atol=1e-14)  # wherever 正在 stands
    np.testing.assert_allclose(got["sentence"][2], [-0.7806, 1.2676, 0.15, -0.5294, 0.9619], atol=5e-5)
    own = arrays(word=2)["lag_scores"]
    assert own[LAST] == pytest.approx(np.dot(QUERY, KEYS[2]))
    np.testing.assert_allclose(own[[LAST + 2, LAST - 2]], [-1.1553, -0.6450], atol=5e-5)  # as the page says


def test_locked_both_slide_and_the_score_stays(opened):
    page = opened("rotary_pair")
    before, sentence = (value(page, "score"), values(page, "[data-role=word-score]"))
    assert before == pytest.approx(-0.78060104, abs=1e-8)
    page.focus("[data-role=handle-q]")
    for key in ("ArrowRight", "ArrowUp", "PageUp", "ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_url(re.compile("m=13&n=11"))
    assert value(page, "score") == pytest.approx(before, abs=1e-15)
    assert values(page, "[data-role=word-score]") == pytest.approx(sentence, abs=1e-15)
    page.keyboard.press("End")
    page.wait_for_url(re.compile("m=40&n=38"))
    page.uncheck(".controls [type=checkbox]")
    page.keyboard.press("Home")
    page.focus("[data-role=handle-k]")
    page.keyboard.press("Home")
    page.wait_for_url(re.compile("lock=false"))
    assert "m 40, n 0" in page.inner_text("[data-role=live]")
    assert value(page, "score") == pytest.approx(parts(40, 0, 0).sum(), abs=1e-14)
    assert 0 < value(page, "check") < 1e-13
    assert value(page, "spread") < 1e-15


@pytest.mark.acceptance
def test_playing_slides_both_to_the_end(opened):
    page = opened("rotary_pair?m=9&n=4&speed=100")
    page.click("[data-role=play]")
    page.wait_for_url(re.compile("m=40&n=35"))
    assert value(page, "score") == pytest.approx(parts(9, 0, 4).sum(), abs=1e-14)
    assert page.inner_text("[data-role=play]") == "Play"


@pytest.mark.acceptance
def test_dragging_an_arrow_moves_its_position(opened):
    page = opened("rotary_pair?m=0&n=0&lock=false&pair=1")
    box = page.locator(".plane svg").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    handle = page.locator("[data-role=handle-q]").bounding_box()
    page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    page.mouse.down()
    # pair 1 turns 0.1 a position; the arrow of (-0.3, 0.8) is drawn on by 1.2 radians in three moves
    for by in (0.4, 0.8, 1.2):
        angle = math.atan2(0.8, -0.3) + by
        page.mouse.move(middle[0] + 120 * math.cos(angle), middle[1] - 120 * math.sin(angle))
    page.mouse.up()
    page.wait_for_url(re.compile("m=12&lock=false"))
    assert value(page, "pair-score") == pytest.approx(parts(12, 0, 0)[1], abs=1e-14)
    assert value(page, "pair-score-of-difference") == pytest.approx(value(page, "pair-score"), abs=1e-14)
    assert page.get_attribute("[data-role=handle-q]", "aria-valuenow") == "12"


@pytest.mark.acceptance
def test_a_word_gives_its_key_and_a_pair_its_arrows(opened):
    page = opened("rotary_pair?m=5&n=3")
    page.click("[data-word='4']")
    page.wait_for_url(re.compile("word=4&m=5&n=7"))
    page.wait_for_selector("[data-word='4'][aria-pressed=true]")
    assert value(page, "score") == pytest.approx(parts(5, 4, 7).sum(), abs=1e-14)
    page.focus("[data-role=pairs]")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("pair=1"))
    wanted = parts(5, 4, 7).tolist()
    assert values(page, "[data-role=pairs] i") == pytest.approx(wanted, abs=1e-14)
    assert value(page, "pair-score") == pytest.approx(wanted[1], abs=1e-14)


def test_a_link_restores_the_state_and_its_code_runs(opened):
    page = opened("rotary_pair?d_head=8&base=50&word=1&m=9&n=12&pair=2", lang="zh", width=390)
    got = arrays(d_head=8, base=50.0, word=1)
    assert value(page, "score") == got["scores"][9, 12]
    assert value(page, "opposite") == got["lag_scores"][LAST + 3]
    namespace: dict[str, object] = {}
    exec(page.inner_text(".code code"), namespace)
    for name, values in got.items():
        np.testing.assert_allclose(np.asarray(namespace[name]), values, atol=1e-14)
    fits(page, 390)


@pytest.mark.acceptance
def test_any_word_of_a_typed_sentence_asks(opened):
    page = opened("rotary_pair?sentence=the cat chases the mouse&asking=1&word=4&m=7&n=10")
    got = arrays(sentence="the cat chases the mouse", asking=1, word=4)
    assert page.locator(".words .word").all_inner_texts() == ["the", "cat", "chases", "the", "mouse"]
    assert page.locator(".words .asking .word").inner_text() == "cat"
    assert values(page, "[data-role=word-score]") == got["sentence"][7].tolist()
    assert value(page, "score") == got["scores"][7, 10]
    np.testing.assert_allclose(got["sentence"][7, 4], got["scores"][7, 10], atol=1e-14)  # the mouse is 3 after the cat
    same = arrays(sentence="the cat chases the mouse", asking=1, word=0)
    np.testing.assert_array_equal(same["k"], arrays(sentence="the cat chases the mouse", asking=1, word=3)["k"])
