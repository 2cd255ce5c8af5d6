"""Bias by distance: ALiBi's slopes, T5's buckets and Shaw's clipping agree with the papers, in the data and on the page."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import posenc
from posenc import Positions
from posenc.explorer import views


def asked(**given):
    return views.data("bias", given)


def shown(page, role: str) -> float:
    return float(page.get_attribute(f".formula [data-role={role}]", "data-value"))


# Numbers against the formulas --------------------------------------------------------------------------------------------


def paper_slopes(n: int) -> list[float]:
    """2^(-8h/n) for n = 2^k; else those of the power below, then the 1st, 3rd, 5th … of the power above."""
    below = 1
    while 2 * below <= n:
        below *= 2
    slopes = [2 ** (-8 * h / below) for h in range(1, below + 1)]
    return slopes + [2 ** (-8 * h / (2 * below)) for h in range(1, 2 * below, 2)][: n - below]


@pytest.mark.parametrize("n_heads", [*range(1, 17), 31, 32])
def test_alibi_has_the_slopes_of_the_paper_for_every_number_of_heads(n_heads):
    data = asked(n_heads=n_heads, length=9)
    slopes = np.array(paper_slopes(n_heads))
    np.testing.assert_allclose(data.arrays["slopes"], slopes, rtol=1e-15)
    np.testing.assert_allclose(data.arrays["bias"], [[-m * d for d in range(9)] for m in slopes], rtol=1e-15)
    np.testing.assert_allclose(data.arrays["weight"], [[math.exp(-m * d) for d in range(9)] for m in slopes], rtol=1e-14)
    np.testing.assert_allclose(np.exp(-slopes * np.asarray(data.arrays["horizon"])), 0.01, rtol=1e-13)


def test_the_figures_that_the_page_tells():
    """Of 8 heads, the steepest has 1 % left at 9.2, the flattest at 1179; of 12, head 9 is the steepest, 0.7071."""
    horizon = asked().arrays["horizon"]
    assert (round(float(horizon[0]), 1), round(float(horizon[7]))) == (9.2, 1179)
    slopes = asked(n_heads=12).arrays["slopes"]
    assert int(slopes.argmax()) == 8
    assert float(slopes[8]) == pytest.approx(2**-0.5)
    index = asked(method="t5", length=200).arrays["index"]
    assert [d for d in range(200) if index[d] == index[100]] == list(range(99, 113))
    assert set(index[113:].tolist()) == {31}


def bucket(n: int, n_buckets: int, max_distance: int, bidirectional: bool) -> int:
    """mesh-tensorflow's rule, n = i - j, in real arithmetic."""
    offset = 0
    if bidirectional:
        n_buckets //= 2
        offset = n_buckets * (n < 0)
        n = abs(n)
    n = max(n, 0)
    exact = n_buckets // 2
    if n < exact:
        return offset + n
    far = math.log(n / exact) / math.log(max_distance / exact) * (n_buckets - exact)
    return offset + min(exact + math.floor(far + 1e-9), n_buckets - 1)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (8, 20), (12, 300)])
def test_t5_has_the_buckets_of_its_code(n_buckets, max_distance, bidirectional):
    data = asked(
        method="t5",
        length=400,
        causal=False,
        n_buckets=n_buckets,
        max_distance=max_distance,
        bidirectional=bidirectional,
        n_heads=3,
    )
    wanted = [bucket(n, n_buckets, max_distance, bidirectional) for n in range(-399, 400)]
    assert data.arrays["index"].tolist() == wanted
    bias = data.arrays["bias"].numpy()
    for one in set(wanted):  # one number per bucket and head
        assert np.ptp(bias[:, np.array(wanted) == one], axis=1).max() == 0
    assert len({round(float(value), 9) for value in bias[0]}) == len(set(wanted))
    before = [bucket(n, n_buckets, max_distance, bidirectional) for n in range(400)]
    starts = [n for n in range(400) if n == 0 or before[n] != before[n - 1]]
    assert data.facts["starts"] == starts


def test_shaw_clips_and_reads_the_query():
    data = asked(method="shaw", k=4, length=12, causal=False, n_heads=2, seed=3)
    distance = np.arange(-11, 12)
    assert data.arrays["index"].tolist() == [min(max(-d, -4), 4) for d in distance]  # c = clip(j - i, -k, k)
    bias = data.arrays["bias"].numpy()
    assert np.ptp(bias[:, distance >= 4], axis=1).max() == np.ptp(bias[:, distance <= -4], axis=1).max() == 0
    assert len(np.unique(bias[0])) == 9
    assert abs(bias[0] - bias[1]).min() > 0  # the same table, another query


