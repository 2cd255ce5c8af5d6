"""One colour for each encoding on every page, and a key beside every map."""

from __future__ import annotations

from typing import Any

import pytest

from posenc.explorer import views

SAMPLE = ["heads", "compare", "table"]
SHOWN = ("Sinusoidal", "RoPE", "ALiBi")

# Maps are canvases; tables write the number into each coloured cell.
WITHOUT_KEY = """() => [...document.querySelectorAll("main canvas")]
  .filter((one) => one.checkVisibility())
  .filter((one) => {
    const key = one.closest(".heatmap, .model, .keyed")?.querySelector(".colour-key");
    if (!key?.checkVisibility() || !/[0-9]/.test(key.textContent)) return true;
    return !key.querySelector("i").style.background.includes("gradient");
  })
  .map((one) => one.parentElement.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("names", [SAMPLE, pytest.param(views.PAGES, marks=pytest.mark.acceptance)], ids=["some", "all"])
def test_every_map_has_a_key(opened, names):
    page = opened()
    found = {}
    for name in names:
        visit(page, name)
        found[name] = page.evaluate(WITHOUT_KEY)
    assert {name: maps for name, maps in found.items() if maps} == {}


@pytest.mark.acceptance
def test_an_encoding_has_the_same_colour_on_every_page(opened):
    page = opened()
    visit(page, "compare")
    beside = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.panel')].filter((one) => one.checkVisibility())"
        ".map((one) => [one.querySelector('h2').textContent, getComputedStyle(one).borderTopColor]))"
    )
    visit(page, "extrapolation?seen=true")
    longer = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.chips button')]"
        ".map((one) => [one.textContent, getComputedStyle(one.querySelector('i')).borderTopColor]))"
    )
    assert len({beside[name] for name in SHOWN}) == len(SHOWN)
    for name in SHOWN:
        assert beside[name] == longer[name], name


def visit(page: Any, address: str) -> None:
    page.goto(f"{page.url.split('#')[0]}#/{address}")
    name = address.split("?")[0]
    page.wait_for_selector(f"main[data-ready]:has(.view-{name})")
    page.wait_for_selector(".stage:not([aria-busy])", state="attached")
