"""The page as one file: it opens from disk without requests and shows the same as with the server."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

from conftest import BOTH, IN_PAGE
from posenc.catalogue.lookup import BY_NAME
from posenc.cli import app
from posenc.explorer import views
from posenc.explorer.data import Data
from posenc.explorer.export import RECORDS, encoded, exported
from posenc.explorer.packed import LOADER, together
from posenc.learn.ledger import ROWS
from posenc.support.page_file import document, starting
from sampling import a_third, one_in, only

ROOT = Path(__file__).parents[2]
PAGES = views.PAGES
MOST_BYTES, MOST_WITHOUT_MODELS = 6_000_000, 2_000_000  # everything, and what is there before *stretch* is opened


@pytest.fixture(scope="module")
def opened_file(browser, file) -> Iterator[Any]:
    """The file in a browser that is offline."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, locale="en-GB", offline=True)
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: page.said.append(f"error: {error}"))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(f"{file.as_uri()}#/")
    page.wait_for_selector("main[data-ready]")
    yield page
    assert page.said == []
    assert [url for url in page.asked if url.split("#")[0] != file.as_uri() and not url.startswith(IN_PAGE)] == []
    context.close()


def go(page: Any, address: str) -> None:
    page.goto(f"{page.url.split('#')[0]}#/{address}")
    page.wait_for_selector(f"main[data-ready]:has(.view-{address.split('?')[0]})" if address else "main[data-ready]")
    page.wait_for_selector(".stage:not([aria-busy])", state="attached")


def shown(page: Any) -> dict[str, Any]:
    return page.evaluate(
        """() => ({
          code: document.querySelector(".code code").textContent,
          formula: document.querySelector(".formula-card").textContent,
          values: [...document.querySelectorAll("main [data-value]")].map((one) => one.dataset.value),
        })"""
    )


@pytest.mark.acceptance
def test_the_file_is_the_same_in_every_process_and_not_too_large(file):
    heard, other = [], file.with_name("another process.html")
    command = [sys.executable, "-m", "posenc", "explore", "--export", str(other)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "2"})
    again = exported(lambda done, of: heard.append((done, of)))
    assert encoded(again) == other.read_bytes() == file.read_bytes()
    count = sum(len(views.exported(name)) for name in views.NAMES)
    assert heard == [(done, count) for done in range(1, count + 1)]
    assert len(encoded(again)) < MOST_BYTES
    (models,) = re.findall(r'<script[^>]*id="explorer/stretch.npz"[^<]*</script>', again)
    assert len(models) > 1_000_000
    assert len(encoded(again.replace(models, ""))) < MOST_WITHOUT_MODELS


def test_the_file_names_nothing_that_would_be_loaded(file):
    text = file.read_text("utf-16")
    assert re.findall(r"(?:src|href)=(?!\"data:)[^\s>]+", text) == []
    stored = [name for name in views.NAMES if views.exported(name)]
    assert text.count("<script") == text.count("</script>") == len(["about", "page", LOADER, *stored, *RECORDS])
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert "connect-src &#x27;none&#x27;" in policy
    assert "worker-src blob:" in policy
    assert "'wasm-unsafe-eval'" in html.unescape(policy)
    assert "'unsafe-eval'" not in html.unescape(policy)


def test_what_would_end_a_script_does_not():
    text = document(starting({"address": "</script><!--<script>alert(1)"}))
    assert text.count("<script") == text.count("</script") == 1
    assert "<!--" not in text


def test_an_array_of_several_answers_is_stored_once_and_a_large_one_as_float32():
    large, small = np.linspace(0, 1, 2000).reshape(2, -1), np.array([0.1, np.nan])
    one, other = Data({"a": large, "b": small}, "1"), Data({"a": large * (1 + 1e-12), "b": small, "c": np.arange(3)}, "2")
    content = together([one, other])
    length = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + length])
    assert header["arrays"] == [["float32", [2, 1000]], ["float64", [2]], ["int32", [3]]]
    assert [answer["arrays"] for answer in header["answers"]] == [{"a": 0, "b": 1}, {"a": 0, "b": 1, "c": 2}]
    assert len(content) == 4 + length + 4 * 2000 + 8 * 2 + 4 * 3


@pytest.mark.acceptance
def test_every_view_shows_what_the_server_shows(opened_file, browser, server):
    context = browser.new_context(viewport={"width": 1100, "height": 900}, locale="en-GB")
    live = context.new_page()
    live.goto(f"{server}/#/")
    for name in PAGES:
        go(opened_file, name)
        go(live, name)
        assert opened_file.locator(".trouble:visible").count() == 0, name
        mine, pythons = shown(opened_file), shown(live)
        values, wanted = mine.pop("values"), pythons.pop("values")
        assert mine == pythons, name
        assert [float(one) for one in values] == pytest.approx(
            [float(one) for one in wanted], rel=1e-6, abs=1e-7, nan_ok=True
        )
    context.close()


