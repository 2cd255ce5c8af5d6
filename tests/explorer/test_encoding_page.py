"""The page of an encoding: what its documentation says, in both languages, at an address of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from entry_page import page as site_page
from playwright.sync_api import expect

import posenc
from posenc.catalogue.description import describe
from posenc.explorer import views
from sampling import a_third, first_only

COSTS = json.loads((Path(posenc.__file__).parent / "catalogue/choose/costs.json").read_text("utf-8"))["entries"]
NAMES = list(posenc.catalogue.BY_NAME)


def cells(text: str) -> str:
    return text.replace("|", "\\|")


@pytest.mark.parametrize("name", a_third(NAMES))
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_says_what_the_documentation_says(name, lang):
    facts = views.data("encoding", {"name": name}).facts
    written = site_page(describe(posenc.catalogue.BY_NAME[name]), lang)
    assert facts["idea"][lang] in written
    assert facts["breaks"][lang] in written
    assert facts["differs"] is None or facts["differs"][lang] in written
    assert all(cells(one["means"][lang]) in written for one in facts["options"])
    assert facts["used_by"][lang] == [] or f"| {', '.join(facts['used_by'][lang])} |" in written
    assert facts["code"] in written
    for program in re.findall(r"```python\n(.*?)```", written, re.DOTALL):
        assert program in facts["example"]


@pytest.mark.parametrize(("lang", "label"), first_only([("zh", "RoPE 旋转位置编码"), ("en", "RoPE")]))
def test_a_reader_finds_idea_formula_program_cost_and_paper(opened, lang, label):
    page = opened("encoding?name=rope", lang=lang)
    facts = views.data("encoding", {"name": "rope"}).facts
    expect(page.locator("h1")).to_have_text(label)
    assert page.title() == f"{label} · posenc"
    assert page.inner_text(".lead") == facts["idea"][lang]
    assert page.inner_text(".rule") == facts["formula"]
    exec(page.inner_text(".code code"), {})
    median = COSTS["rope"]["decode"]["median"]
    expect(page.locator("[data-cost=decode]")).to_contain_text(f"{median:.2f}×")
    assert page.locator(f"a[href='https://arxiv.org/abs/{re.search('[0-9.]{10}', facts['source'])[0]}']").count() == 1
    page.click("a.beside")
    page.wait_for_selector("main[data-ready] .view-compare")


@pytest.mark.acceptance
def test_another_one_is_chosen_and_what_is_unknown_is_named(opened):
    page = opened("encoding?name=swim")
    expect(page.locator(".trouble")).to_have_text("No encoding is called swim: choose one above.")
    page.select_option("main select", label="Swin")
    page.wait_for_url(re.compile("encoding\\?name=swin$"))
    expect(page.locator(".lead")).to_have_text(posenc.catalogue.BY_NAME["swin"].page.idea.en)
    assert page.locator("a.beside").count() == 0  # it does not encode words in a row
    page.click("[data-role=contents]")
    expect(page.locator("dialog [aria-current=page]")).to_have_attribute("href", "#/encoding")
