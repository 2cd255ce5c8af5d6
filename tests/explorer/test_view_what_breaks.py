"""Every bug changes the scores that it should; the page switches between right and wrong on the same map."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from posenc.explorer import views
from posenc.explorer.views.what_breaks import BUGS


def drawn(bug: str) -> tuple[np.ndarray, np.ndarray]:
    found = views.data("what_breaks", {"bug": bug}).arrays
    return np.asarray(found["right"]), np.asarray(found["wrong"])


@pytest.mark.parametrize("bug", BUGS)
def test_each_is_seen_in_the_scores(bug):
    right, wrong = drawn(bug)
    assert np.nanmax(np.abs(right - wrong)) > 0.1
    assert np.isnan(right[0, 1:]).all()
    assert np.isnan(wrong[0, 1:]).all()


def test_positions_in_bfloat16_move_by_whole_groups_of_four():
    """1000 to 1039 become multiples of 4, so that inside such a group all are one position and the score is q·k."""
    _, wrong = drawn("bf16_positions")
    q, k = torch.randn(2, 1, 1, 40, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    plain = (q @ k.mT)[0, 0].numpy() / 32**0.5
    rounded = torch.arange(1000, 1040).bfloat16().tolist()
    same = np.array([[a == b for b in rounded] for a in rounded]) & np.tri(40, dtype=bool)
    assert same.sum() > 40
    np.testing.assert_allclose(wrong[same], plain[same], atol=1e-12)


def test_a_stale_cache_leaves_the_new_keys_right():
    right, wrong = drawn("stale_cache")
    np.testing.assert_allclose(right[24:, 24:], wrong[24:, 24:], atol=1e-12)
    assert np.nanmax(np.abs(right[24:, :24] - wrong[24:, :24])) > 0.1


def test_packed_documents_see_each_other_only_with_the_bug():
    right, wrong = drawn("packed_documents")
    assert np.isnan(right[18:, :18]).all()
    assert not np.isnan(wrong[18:, :18]).any()
    np.testing.assert_allclose(right[:18, :18], wrong[:18, :18], atol=1e-12)


def test_switched_off_the_page_shows_the_right_scores(opened):
    page = opened("what_breaks?bug=stale_cache&i=30&j=5")
    right, wrong = drawn("stale_cache")
    cell = page.locator(".window td[aria-current]")
    expect(cell).to_have_attribute("data-value", str(wrong[30, 5]))
    page.uncheck("[data-name=on] input")
    expect(cell).to_have_attribute("data-value", str(right[30, 5]))
    page.wait_for_url(re.compile("on=false"))
    page.select_option("[data-name=bug] select", index=list(BUGS).index("layout"))
    expect(cell).to_have_attribute("data-value", str(drawn("layout")[0][30, 5]))
