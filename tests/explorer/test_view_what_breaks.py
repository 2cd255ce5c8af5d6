"""Every bug moves the attention that it should; the page wipes from right to wrong and shows the cause."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

import posenc.checking.checking  # noqa: F401 (fills LAWS)
from posenc.checking.bugs import BUGS as KINDS
from posenc.checking.engine import LAWS
from posenc.explorer import views
from posenc.explorer.views.what_breaks import BUGS

OMEGA = 10000.0 ** (-np.arange(16) / 16)


def drawn(bug: str, *names: str) -> list[np.ndarray]:
    found = views.data("what_breaks", {"bug": bug}).arrays
    return [np.asarray(found[name]) for name in names or ("right", "wrong")]


def looking_back(positions: np.ndarray, back: int = 3) -> np.ndarray:
    """Attention of a RoPE head whose query meets the key `back` positions before: every pair adds 2cos ω(i-j-back)."""
    apart = positions[:, None] - positions - back
    logits = 2 * np.cos(apart[..., None] * OMEGA).sum(-1)
    power = np.exp(logits - logits.max()) * np.tri(len(positions))
    return power / power.sum(-1, keepdims=True)


@pytest.mark.parametrize("bug", BUGS)
def test_each_moves_attention_and_its_law_knows_the_report(bug):
    right, wrong = drawn(bug)
    assert np.nanmax(np.abs(right - wrong)) > 0.5
    for one in (right, wrong):
        assert np.isnan(one[np.triu_indices(40, 1)]).all()
        rows = ~np.isnan(one).all(1)
        np.testing.assert_allclose(np.nansum(one[rows], axis=1), 1, atol=1e-12)
    law = BUGS[bug].law
    assert BUGS[bug].report in KINDS[BUGS[bug].kind].threads
    assert law.startswith("identify: ") or BUGS[bug].kind in {laws[law].bug for laws in LAWS.values() if law in laws}


def test_positions_in_bfloat16_stick_for_four_words():
    right, wrong, hands, stuck = drawn("bf16_positions", "right", "wrong", "right_hands", "wrong_hands")
    positions = np.arange(900, 940.0)
    held = 4 * np.round(positions / 4)  # ties go to the even multiple, as here
    np.testing.assert_allclose(right, np.where(np.tri(40) > 0, looking_back(positions), np.nan), atol=1e-9)
    np.testing.assert_allclose(wrong, np.where(np.tri(40) > 0, looking_back(held), np.nan), atol=1e-9)
    np.testing.assert_allclose(hands, positions * OMEGA[3])
    np.testing.assert_allclose(stuck, held * OMEGA[3])


def test_a_cache_counted_twice_makes_new_words_two_positions_apart():
    (wrong,) = drawn("cache_twice", "wrong")
    twice = np.where(np.arange(40) < 24, np.arange(40), 2 * np.arange(40))
    np.testing.assert_allclose(wrong, np.where(np.tri(40) > 0, looking_back(twice), np.nan), atol=1e-9)


def test_the_first_word_is_lost_behind_padding_and_in_the_second_document():
    right, wrong = drawn("left_padding")
    assert np.isnan(right[:, :10]).all()
    assert right[20:, 10].min() > 0.9 > 0.4 > wrong[20:, 10].max()
    right, wrong = drawn("packed_documents")
    assert right[18:, 18].min() > 0.9
    assert np.isnan(right[18:, :18]).all()
    assert wrong[18:, 0].min() > 0.9


def test_two_layouts_and_buckets_off_by_one_move_the_line():
    right, wrong = drawn("layout")
    assert np.diagonal(right, -3).min() > 0.5 > 0.1 > np.diagonal(wrong, -3).max()
    right, wrong = drawn("t5_buckets")
    assert np.diagonal(right, -3).min() > 0.9
    assert np.diagonal(wrong, -2).min() > 0.9


def test_a_stale_cache_leaves_the_new_keys_right():
    right, wrong = drawn("stale_cache")
    np.testing.assert_allclose(right[:, 24:] / right[:, 24:25], wrong[:, 24:] / wrong[:, 24:25], atol=1e-9)
    assert np.nanmax(np.abs(right[24:, :24] - wrong[24:, :24])) > 0.1


def test_the_wipe_shows_right_or_wrong_on_the_same_map(opened):
    page = opened("what_breaks?i=5&j=5")
    right, wrong = drawn("bf16_positions")
    colours = []
    for share in (100, 0):
        page.locator("input.wipe").fill(str(share))
        page.wait_for_url(re.compile(f"wipe={share}"))
        colours.append(page.evaluate("document.querySelector('.wiped canvas').toDataURL()"))
    assert colours[0] != colours[1]
    assert right[30, 27] > 0.6 > 0.1 > wrong[30, 27]
    assert page.locator(".dial.red").count() == 30  # three of four hands stick
    page.focus(".maps")
    page.keyboard.press("ArrowDown")
    page.wait_for_url(re.compile("i=6"))
    expect(page.locator("[data-role=wrong]")).to_have_attribute("data-value", str(wrong[6, 5]))
    page.select_option("[data-name=bug] select", index=list(BUGS).index("layout"))
    expect(page.locator("[data-role=wrong]")).to_have_attribute("data-value", str(drawn("layout")[1][6, 5]))
    expect(page.locator("[data-role=law]")).to_have_text("identify: layout")
