"""What the study measured: the page shows the report's numbers and the benchmark's, sorted and ranked."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

import posenc
from posenc.catalogue import measured
from posenc.catalogue.lookup import BY_NAME
from posenc.explorer import views

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "results/study"
LENGTHS = (128, 256, 1024)


def asked(**given):
    return views.data("measured", given)


def report_row(encoding: str, length: int) -> list[float]:
    """Bits of every seed, from the report's table of results/study."""
    wanted = ("language_model", encoding, "trained", "same targets", str(length))
    with (STUDY / "report" / "cells.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ("task", "encoding", "setting", "mode", "length")
    return [float(row["value"]) for row in rows if tuple(row[name] for name in columns) == wanted]


def test_the_measured_rows_are_those_of_the_report_and_of_the_costs():
    rows = {row["name"]: row for row in asked(also="fope").facts["measured"]["rows"]}
    assert len(rows) == 19
    for name in ("alibi", "rope", "nope"):
        for bits, length in zip(rows[name]["bits"], LENGTHS, strict=True):
            assert bits == pytest.approx(np.mean(report_row(name, length)), abs=1e-4), (name, length)
    costs = json.loads((Path(posenc.__file__).parent / "catalogue/choose/costs.json").read_text("utf-8"))["entries"]
    assert rows["rope"]["decode"] == costs["rope"]["decode"]["median"]
    assert rows["t5"]["memory"] == costs["t5"]["memory"]["bytes"]
    assert (rows["learned"]["parameters"], rows["learned"]["bits"][1]) == (128 * 128, None)
    assert rows["learned"]["why"][1]["en"] == "cannot: table ends at 128"
    assert (rows["fope"]["bits"], rows["fope"]["prefill"]) == ([None] * 3, costs["fope"]["prefill"]["median"])
    assert {name for name, row in rows.items() if row["chosen"]} == {"fope"}
    far = {name: found["share"] for name, found in measured.gained("chains").items() if name in rows}
    assert far.keys() >= {"alibi", "kerple", "rope"}
    assert {name: row["far"] for name, row in rows.items() if row["far"] is not None} == far
    assert all(rows[name]["interval"][0] < share < rows[name]["interval"][1] for name, share in far.items())


def test_points_and_their_seeds_are_those_of_the_report(opened):
    page = opened("measured?arm=3")
    found = asked()
    rows = found.facts["measured"]["rows"]
    assert rows[3]["name"] == "rope"
    each = np.array([report_row("rope", length) for length in LENGTHS]).T
    np.testing.assert_allclose(found.arrays["seeds"][3], each, atol=1e-4)
    np.testing.assert_allclose(found.arrays["lowest"][3], each.min(0), atol=1e-4)
    np.testing.assert_allclose(found.arrays["highest"][3], each.max(0), atol=1e-4)
    shown = float(page.get_attribute("[data-role=bits-8]", "data-value"))
    assert shown == pytest.approx(each[:, 2].mean(), abs=1e-4)
    arms = page.locator(".points .arm").evaluate_all("all => all.map((one) => one.dataset.arm)")
    assert arms == [row["name"] for row in sorted(rows, key=lambda row: row["bits"][2] or np.inf)]
    x = page.locator(".points [data-arm=rope] circle").evaluate_all(
        "all => all.map((one) => Number(one.getAttribute('cx')))"
    )
    assert np.corrcoef(x, rows[3]["bits"])[0, 1] == pytest.approx(1)
    page.focus(".points")
    page.keyboard.press("ArrowUp")
    after = rows[[row["name"] for row in rows].index(arms[arms.index("rope") - 1])]
    expect(page.locator("[data-role=bits-8]")).to_have_attribute("data-value", f"{after['bits'][2]:.5f}")


@pytest.mark.acceptance
def test_every_row_links_to_its_encodings_page(opened):
    """In the live page; test_page_file follows one in an exported file."""
    page = opened("measured?also=fope", lang="zh")
    rows = asked(also="fope").facts["measured"]["rows"]
    links = page.locator(".measured th[scope=row]").evaluate_all(
        "all => all.map((one) => [...one.querySelectorAll('a')].map((link) => link.hash.split('=')[1]))"
    )
    assert sorted(links) == sorted(row["name"].replace("rope+dropped", "drope").split("+") for row in rows)
    assert {name for names in links for name in names} <= set(BY_NAME)
    page.click(".measured [data-arm=fope] a")
    page.wait_for_selector("main[data-ready] .view-encoding .lead")
    expect(page.locator("h1")).to_contain_text("FoPE")
    assert page.locator(".view-encoding .lead").inner_text() == BY_NAME["fope"].page.idea.zh
    page.go_back()
    page.wait_for_selector("main[data-ready] .view-measured")


@pytest.mark.acceptance
def test_headings_sort_and_unfinished_training_has_no_rank(opened):
    page = opened("measured?sorted=bits1")
    rows = asked().facts["measured"]["rows"]
    table = page.locator(".measured tbody tr")
    by_bits = sorted((row for row in rows if row["bits"][0] is not None), key=lambda row: row["bits"][0])
    expect(table.locator("[data-column=bits1]").first).to_have_text(f"{by_bits[0]['bits'][0]:.2f}")
    assert table.evaluate_all("all => all.map(one => one.dataset.arm)")[: len(by_bits)] == [row["name"] for row in by_bits]
    unfinished = [row["name"] for row in by_bits].index("nope")
    assert by_bits[unfinished]["converged"] is False
    expect(table.locator("[data-column=bits1]").nth(unfinished)).to_have_text(f"{by_bits[unfinished]['bits'][0]:.2f} †")
    ranks = page.locator("[data-role=rank]").all_inner_texts()
    assert ranks[: unfinished + 1] == [*map(str, range(1, unfinished + 1)), "†"]
    assert not any(text.isdigit() for text in ranks[unfinished:])  # it may yet overtake
    page.click("[data-sort=far]")
    expect(table.first).to_have_attribute("data-arm", "transformer_xl")
    expect(table.locator("[data-column=far]").first).to_have_text("86 %")
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
