"""The page in a notebook: a widget that sends requests to the kernel, or a frame without anywidget."""

from __future__ import annotations

import base64
import html
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from posenc.explorer import views
from posenc.explorer.notebook import Frame, show
from posenc.support.extras import install
from posenc.support.page_file import script

widget = pytest.importorskip("posenc.explorer.widget", reason="anywidget is not installed", exc_type=ModuleNotFoundError)

MODEL = """(index, state) => {
  const listeners = [];
  const changes = [];
  (window.models ??= [])[index] = { assign: (name, value) => { state[name] = value; for (const one of changes) one(); } };
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const text = (buffer) => btoa(Array.from(new Uint8Array(buffer), (code) => String.fromCharCode(code)).join(""));
  return {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; },
    save_changes: () => window.saved(index, { value: state.value, address: state.address }),
    on: (event, listener) => void (event === "msg:custom" ? listeners : changes).push(listener),
    off: (_, listener) => void changes.splice(changes.indexOf(listener), 1),
    send: async (content, _, buffers = []) => {
      for (const [answer, files] of await window.kernel(index, content, buffers.map(text)))
        for (const listener of listeners) listener(answer, files.map((one) => new DataView(bytes(one).buffer)));
    },
  };
}"""
PAGE = """async ([code, states, MODEL]) => {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const { default: widget } = await import(url);
  const model = eval(MODEL);
  window.leave = states.map((state, index) => {
    const el = document.body.appendChild(document.createElement("div"));
    el.id = `cell-${index}`;
    return widget.render({ model: model(index, state), el });
  });
}"""


@pytest.fixture
def notebook(browser) -> Iterator[Any]:
    """`notebook(Explorer(…), Explorer(…))`: an empty page with these, one below the other, bridged to their kernels."""
    context = browser.new_context(viewport={"width": 1000, "height": 900}, locale="en-GB")
    said: list[str] = []
    asked: list[str] = []

    def open_(*explorers: Any) -> Any:
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda request: asked.append(request.url))

        def kernel(index: int, content: dict[str, Any], files: list[str]) -> list[Any]:
            answers: list[Any] = []
            one = explorers[index]
            one.send = lambda content, buffers=(): answers.append(
                [content, [base64.b64encode(b).decode() for b in buffers]]
            )
            one._answer(one, content, [memoryview(base64.b64decode(file)) for file in files])
            return answers

        def saved(index: int, changed: dict[str, Any]) -> None:
            for name, one in changed.items():
                setattr(explorers[index], name, one)

        page.expose_function("saved", saved)
        page.expose_function("kernel", kernel)
        states = [{name: getattr(one, name) for name in ("about", "address", "language")} for one in explorers]
        page.evaluate(PAGE, [script("explorer"), states, MODEL])
        for index in range(len(explorers)):
            page.wait_for_selector(f"#cell-{index} main[data-ready]")
        return page

    yield open_
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("blob:", "data:"))] == []


def value(page: Any, cell: str) -> float:
    return float(page.locator(f"{cell} [data-role=value]").get_attribute("data-value"))


@pytest.mark.acceptance
def test_two_widgets_show_their_own_and_leave_the_page_alone(notebook):
    page = notebook(show("table?length=20&d_model=8&p=3&channel=4"), show("table?length=30&d_model=20&p=7&channel=3", "zh"))
    before = page.evaluate(
        "[location.href, document.title, document.documentElement.lang, history.length, document.adoptedStyleSheets.length]"
    )
    assert page.evaluate("document.querySelector('main')") is None  # all of it is in shadow roots
    assert (
        page.evaluate("document.querySelector('#cell-0').shadowRoot.querySelector('h1').textContent") == "A table of waves"
    )
    first, second = math.sin(3 * 10000 ** (-4 / 8)), math.cos(7 * 10000 ** (-2 / 20))
    assert (value(page, "#cell-0"), value(page, "#cell-1")) == (
        pytest.approx(first, abs=1e-15),
        pytest.approx(second, abs=1e-15),
    )
    page.locator("#cell-0 canvas").first.focus()
    shown = page.locator("#cell-0 [data-role=value]")
    then = shown.get_attribute("data-value")
    page.keyboard.press("ArrowDown")
    expect(shown).not_to_have_attribute("data-value", then)
    assert value(page, "#cell-0") == pytest.approx(math.sin(4 * 10000 ** (-4 / 8)), abs=1e-15)
    assert value(page, "#cell-1") == pytest.approx(second, abs=1e-15)
    page.locator("#cell-0 [data-name=length] input[type=number]").fill("12")
    page.keyboard.press("Enter")
    page.wait_for_selector("#cell-0 .code code:has-text('sinusoidal_table(12, 8')")
    page.locator("#cell-1 [rel=next]").click()
    page.wait_for_selector("#cell-1 .view-wavelengths")
    page.wait_for_selector("#cell-1 main[data-ready]")
    assert page.locator("#cell-0 .view-table").count() == 1
    assert "通道" in page.locator("#cell-1 main").inner_text()
    after = page.evaluate(
        "[location.href, document.title, document.documentElement.lang, history.length, document.adoptedStyleSheets.length]"
    )
    assert after == before
    page.evaluate("window.leave[0]()")
    assert page.locator("#cell-0 main").count() == 0
    assert page.locator("#cell-1 main").count() == 1