def test_shaw_is_the_librarys_bias():
    """The page computes it from the rows of the table; the seam of the encoding gives the same."""
    data = asked(method="shaw", k=4, length=12, causal=False, n_heads=2, seed=3)
    shaw = posenc.laws.draw_parameters(posenc.create("shaw", d_head=64, max_distance=4).double(), seed=3)
    q = torch.randn(2, 64, generator=torch.Generator().manual_seed(3), dtype=torch.float64)[None, :, None]
    at_k = Positions.at(-torch.arange(-11, 12)[None])
    bias = shaw.bias(q, q.expand(-1, -1, 23, -1), Positions.arange(1, 1), at_k)
    wanted = bias(0, torch.arange(2)[:, None], 0, torch.arange(23)).detach()
    np.testing.assert_allclose(data.arrays["bias"].numpy(), wanted.numpy(), atol=1e-12)


# The page ----------------------------------------------------------------------------------------------------------------


def test_a_click_gives_bias_weight_horizon_and_the_substituted_formula(opened):
    page = opened("bias?length=40", height=1600)
    box = page.locator("canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 4.5 / 40, box["y"] + box["height"] * 30.5 / 40)
    page.wait_for_url(re.compile("i=30&j=4"))
    assert shown(page, "value") == pytest.approx(-26 / 8, abs=1e-15)  # head 3 of 8
    assert shown(page, "weight") == pytest.approx(math.exp(-26 / 8), rel=1e-14)
    assert shown(page, "reach") == pytest.approx(8 * math.log(100), rel=1e-14)
    assert float(page.get_attribute("td[data-row='30'][data-column='4']", "data-value")) == shown(page, "value")
    text = page.inner_text(".formula").replace(" ", "").replace("\xa0", "")
    assert "−1/8·|30−4|=−3.2500" in text
    code = page.inner_text(".code code")
    made: dict[str, object] = {}
    exec(code, made)
    assert made["bias"][2, 26].item() == shown(page, "value")
    assert "bias[2, 26]" in code


@pytest.mark.acceptance
def test_keys_choose_a_head_and_move_the_cursor_in_both_pictures(opened):
    page = opened("bias?n_heads=12&length=30&head=8&i=20&j=10")
    page.focus("[role=radio][aria-checked=true]")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("head=9"))
    assert shown(page, "slope") == pytest.approx(2**-0.5)
    assert "2−8·1/16 = 0.7071" in page.inner_text(".formula")  # the first of sixteen
    assert page.evaluate("document.activeElement.dataset.head") == "9"
    page.focus("canvas")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("i=21&j=9"))
    page.focus(".chart")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("i=21$"))  # j = 8 is what it starts with
    assert shown(page, "value") == pytest.approx(-13 * 2**-0.5)
    page.keyboard.press("Home")
    page.wait_for_url(re.compile("i=21&j=21"))
    page.keyboard.press("End")
    page.wait_for_url(re.compile("i=29&j=0"))
    assert "head 9" in page.inner_text("[data-role=live]")


@pytest.mark.acceptance
def test_every_head_says_its_horizon(opened):
    page = opened("bias?n_heads=6", lang="zh")
    found = page.evaluate("[...document.querySelectorAll('[data-role=horizon]')].map(one => Number(one.dataset.value))")
    assert found == pytest.approx([math.log(100) / m for m in (1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8)])
    page.click("text=各个头的数值")
    rows = page.locator(".plain:visible tbody tr")
    expect(rows).to_have_count(6)


@pytest.mark.acceptance
def test_t5_substitutes_its_logarithms_and_masked_pairs_say_so(opened):
    page = opened("bias?method=t5&length=128&i=120&j=20&quantity=index")
    assert shown(page, "index") == bucket(100, 32, 128, False) == 30
    text = page.inner_text(".formula").replace("\n", "").replace(" ", "")
    assert "ln(100/16)ln(128/16)" in text
    assert "14.101" in text
    window = page.locator("td[data-row='120'][data-column='20']")
    assert window.inner_text() == "30"
    page.focus("canvas")
    page.keyboard.press("End")
    page.wait_for_url(re.compile("j=127"))
    assert "masked" in page.inner_text(".formula")
    expect(page.locator("td[data-row='120'][data-column='127']")).to_have_text("–")


def test_a_link_restores_shaw(opened):
    page = opened("bias?method=shaw&causal=false&k=5&length=20&n_heads=2&head=2&i=3&j=17&seed=4")
    assert shown(page, "index") == 5
    data = asked(method="shaw", causal=False, k=5, length=20, n_heads=2, seed=4)
    assert shown(page, "value") == pytest.approx(float(data.arrays["bias"][1, 3 - 17 + 19]), abs=1e-15)
    assert page.get_attribute("[role=radio][aria-checked=true]", "data-head") == "2"