def test_the_story_of_the_file_is_read_to_its_end_without_a_request(opened_file):
    page = opened_file
    page.goto(f"{page.url.split('#')[0]}#/story")
    page.wait_for_selector("main[data-ready] .view-story")
    last = page.locator("dialog section").first.locator("a").count() - 1
    for _ in range(2 * last):
        page.click("[data-role=next]")
    expect(page.locator(".view-story")).to_have_attribute("data-chapter", str(last))


STORED = [name for name in PAGES if views.exported(name) and name not in BOTH]  # the others are computed in the page


@pytest.mark.parametrize("name", a_third(STORED))
def test_controls_offer_what_the_file_holds(opened_file, name):
    go(opened_file, name)
    page = opened_file
    held = views.exported(name)
    for control in page.query_selector_all("main .control-row .controls > [data-name]"):
        parameter = control.get_attribute("data-name")
        select = control.query_selector("select")
        if parameter not in views.view(name).Parameters.model_fields:
            continue
        assert select, f"{parameter} can be moved to where there are no numbers"
        values = {getattr(one, parameter) for one in held}
        assert len(select.query_selector_all("option")) == len(values), parameter
        if not select.is_visible() or not select.is_enabled():
            continue
        for index in range(min(len(values), 2)):
            select.select_option(index=index)  # with the others as they are, which the file may not hold
            page.wait_for_selector(".stage:not([aria-busy])", state="attached")
            assert page.locator(".trouble:visible").count() == 0
            assert page.locator(".stage").is_visible() != page.locator("[data-role=missing]").is_visible()
            assert select.evaluate("one => one.selectedIndex") == index


@pytest.mark.acceptance
def test_the_file_says_which_settings_need_the_server(opened_file, opened):
    fixed = 0
    for name in PAGES:
        go(opened_file, name)
        module = views.view(name)
        labels = opened_file.locator(".control-row .controls > [data-name]").evaluate_all(
            "all => all.map((one) => [one.dataset.name, one.querySelector('span').textContent])"
        )
        labels = [(parameter, label) for parameter, label in labels if parameter in module.Parameters.model_fields]
        note = opened_file.locator("[data-role=exported]")
        assert note.count() == bool(labels and name in STORED), name
        if not note.count():
            continue
        whole, _, some = note.inner_text().partition("These have the values in their lists")
        for parameter, label in labels:
            alone = len({getattr(one, parameter) for one in views.exported(name)}) == 1
            assert label in (whole if alone else some), (name, parameter)
            fixed += alone
    assert fixed > 0
    assert opened("similarity").locator("[data-role=exported]").count() == 0


def test_other_numbers_of_the_file_are_right(opened_file):
    go(opened_file, "table?length=31&d_model=22&p=7&channel=3")
    opened_file.wait_for_selector("text=31, 22")
    wanted = np.cos(7 * 10000 ** (-2 / 22))
    assert float(opened_file.get_attribute("[data-role=value]", "data-value")) == pytest.approx(wanted, abs=1e-15)


def test_the_file_holds_every_encodings_page(opened_file):
    go(opened_file, "measured")
    opened_file.click(".measured [data-arm=rope] a")
    expect(opened_file.locator("main[data-ready] h1")).to_have_text("RoPE")
    opened_file.select_option("main select", label="Swin")
    expect(opened_file.locator("main[data-ready] .lead")).to_have_text(BY_NAME["swin"].page.idea.en)
    assert {one.name for one in views.exported("encoding")} == set(BY_NAME)


@pytest.mark.parametrize("name", only(["order", "attention", "heads", "stretch"], "order", "heads"))
def test_a_sentence_of_ones_own_is_typed_in_the_file(opened_file, name):
    field = "prompt" if name == "stretch" else "sentence"
    go(opened_file, name)
    opened_file.fill(f"[data-name={field}] input", "The old bus is hidden behind the new school")
    opened_file.press(f"[data-name={field}] input", "Enter")
    expect(opened_file.locator(".code code")).to_contain_text("school")
    opened_file.wait_for_selector(".stage:not([aria-busy])", state="attached")
    expect(opened_file.locator(".trouble:visible")).to_have_count(0)


@pytest.mark.parametrize("name", one_in(3, ROWS))
def test_the_file_has_the_rows_of_the_notes(opened_file, name):
    opened_file.goto(f"{opened_file.url.split('#')[0]}#{name}")
    expect(opened_file.locator(f".row-card[data-row={name}] tbody tr").first).to_be_visible()
    expect(opened_file.locator(f"main[data-ready] .view-{ROWS[name].view.partition('?')[0]}")).to_be_visible()
    expect(opened_file.locator(".trouble:visible")).to_have_count(0)


