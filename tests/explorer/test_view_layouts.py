"""Two layouts: the page shows the library's channels and scores, and reports a wrong layout."""

from __future__ import annotations

import re

import numpy as np
import pytest
from widths import fits

from posenc.explorer import views

PAIRS = {"half": lambda i, n: (i, i + n), "interleaved": lambda i, n: (2 * i, 2 * i + 1)}


def arrays(**asked):
    return {name: np.asarray(values) for name, values in views.data("layouts", asked).arrays.items()}


def turned(x, positions, layout, base):
    """x [t, d], rotated pair by pair."""
    n = x.shape[1] // 2
    out = np.empty_like(x)
    for i in range(n):
        a, b = PAIRS[layout](i, n)
        pair = (x[:, a] + 1j * x[:, b]) * np.exp(1j * positions * base ** (-i / n))
        out[:, a], out[:, b] = pair.real, pair.imag
    return out


def moved(x, source, target):
    """Moves every pair from its channels in one layout to those in the other."""
    n = x.shape[1] // 2
    out = np.empty_like(x)
    for i in range(n):
        out[:, PAIRS[target](i, n)] = x[:, PAIRS[source](i, n)]
    return out


def value(page, role) -> float:
    return float(page.get_attribute(f"[data-role={role}]", "data-value"))


@pytest.mark.parametrize("d", [4, 8, 30])
@pytest.mark.parametrize("weights", ["half", "interleaved"])
def test_channels_are_those_of_the_two_conventions(d, weights):
    got, n = arrays(d_head=d, weights=weights, base=50.0), d // 2
    other = {"half": "interleaved", "interleaved": "half"}[weights]
    for layout, pairs in PAIRS.items():
        assert got[layout].tolist() == [list(pairs(i, n)) for i in range(n)]
    channels = np.arange(d)[None]
    np.testing.assert_array_equal(got["permutation"], moved(channels, weights, other)[0])
    np.testing.assert_array_equal(
        got["rows"], np.concatenate([moved(channels, weights, other)[0] + head * d for head in (0, 1)])
    )
    np.testing.assert_allclose(got["omega"], 50.0 ** (-np.arange(n) / n), rtol=1e-14)
    np.testing.assert_allclose(got["turned"], turned(got["query"], np.arange(12), weights, 50.0), atol=1e-14)
    assert got["converted_matrices"] < 1e-14


@pytest.mark.parametrize("convert_k", [False, True])
@pytest.mark.parametrize("convert_q", [False, True])
@pytest.mark.parametrize("code", ["half", "interleaved"])
@pytest.mark.parametrize("weights", ["half", "interleaved"])
def test_scores_are_right_only_where_weights_and_code_agree(weights, code, convert_q, convert_k):
    asked = {"weights": weights, "code": code, "convert_q": convert_q, "convert_k": convert_k}
    found = views.data("layouts", asked)
    got = {name: np.asarray(values) for name, values in found.arrays.items()}
    namespace: dict[str, object] = {}
    exec(found.python, namespace)
    other, at = {"half": "interleaved", "interleaved": "half"}[weights], np.arange(12)
    q, k = (np.asarray(namespace[name][0, 0]) for name in "qk")
    right = turned(q, at, weights, 1e4) @ turned(k, at, weights, 1e4).T
    q, k = (moved(x, weights, other) if wanted else x for x, wanted in ((q, convert_q), (k, convert_k)))
    wanted = turned(q, at, code, 1e4) @ turned(k, at, code, 1e4).T
    np.testing.assert_allclose(got["right"], right, atol=1e-13)
    np.testing.assert_allclose(got["got"], wanted, atol=1e-13)
    np.testing.assert_allclose(got["difference"], wanted - right, atol=1e-13)
    error, diagonal = np.abs(got["difference"]), np.abs(np.diagonal(got["difference"]))
    if convert_q != convert_k:
        assert diagonal.min() > 0.01
        assert got["by_distance"].min() > 1
    elif (code == weights) == convert_q:
        assert error.max() > 1
        assert max(diagonal.max(), got["by_distance"][0]) < 1e-14
        assert np.all(np.diff(got["by_distance"][:4]) > 0)
    else:
        assert max(error.max(), got["by_distance"].max()) < 1e-13


def test_families_are_read_from_the_conversion_tables():
    models = dict(views.data("layouts", {}).facts["models"])
    assert models["GPT-NeoX"] == models["Llama (Hugging Face)"] == "half"
    assert models["GPT-J"] == models["RoFormer"] == "interleaved"
    assert set(models.values()) == {"half", "interleaved"}


def test_a_channel_gives_its_partner_frequency_and_formula(opened):
    page = opened("layouts?d_head=8")
    page.click("[data-row=interleaved][data-channel='5']")
    page.wait_for_url(re.compile("pair=2&member=y&row=interleaved"))
    assert [value(page, role) for role in ("partner", "moved-to", "omega")] == [4, 6, pytest.approx(0.01)]
    got = arrays()
    assert value(page, "turned") == got["turned"][5, 6]
    page.focus(".channels")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile(r"\?member=y$"))
    assert [value(page, role) for role in ("partner", "moved-to")] == [1, 3]
    assert "half, channel 5, partner 1" in page.inner_text("[data-role=live]")
    page.click("[data-role=step]")
    page.wait_for_url(re.compile("pair=2"))
    chosen = page.eval_on_selector_all(".channel.chosen", "all => all.map(one => +one.dataset.channel)")
    assert chosen == [2, 6, 4, 5]


def test_a_mix_up_is_flagged_and_converting_both_mends_it(opened):
    page = opened("layouts", lang="zh")
    verdict = page.locator("[data-role=verdict]")
    assert "分数相同" in verdict.inner_text()
    assert value(page, "verdict") < 1e-12
    page.click(".predict .choice >> nth=1")
    page.wait_for_selector(".verdict.bad")
    assert value(page, "verdict") == np.abs(arrays(code="interleaved")["difference"]).max()
    assert value(page, "got") == arrays(code="interleaved")["got"][5, 2]
    page.check("[data-name=convert_q] input")
    page.wait_for_url(re.compile("convert_q=true"))
    page.wait_for_selector(".stage:not([aria-busy])")
    assert value(page, "verdict") == np.abs(arrays(code="interleaved", convert_q=True)["difference"]).max()
    page.check("[data-name=convert_k] input")
    page.wait_for_selector(".verdict.good")
    assert value(page, "verdict") < 1e-13
    page.focus("canvas >> nth=1")
    page.keyboard.press("ArrowDown")
    page.wait_for_url(re.compile("m=6"))
    assert value(page, "got") == pytest.approx(arrays()["right"][6, 2], abs=1e-13)


@pytest.mark.acceptance
def test_a_link_restores_the_widest_drawing_on_a_small_screen(opened):
    page = opened("layouts?d_head=32&base=500&weights=interleaved&pair=15&member=y&row=half&m=7&n=1", width=390, dark=True)
    got = arrays(d_head=32, base=500.0, weights="interleaved")
    assert [value(page, role) for role in ("partner", "moved-to")] == [15, 31]
    assert value(page, "turned") == got["turned"][7, 31]
    assert value(page, "matrix-error") == got["converted_matrices"]
    box = page.locator("[data-row=half][data-channel='0'] rect").bounding_box()
    assert min(box["width"], box["height"]) >= 24
    fits(page, 390)