def test_python_reads_what_the_page_shows_and_moves_it(notebook):
    explorer = show("table?length=20&d_model=8&p=3&channel=4")
    assert explorer.value == {}
    page = notebook(explorer)
    own = {"view": "table", "length": 20, "d_model": 8, "base": 10000, "p": 3, "channel": 4}
    assert explorer.value.items() >= own.items()
    page.locator("#cell-0 canvas").first.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#cell-0 [data-role=live]:has-text('4,')", state="attached")
    assert explorer.value["p"] == 4
    assert dict(item.split("=") for item in explorer.address.removeprefix("/table?").split("&"))["p"] == "4"
    page.evaluate("window.models[0].assign('address', '/shift?k=2')")
    page.wait_for_selector("#cell-0 .view-shift")
    page.wait_for_selector("#cell-0 main[data-ready]")
    assert (explorer.value["view"], explorer.value["k"], explorer.address) == ("shift", 2, "/shift?k=2")
    with page.expect_download() as download:
        page.locator("#cell-0 [data-role=picture]").click()
    assert download.value.suggested_filename == "posenc-shift.png"


def test_an_address_is_refused_where_there_is_no_such_view():
    explorer = show("table")
    explorer.address = "#/bias?method=t5"
    assert explorer.address == "/bias?method=t5"
    with pytest.raises(ValueError, match="such as table, got 'tabel'"):
        explorer.address = "tabel"


@pytest.mark.acceptance
def test_errors_of_the_kernel_are_shown_and_pass(notebook, monkeypatch):
    page = notebook(show("table?length=20"))
    real = views.view("table").data

    def data(asked: Any) -> Any:
        if asked.length == 13:
            raise ValueError("thirteen is not computed here")
        return real(asked)

    monkeypatch.setattr(views.view("table"), "data", data)
    field = page.locator("#cell-0 [data-name=length] input[type=number]")
    field.fill("13")
    page.keyboard.press("Enter")
    page.wait_for_selector("#cell-0 .trouble:has-text('thirteen is not computed here')")
    field.fill("14")
    page.keyboard.press("Enter")
    page.wait_for_selector("#cell-0 .trouble", state="hidden")
    assert "sinusoidal_table(14" in page.locator("#cell-0 .code code").inner_text()


# Without a browser


def answered(explorer: Any, asked: dict[str, Any]) -> tuple[Any, list[Any]]:
    heard: list[Any] = []
    explorer.send = lambda content, buffers=(): heard.append((content, list(buffers)))
    explorer._answer(explorer, asked, [])
    (one,) = heard
    return one


def test_every_question_has_one_answer():
    explorer = show("bias")
    assert (explorer.address, explorer.language) == ("/bias", "en")
    content, (packed,) = answered(explorer, {"id": 7, "view": "table", "parameters": {"length": 3}})
    assert (content, packed[:6]) == ({"id": 7}, b"posenc")
    for asked, words in (
        ({"id": 1, "view": "no", "parameters": {}}, "view: expected one of 2"),
        ({"id": 2, "view": "table", "parameters": {"length": 0}}, "length: "),
        ({"id": 3, "view": "table", "parameters": None}, "expected a JSON object"),
        ({"id": 4, "view": "table"}, "parameters"),
    ):
        content, files = answered(explorer, asked)
        assert content["id"] == asked["id"]
        assert words in content["error"]
        assert content["error"]
        assert files == []


@pytest.mark.parametrize("how", [show, lambda address: Frame(address, "en")])
def test_a_view_that_there_is_none_of(how):
    with pytest.raises(ValueError, match="such as table, got 'tabel'"):
        how("tabel?length=3")


def test_without_its_packages_it_says_what_to_install():
    code = "import sys; sys.modules['pydantic'] = None; from posenc.explorer.notebook import show; show()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = done.stderr.splitlines()[-1]
    assert said == f"ModuleNotFoundError: the explorer needs pydantic: {install('explore')}"


# In a frame


@pytest.mark.acceptance
def test_without_anywidget_a_frame_shows_the_exported_page(browser, monkeypatch):
    monkeypatch.delitem(sys.modules, "posenc.explorer.widget")
    monkeypatch.setitem(sys.modules, "anywidget", None)  # as where it is not installed
    monkeypatch.setattr(views, "NAMES", ("table", "wavelengths"))  # enough for this
    frame = show("table?length=30&d_model=20&p=7&channel=3", "zh")
    assert isinstance(frame, Frame)
    said: list[str] = []
    asked: list[str] = []
    context = browser.new_context(viewport={"width": 1000, "height": 950}, offline=True)
    page = context.new_page()
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    text = frame._repr_html_()
    assert re.match(r'<iframe title="posenc" sandbox="allow-scripts allow-popups allow-downloads" srcdoc="', text)
    assert html.unescape(re.search('srcdoc="([^"]*)"', text).group(1)) == frame.page
    page.set_content(f"<!doctype html><title>notebook</title><p>before</p>{text}")
    inside = page.frame_locator("iframe")
    inside.locator("main[data-ready] .view-table").wait_for()
    wanted = math.cos(7 * 10000 ** (-2 / 20))
    assert float(inside.locator("[data-role=value]").get_attribute("data-value")) == pytest.approx(wanted, abs=1e-15)
    assert "由波组成的表" in inside.locator("h1").inner_text()
    inside.locator("canvas").first.focus()
    shown = inside.locator("[data-role=value]")
    before = shown.get_attribute("data-value")
    page.keyboard.press("ArrowDown")
    expect(shown).not_to_have_attribute("data-value", before)
    moved = math.cos(8 * 10000 ** (-2 / 20))
    assert float(shown.get_attribute("data-value")) == pytest.approx(moved, abs=1e-15)
    inside.locator("[data-language=en]").click()
    inside.locator("[data-role=theme]").click()
    expect(inside.locator(".posenc")).to_have_attribute("data-theme", "dark")
    inside.locator("[rel=next]").click()
    inside.locator("main[data-ready] .view-wavelengths").wait_for()
    assert page.title() == "notebook"
    assert page.url == "about:blank"
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("data:", "about:"))] == []