# In a page of others


def test_a_view_stands_in_a_page_of_others_at_its_state_and_as_tall_as_it_is(tmp_path, browser, file):
    """By the script of the site, and in a frame by hand; with nothing around it but a link to the whole page."""
    shutil.copyfile(file, tmp_path / "mine.html")
    shutil.copyfile(ROOT / "docs/site/theme/embed.js", tmp_path / "embed.js")
    script = '<script src="embed.js" data-file="mine.html" data-view="shift?p=25&amp;k=7" data-language="zh"></script>'
    (tmp_path / "post.html").write_text(f"<!doctype html><p>One</p>{script}<p>Two</p>")
    page = browser.new_page(viewport={"width": 900, "height": 900}, offline=True)
    page.goto((tmp_path / "post.html").as_uri())
    assert page.locator("body > *").evaluate_all("all => all.map((one) => one.localName)") == ["p", "script", "iframe", "p"]
    shown = page.frames[1]
    shown.wait_for_selector("main[data-ready] .view-shift")
    assert (
        shown.locator("[data-name=p] input").last.input_value(),
        shown.locator("[data-name=k] input").last.input_value(),
    ) == ("25", "7")
    assert shown.locator(".posenc").get_attribute("lang") == "zh-CN"
    assert shown.locator("header, footer").count() == 0
    tall = shown.locator(".posenc").bounding_box()["height"]
    page.wait_for_function("tall => Math.abs(document.querySelector('iframe').clientHeight - tall) < 2", arg=tall)
    shown.locator("[data-name=k] input").last.fill("9")
    shown.locator("[data-name=k] input").last.press("Enter")
    shown.wait_for_url("**k=9**")
    assert "alone=true" in shown.url
    with page.context.expect_page() as whole:
        shown.click(".whole a")
    whole.value.wait_for_selector("header")
    assert "alone" not in whole.value.url
    assert "k=9" in whole.value.url
    page.close()


def test_the_code_to_embed_is_a_frame_of_this_state(opened_file):
    go(opened_file, "shift?p=25&k=7")
    opened_file.evaluate("navigator.clipboard.writeText = (text) => { window.taken = text; return Promise.resolve(); }")
    opened_file.click(".take .embed")
    source = re.search('<iframe src="([^"]+)"', opened_file.evaluate("window.taken"))[1]
    assert source == f"{opened_file.url.split('#')[0]}#/shift?p=25&k=7&alone=true&lang=en"


# What was typed and set before


TYPED = {
    "order?sentence=我喜欢猫和狗&causal=true": ("order", "我喜欢猫和狗"),
    "rotary_pair?sentence=a+quick+brown+fox&base=777&m=9&n=4": ("rotary_pair", "a quick brown fox"),
}


@pytest.mark.parametrize("link", one_in(2, TYPED))
def test_a_file_keeps_the_sentence_and_the_sliders_of_the_link_that_it_was_exported_with(
    tmp_path, browser, opened, export, link
):
    view, sentence = TYPED[link]
    file = tmp_path / "mine.html"
    export(file, f"http://127.0.0.1:8421/#/{link}")
    state = """() => [...document.querySelectorAll('.stage [data-value]')].filter(one => one.checkVisibility())
        .map(one => one.dataset.value)"""
    for lang in ("en-GB", "zh-CN"):
        context = browser.new_context(locale=lang, offline=True)
        page, asked = context.new_page(), []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector(f"main[data-ready]:has(.view-{view})")
        live = opened(link, lang=lang[:2])
        mine, pythons = page.evaluate(state), live.evaluate(state)
        mine, pythons = [float(one) for one in mine], [float(one) for one in pythons]  # computed in the page
        assert mine == pytest.approx(pythons, rel=1e-9, abs=1e-9) != []
        assert page.locator("[data-name=sentence] input").input_value() == sentence
        assert [url for url in asked if url.split("#")[0] != file.as_uri() and not url.startswith(IN_PAGE)] == []
        context.close()


def test_a_link_that_a_view_refuses_is_refused_before_anything_is_computed(tmp_path, monkeypatch):
    computed = []

    def watched(name):
        own = views.view(name).data
        return lambda asked: computed.append(name) or own(asked)

    for name in views.NAMES:
        monkeypatch.setattr(views.view(name), "data", watched(name))
    for link, said in (("order?sentence=x", "sentence: expected 2 to"), ("table?length=long", "length: expected integer")):
        done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["explore", link, "--export", str(tmp_path / "mine.html")])
        assert done.exit_code == 2
        assert said in done.output
        assert os.listdir(tmp_path) == []
        assert set(computed) <= {"order"}
