"""Comparison of encodings: scores agree with those computed here, and the page shows the library's values."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import posenc
from posenc.catalogue.lookup import BY_NAME, ENTRIES, FOUNDATION
from posenc.explorer import views

ALL = list(FOUNDATION)
ROOT = Path(__file__).parents[2]
STANDARD = ROOT / "results/standard"


def asked(**given):
    return views.data("compare", given)


def drawn(seed: int, length: int, d_model: int, n_heads: int) -> list[np.ndarray]:
    """x [t, w] and the projections [h, w, d] that every encoding gets."""
    random = torch.Generator().manual_seed(seed)
    shapes = ((1, length, d_model), *2 * ((n_heads, d_model, d_model // n_heads),))
    x, *w = (torch.randn(shape, generator=random, dtype=torch.float64).numpy() for shape in shapes)
    return [x[0], *(one / math.sqrt(d_model) for one in w)]


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
    data = asked(length=length, d_model=d_model, n_heads="4", seed=5, causal=causal, third="alibi", fourth="nope")
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
    np.testing.assert_allclose(data.arrays["added"], [np.where(hidden, np.nan, one) for one in wanted], atol=1e-12)


def test_means_are_over_the_diagonals():
    data = asked(length=8, d_model=16, n_heads="1", causal=False, third="none", fourth="none")
    added = data.arrays["added"].numpy()
    for index, d in enumerate(range(-7, 8)):
        pairs = np.array([[added[m, 0, i, i - d] for i in range(8) if 0 <= i - d < 8] for m in range(2)])
        for name, of in (("mean", np.mean), ("lowest", np.min), ("highest", np.max)):
            np.testing.assert_allclose(data.arrays[name][:, 0, index], of(pairs, axis=1), atol=1e-14, err_msg=name)


@pytest.mark.parametrize("causal", [True, False])
def test_only_what_is_added_to_embeddings_changes_with_the_place_of_the_text(causal):
    """Every encoding of the foundation can be chosen; checks which of them draw stripes."""
    found, arrays = {}, {}
    for at in range(0, len(ALL), 4):
        four = (*ALL[at : at + 4], "none")[:4]
        data = asked(**dict(zip(("first", "second", "third", "fourth"), four, strict=True)), length=12, causal=causal)
        for m, one in enumerate(data.facts["methods"]):
            found[one["name"]] = one
            arrays[one["name"]] = [np.asarray(data.arrays[name][m]) for name in ("lowest", "highest", "added")]
    assert list(found) == ALL
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


def test_one_chosen_twice_is_shown_once():
    assert [one["name"] for one in asked(first="rope", second="rope", third="none", fourth="rope").facts["methods"]] == [
        "rope"
    ]


# The page --------------------------------------------------------------------------------------------------------------


def values(page) -> dict[str, float]:
    found = page.evaluate(
        "[...document.querySelectorAll('.formula output')].map(one => [one.dataset.method, Number(one.dataset.value)])"
    )
    return dict(found)


def of(data, head: int, i: int, j: int) -> dict[str, float]:
    return {one["name"]: float(data.arrays["added"][m, head - 1, i, j]) for m, one in enumerate(data.facts["methods"])}


def test_one_cursor_for_all_maps_by_mouse_and_by_keys(opened):
    page = opened("compare?third=alibi&fourth=t5", height=1400)
    data = asked(third="alibi", fourth="t5")
    maps = page.locator("canvas")
    expect(maps).to_have_count(5)
    box = maps.nth(2).bounding_box()
    page.mouse.click(box["x"] + box["width"] * 3.5 / 24, box["y"] + box["height"] * 20.5 / 24)
    page.wait_for_url(re.compile("i=20&j=3$"))
    assert values(page) == pytest.approx(of(data, 1, 20, 3), abs=1e-15)
    assert values(page)["alibi"] == -17 / 4
    page.keyboard.press("ArrowUp")
    maps.nth(4).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("i=19&j=4$"))
    page.focus("[role=radio][aria-checked=true]")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("head=2&i=19&j=4$"))
    assert values(page) == pytest.approx(of(data, 2, 19, 4), abs=1e-15)
    assert values(page)["alibi"] == -15 / 16
    made: dict[str, object] = {}
    exec(code := page.inner_text(".code code"), made)
    assert "added[1, 1, 19, 4]  # rope" in code
    assert made["added"][1, 1, 19, 4].item() == pytest.approx(values(page)["rope"], abs=1e-12)


@pytest.mark.acceptance
def test_any_two_are_subtracted_and_the_lines_are_the_means(opened):
    page = opened("compare?third=none&fourth=none&first=alibi&second=shaw&i=9&j=2&head=3")
    data = asked(third="none", fourth="none", first="alibi", second="shaw")
    one = of(data, 3, 9, 2)
    cell = page.locator("td[data-row='9'][data-column='2']")
    assert float(cell.get_attribute("data-value")) == pytest.approx(one["shaw"] - one["alibi"], abs=1e-15)
    page.select_option("[data-role=left]", label="ALiBi")
    page.select_option("[data-role=right]", label="Shaw")
    page.wait_for_url(re.compile("left=first&right=second"))
    assert float(cell.get_attribute("data-value")) == pytest.approx(one["alibi"] - one["shaw"], abs=1e-15)
    means = page.evaluate("[...document.querySelectorAll('.legend b')].map(one => Number(one.dataset.value))")
    assert means == pytest.approx(data.arrays["mean"][:, 2, 7].tolist(), abs=1e-15)
    page.focus(".chart")
    page.keyboard.press("End")
    page.wait_for_url(re.compile("i=23&j=0"))


@pytest.mark.acceptance
def test_the_measured_row_waits_for_an_answer(opened):
    page = opened("compare?fourth=cope")
    moved = "[data-fact=largest] >> nth=1 >> td"
    expect(page.locator(moved).first).to_have_text("answer above")
    page.click(".choice >> nth=0")
    page.wait_for_url(re.compile("answered=true"))
    found = [float(one.get_attribute("data-value")) for one in page.locator(moved).all()]
    assert found == pytest.approx([one["moved"] for one in asked(fourth="cope").facts["methods"]], abs=1e-12)
    assert found[0] > 1 > 1e-9 > max(found[1:])


@pytest.mark.acceptance
def test_names_are_the_catalogues_and_nothing_stays_english_in_chinese(opened):
    page = opened("compare?first=shaw&second=whatever&third=floater&fourth=nope", lang="zh")
    labels = page.locator("label[data-name=third] option").all_inner_texts()
    for entry in ENTRIES:
        assert any(label.startswith(entry.title) for label in labels) == entry.in_a_row, entry.name
    for link in ("first=shaw&third=floater&fourth=nope", "first=cope&second=sinusoidal"):
        page.goto(f"{page.url.split('#')[0]}#/compare?{link}")
        page.wait_for_url(re.compile(link))
        expect(page.locator(".facts thead th").first).to_have_text({"s": "Shaw", "c": "CoPE"}[link[6]])
        assert not re.search(r"\b(the|and|by|every|keys|encoder|research)\b", page.inner_text("[data-fact=used]"))


def test_a_link_restores_the_state(opened):
    page = opened(
        "compare?first=t5&second=xpos&third=none&fourth=none&length=9&d_model=32&n_heads=2&causal=false&seed=7&head=2&i=5&j=8"
    )
    data = asked(
        first="t5", second="xpos", third="none", fourth="none", length=9, d_model=32, n_heads="2", causal=False, seed=7
    )
    assert values(page)["t5"] == pytest.approx(of(data, 2, 5, 8)["t5"], abs=1e-15)
    assert math.isnan(values(page)["xpos"])  # not defined for keys after the query
    assert page.locator(".panel:visible").count() == 2


# Measured --------------------------------------------------------------------------------------------------------------


def report_row(encoding: str, length: int) -> list[float]:
    """Bits of every seed, from the report's table of results/standard."""
    wanted = ("language_model", encoding, "trained", "same targets", str(length))
    with (STANDARD / "report" / "cells.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ("task", "encoding", "setting", "mode", "length")
    return [float(row["value"]) for row in rows if tuple(row[name] for name in columns) == wanted]


def test_the_measured_rows_are_those_of_the_report_and_of_the_costs():
    rows = {row["name"]: row for row in asked(fourth="fire").facts["measured"]["rows"]}
    assert len(rows) == 13
    for name in ("alibi", "rope", "nope"):
        for bits, length in zip(rows[name]["bits"], (64, 128, 512), strict=True):
            assert bits == pytest.approx(np.mean(report_row(name, length)), abs=1e-4), (name, length)
    costs = json.loads((Path(posenc.__file__).parent / "catalogue/choose/costs.json").read_text("utf-8"))["entries"]
    assert rows["rope"]["decode"] == costs["rope"]["decode"]["median"]
    assert rows["t5"]["memory"] == costs["t5"]["memory"]["bytes"]
    assert (rows["learned"]["parameters"], rows["learned"]["bits"][1]) == (64 * 64, None)
    assert rows["learned"]["why"][1]["en"] == "cannot: table ends at 64"
    assert (rows["fire"]["bits"], rows["fire"]["prefill"]) == ([None] * 3, costs["fire"]["prefill"]["median"])
    assert {name for name, row in rows.items() if row["chosen"]} == {"sinusoidal", "rope", "fire"}


@pytest.mark.acceptance
def test_every_row_links_to_its_encodings_page(opened):
    """In the live page; test_page_file follows one in an exported file."""
    page = opened("compare?fourth=fire", lang="zh")
    rows = asked(fourth="fire").facts["measured"]["rows"]
    links = page.locator(".measured th[scope=row]").evaluate_all(
        "all => all.map((one) => [...one.querySelectorAll('a')].map((link) => link.hash.split('=')[1]))"
    )
    assert sorted(links) == sorted(row["name"].split("+") for row in rows)
    assert {name for names in links for name in names} <= set(BY_NAME)
    page.click(".measured [data-arm=fire] a")
    page.wait_for_selector("main[data-ready] .view-encoding .lead")
    expect(page.locator("h1")).to_contain_text("FIRE")
    assert page.locator(".view-encoding .lead").inner_text() == BY_NAME["fire"].page.idea.zh
    page.go_back()
    page.wait_for_selector("main[data-ready] .view-compare")


@pytest.mark.acceptance
def test_headings_sort_and_unfinished_training_has_no_rank(opened):
    page = opened("compare")
    rows = asked().facts["measured"]["rows"]
    table = page.locator(".measured tbody tr")
    by_bits = sorted((row for row in rows if row["bits"][0] is not None), key=lambda row: row["bits"][0])
    assert by_bits[0]["converged"] is False
    expect(table.locator("[data-column=bits1]").first).to_have_text(f"{by_bits[0]['bits'][0]:.2f} †")
    assert table.evaluate_all("all => all.map(one => one.dataset.arm)")[: len(by_bits)] == [row["name"] for row in by_bits]
    assert not any(text.isdigit() for text in page.locator("[data-role=rank]").all_inner_texts())  # the best is unfinished
    page.click("[data-sort=decode]")
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("decode")
    by_cost = sorted((row for row in rows if row["decode"] is not None), key=lambda row: row["decode"])
    expect(table.first).to_have_attribute("data-arm", by_cost[0]["name"])
    expect(page.locator("[data-role=rank]").first).to_have_text("1")
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("decode")
    expect(table.first).to_have_attribute("data-arm", by_cost[-1]["name"])
    expect(page.locator("[data-role=rank]").first).to_have_text(str(len(by_cost)))
    page.wait_for_url(re.compile("sorted=decode&reversed=true"))
    assert page.locator(".measured tr.chosen").evaluate_all("all => all.map(one => one.dataset.arm).sort()") == [
        "rope",
        "sinusoidal",
    ]
