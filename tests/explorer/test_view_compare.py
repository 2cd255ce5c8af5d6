"""Encodings side by side: scores agree with those computed here, and the page shows the library's values."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import posenc
from posenc.catalogue.lookup import BY_NAME, ENTRIES, FOUNDATION
from posenc.explorer import views
from posenc.explorer.views.compare import SHOWN

ALL = list(FOUNDATION)


def asked(**given):
    return views.data("compare", given)


def drawn(seed: int, length: int, d_model: int, n_heads: int) -> list[np.ndarray]:
    """x [t, w] and the projections [h, w, d] that every encoding gets."""
    random = torch.Generator().manual_seed(seed)
    shapes = ((1, length, d_model), *2 * ((n_heads, d_model, d_model // n_heads),))
    x, *w = (torch.randn(shape, generator=random, dtype=torch.float64).numpy() for shape in shapes)
    return [x[0], *(one / math.sqrt(d_model) for one in w)]


def names(data) -> list[str]:
    return [one["name"] for one in data.facts["methods"]]


# Numbers against the formulas ------------------------------------------------------------------------------------------


def scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return np.einsum("hid,hjd->hij", q, k) / math.sqrt(q.shape[-1])


def turned(x: np.ndarray) -> np.ndarray:
    """Neighbouring channels rotated by p·10000^(-2i/d)."""
    d = x.shape[-1]
    angle = np.arange(x.shape[1])[:, None] * 10000 ** (-np.arange(0, d, 2) / d)
    even, odd = x[..., 0::2], x[..., 1::2]
    both = (even * np.cos(angle) - odd * np.sin(angle), odd * np.cos(angle) + even * np.sin(angle))
    return np.stack(both, axis=-1).reshape(x.shape)


@pytest.mark.parametrize("causal", [True, False])
def test_what_each_adds_is_its_formula(causal):
    length, d_model, n_heads = 10, 32, 4
    data = asked(length=length, d_model=d_model, n_heads="4", seed=5, causal=causal, words="different")
    x, w_q, w_k = drawn(5, length, d_model, n_heads)
    q, k = (np.einsum("tw,hwd->htd", x, w) for w in (w_q, w_k))
    p, i = np.arange(length)[:, None], np.arange(0, d_model, 2)
    waves = np.stack([np.sin(p * 10000 ** (-i / d_model)), np.cos(p * 10000 ** (-i / d_model))], -1).reshape(
        length, d_model
    )
    placed = [np.einsum("tw,hwd->htd", x + waves, w) for w in (w_q, w_k)]
    slopes = np.array([1 / 4, 1 / 16, 1 / 64, 1 / 256])[:, None, None]
    wanted = [
        scores(*placed) - scores(q, k),
        scores(turned(q), turned(k)) - scores(q, k),
        np.broadcast_to(-slopes * abs(p - p.T), (4, length, length)),
        np.zeros((4, length, length)),
    ]
    hidden = np.broadcast_to((p < p.T) & causal, (4, length, length))
    np.testing.assert_allclose(data.arrays["plain"], np.where(hidden, np.nan, scores(q, k)), atol=1e-12)
    added = [data.arrays["added"][m] for m in map(names(data).index, ("sinusoidal", "rope", "alibi", "nope"))]
    np.testing.assert_allclose(added, [np.where(hidden, np.nan, one) for one in wanted], atol=1e-12)


def test_one_word_everywhere_leaves_the_diagonals_of_relative_encodings():
    """RoPE of a word with itself: Σ |q_c|²(cos ω_c(i-j) − 1)/√d; what is added to embeddings is no function of i-j."""
    data = asked(length=12, d_model=32, n_heads="2", seed=3)
    x, w_q, _ = drawn(3, 12, 32, 2)
    q = x[0] @ w_q[1]  # the second head
    size = q.reshape(-1, 2)
    omega = 10000 ** (-np.arange(0, 16, 2) / 16)
    apart = np.arange(12)[:, None] - np.arange(12)
    wanted = ((size**2).sum(-1) * (np.cos(apart[..., None] * omega) - 1)).sum(-1) / 4
    np.testing.assert_allclose(data.arrays["added"][names(data).index("rope"), 1], wanted, atol=1e-12)
    spread = (data.arrays["highest"] - data.arrays["lowest"]).amax((1, 2))
    clean = {name for name, one in zip(names(data), spread.tolist(), strict=True) if not one > 1e-12}
    assert clean == set(names(data)) - {"sinusoidal", "learned"}


def test_means_are_over_the_diagonals():
    data = asked(length=8, d_model=16, n_heads="1", words="different")
    added = data.arrays["added"].numpy()
    for index, d in enumerate(range(-7, 8)):
        pairs = np.array([[one[0, i, i - d] for i in range(8) if 0 <= i - d < 8] for one in added])
        for name, of in (("mean", np.mean), ("lowest", np.min), ("highest", np.max)):
            np.testing.assert_allclose(data.arrays[name][:, 0, index], of(pairs, axis=1), atol=1e-14, err_msg=name)


@pytest.mark.parametrize("causal", [True, False])
def test_only_what_is_added_to_embeddings_changes_with_the_place_of_the_text(causal):
    """Every encoding of the foundation can be chosen; checks which of them draw stripes."""
    found, arrays = {}, {}
    data = asked(second="floater", length=12, causal=causal, words="different")
    for m, one in enumerate(data.facts["methods"]):
        found[one["name"]] = one
        arrays[one["name"]] = [np.asarray(data.arrays[name][m]) for name in ("lowest", "highest", "added")]
    assert sorted(found) == sorted(ALL)
    absolute = {name for name, one in found.items() if one["moved"] > 1e-9}
    assert absolute == {name for name in ALL if BY_NAME[name].kind == "added"}
    assert all(found[name]["moved"] > 0.1 for name in absolute)
    stripes = {name for name, (low, high, _) in arrays.items() if np.nanmax(high - low) < 1e-12}
    assert stripes == {name for name in ALL if name == "nope" or issubclass(BY_NAME[name].load(), posenc.DistanceBias)}
    still = {name for name, (_, _, added) in arrays.items() if abs(added.diagonal(axis1=-2, axis2=-1)).max() < 1e-12}
    assert still >= {"rope", "xpos", "alibi", "nope"}
    assert not still & {"sinusoidal", "learned", "floater", "shaw", "transformer_xl", "t5", "cope"}
    assert {name for name in found if np.isnan(arrays[name][2]).any()} == (
        set(ALL) if causal else {name for name in ALL if "causal" in BY_NAME[name].needs}
    )
    assert {name: one["largest_position"] for name, one in found.items() if one["largest_position"]} == {
        "learned": 2047,
        "xpos": posenc.create("xpos", d_head=16).largest_position(),
    }
    assert (found["t5"]["parameters"], found["shaw"]["parameters"]) == (32 * 4, 2 * 33 * 16)


def test_the_chosen_ones_are_shown_once_and_others_join_the_maps():
    assert names(asked(first="rope", second="rope")) == list(SHOWN)
    assert names(asked(first="fire", second="rope")) == [*SHOWN, "fire"]


# The page --------------------------------------------------------------------------------------------------------------


def values(page) -> dict[str, float]:
    """The numbers above the maps."""
    read = "all => all.map((one) => [one.dataset.method, Number(one.dataset.value)])"
    return dict(page.locator(".panel:not([hidden]) output").evaluate_all(read))


def of(data, head: int, i: int, j: int) -> dict[str, float]:
    return {name: float(data.arrays["added"][m, head - 1, i, j]) for m, name in enumerate(names(data))}


def test_one_cursor_for_all_maps_by_a_hovering_mouse_and_by_keys(opened):
    page = opened("compare?causal=true&first=rope&second=alibi")
    data = asked(causal=True, first="rope", second="alibi")
    maps = page.locator(".panel canvas")
    expect(maps).to_have_count(10)
    box = maps.nth(5).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 3.5 / 24, box["y"] + box["height"] * 20.5 / 24)  # no button is pressed
    page.wait_for_url(re.compile("i=20&j=3$"))
    assert values(page) == pytest.approx(of(data, 1, 20, 3), abs=1e-15)
    assert values(page)["alibi"] == -17 / 4
    page.mouse.move(1, 1)
    page.focus(".panels")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("i=19&j=4$"))
    page.focus("[role=radio][aria-checked=true]")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("head=2&i=19&j=4$"))
    assert values(page) == pytest.approx(of(data, 2, 19, 4), abs=1e-15)
    assert values(page)["alibi"] == -15 / 16
    made: dict[str, object] = {}
    exec(code := page.inner_text(".code code"), made)
    assert "added[3, 1, 19, 4]  # rope" in code
    assert made["added"][3, 1, 19, 4].item() == pytest.approx(values(page)["rope"], abs=1e-12)


def test_equal_numbers_have_equal_colours_in_every_map(opened):
    """One scale: where two maps have the same number, the pixel is the same."""
    page = opened("compare?i=0&j=23", still=True)
    found = page.evaluate(
        """() => [...document.querySelectorAll(".panel canvas")].map((one) => {
          const size = one.width / 24;
          return [...one.getContext("2d").getImageData(size * 3.5, size * 3.5, 1, 1).data];
        })"""
    )
    data = asked()
    same = [name for name, value in of(data, 1, 3, 3).items() if abs(value) < 1e-9]
    assert {"nope", "rope", "alibi"} <= set(same)
    assert len({tuple(found[names(data).index(name)]) for name in same}) == 1
    assert found[names(data).index("sinusoidal")] != found[names(data).index("rope")]


@pytest.mark.acceptance
def test_the_two_are_subtracted_and_the_lines_are_the_means(opened):
    page = opened("compare?first=alibi&second=shaw&i=9&j=2&head=3")
    data = asked(first="alibi", second="shaw")
    one = of(data, 3, 9, 2)
    cell = page.locator("td[data-row='9'][data-column='2']")
    assert float(cell.get_attribute("data-value")) == pytest.approx(one["shaw"] - one["alibi"], abs=1e-15)
    means = page.evaluate("[...document.querySelectorAll('.chart ~ .legend b')].map(one => Number(one.dataset.value))")
    chosen = [names(data).index(name) for name in ("alibi", "shaw")]
    assert means == pytest.approx(data.arrays["mean"][chosen, 2, 7 + 23].tolist(), abs=1e-15)
    page.focus(".chart")
    page.keyboard.press("End")
    page.wait_for_url(re.compile("i=23&j=0"))


@pytest.mark.acceptance
def test_the_measured_row_waits_for_an_answer(opened):
    page = opened("compare?second=cope")
    moved = "[data-fact=largest] >> nth=1 >> td"
    expect(page.locator(moved).first).to_have_text("answer above")
    page.click(".choice >> nth=0")
    page.wait_for_url(re.compile("answered=true"))
    found = [float(one.get_attribute("data-value")) for one in page.locator(moved).all()]
    shown = {one["name"]: one["moved"] for one in asked(second="cope").facts["methods"]}
    assert found == pytest.approx([shown["sinusoidal"], shown["cope"]], abs=1e-12)
    assert found[0] > 1 > 1e-9 > found[1]


@pytest.mark.acceptance
def test_names_are_the_catalogues_and_nothing_stays_english_in_chinese(opened):
    page = opened("compare?first=shaw&second=whatever", lang="zh")
    labels = page.locator("label[data-name=second] option").all_inner_texts()
    for entry in ENTRIES:
        assert any(label.startswith(entry.title) for label in labels) == entry.in_a_row, entry.name
    for link in ("first=shaw&second=floater", "first=cope&second=sinusoidal"):
        page.goto(f"{page.url.split('#')[0]}#/compare?{link}")
        page.wait_for_url(re.compile(link))
        expect(page.locator(".facts thead th").first).to_have_text({"s": "Shaw", "c": "CoPE"}[link[6]])
        assert not re.search(r"\b(the|and|by|every|keys|encoder|research)\b", page.inner_text("[data-fact=used]"))


def test_a_link_restores_the_state(opened):
    page = opened("compare?first=t5&second=xpos&words=different&length=9&d_model=32&n_heads=2&seed=7&head=2&i=5&j=8")
    data = asked(first="t5", second="xpos", length=9, d_model=32, n_heads="2", words="different", seed=7)
    assert values(page)["t5"] == pytest.approx(of(data, 2, 5, 8)["t5"], abs=1e-15)
    assert math.isnan(values(page)["xpos"])  # not defined for keys after the query
    assert page.locator(".panel.chosen").count() == 2
