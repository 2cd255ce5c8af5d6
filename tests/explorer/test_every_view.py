"""Tests of every view: texts, code, URL, keyboard, small screen, screen reader."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect
from widths import fits

from conftest import IN_PAGE
from posenc.explorer import views
from posenc.explorer.data import pack
from sampling import every_second, one_in, only, thinned

DOCS = Path(__file__).parents[2] / "docs"
AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
PAGES = views.PAGES
START = ""
Visit = Callable[..., Any]

# Everything that keys should reach.
CHAPTERS = 10  # of the story, which are numbered first
FOCUSABLE = "input, select, textarea, button, a[href], summary, [role=application], [role=slider], [tabindex='0']"


@pytest.fixture(scope="module")
def visit(browser, server) -> Iterator[Visit]:
    """`visit("table?length=5", lang="zh", dark=True)`: one page for each language and theme, which goes from view to view.

    `silent` checks that the console is empty and that all requests go to the server.
    """
    pages: dict[tuple[str, bool], Any] = {}

    def open_(address: str, *, lang: str = "en", dark: bool = False) -> Any:
        if (lang, dark) not in pages:
            context = browser.new_context(
                viewport={"width": 1100, "height": 900},
                locale="zh-CN" if lang == "zh" else "en-GB",
                color_scheme="dark" if dark else "light",
            )
            page = pages[lang, dark] = context.new_page()
            page.set_default_timeout(10_000)
            page.said, page.asked = [], []
            page.on("console", lambda message: page.said.append(f"{message.type}: {message.text}"))
            page.on("pageerror", lambda error: page.said.append(f"error: {error}"))
            page.on("request", lambda request: page.asked.append(request.url))
            page.goto(f"{server}/#/table")
        page = pages[lang, dark]
        page.said.clear()
        page.asked.clear()
        name = address.split("?")[0]
        if page.url.split("#/")[1].split("?")[0] == name:  # so that the view is opened anew
            other = "bias" if name == "table" else "table"
            page.goto(f"{server}/#/{other}")
            page.wait_for_selector(drawn(other))
        page.goto(f"{server}/#/{address}")
        page.wait_for_selector(drawn(name))
        return page

    yield open_
    for page in pages.values():
        page.context.close()


def drawn(name: str) -> str:
    """The selector of a drawn view, or of the start page."""
    return f"main[data-ready]:has(.view-{name or 'story'})"


def silent(page: Any, server: str) -> None:
    assert page.said == []
    assert [url for url in page.asked if not url.startswith((server, *IN_PAGE))] == []


@pytest.mark.parametrize(("name", "lang"), thinned(2, every_second((START, *PAGES), ("en", "zh"))))
def test_it_opens_with_its_words_and_fits_a_telephone(visit, server, name, lang):
    page = visit(name, lang=lang, dark=lang == "zh")
    assert page.inner_text("h1")
    assert page.title().startswith(page.inner_text("h1"))
    assert page.get_attribute("html", "lang") == ("zh-CN" if lang == "zh" else "en")
    if name:
        idea = ("" if lang == "zh" else " ").join(page.locator(".lead, .notice > .about").all_inner_texts())
        ends = re.findall(r"[。！？]" if lang == "zh" else r"[.!?](?=\s|$)", idea)
        assert len(ends) == 2, f"not two sentences: {idea!r}"
        shown = (DOCS / f"explorer{'.zh-CN' if lang == 'zh' else ''}.md").read_text("utf-8")
        assert f"{CHAPTERS + PAGES.index(name)}. {page.inner_text('h1')}\n\n{idea}\n" in shown, "python docs/screens.py"
        for size in ("", "-phone"):
            assert (DOCS / "pictures" / "explorer" / f"{name}-{lang}{size}.webp").is_file()
        assert 2 <= page.locator(".notice li").count() <= 4
        assert all(len(text) > 10 for text in page.locator(".notice li").all_inner_texts())
        assert page.inner_text(".formula-card").strip()
        assert page.locator(".trouble:visible").count() == 0
        assert "posenc" in page.inner_text(".code code")
        if lang == "zh":
            words = " ".join([idea, *page.locator(".notice li").all_inner_texts(), page.inner_text("h1")])
            assert re.search("[\u4e00-\u9fff]", words)
            assert not re.search("[\u4e00-\u9fff][,.;:?!]", words), "half-width punctuation after a Chinese character"
    page.set_viewport_size({"width": 390, "height": 844})
    fits(page)  # drawings follow the width a frame later
    page.set_viewport_size({"width": 1100, "height": 900})
    silent(page, server)


# The picture of a view, or its first part.
PICTURES = """.claim, .heatmap, .chart, .plane, .strips, .channels, .matrix, .pipeline, .places, .product, .hands,
  .line-of-words, .tale, svg, canvas"""

LINES = """() => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelector(".lead"));
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
}"""


@pytest.mark.parametrize(
    ("lang", "window"), thinned(2, every_second(("en", "zh"), ((1440, 900, 280), (390, 844, 380)))), ids=str
)
def test_the_picture_comes_first(browser, server, lang, window):
    """From the top of the page to the picture of every view: at most 280 pixels on a desktop, 380 on a telephone.

    What stands before it on a desktop: one line, and at most three controls.
    """
    width, height, most = window
    context = browser.new_context(viewport={"width": width, "height": height}, locale="zh-CN" if lang == "zh" else "en-GB")
    page = context.new_page()
    page.goto(server)
    found = {}
    for name in (START, *PAGES):
        page.goto(f"{server}/#/{name}")
        page.wait_for_selector(drawn(name))
        tops = page.evaluate(
            """(pictures) => [...document.querySelectorAll(`main :is(${pictures})`)]
              .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height >= 60)
              .map((one) => one.getBoundingClientRect().top + scrollY)""",
            PICTURES,
        )
        found[name] = min(tops)
        if width > 1000 and name != START:
            assert page.evaluate(LINES) == 1, f"{name}: {page.inner_text('.lead')}"
            assert page.locator(".control-row > .controls > :visible").count() <= 3, name
    context.close()
    assert {name: top for name, top in found.items() if top > most} == {}


def test_a_link_to_a_refused_state_says_why_and_a_valid_one_draws(visit):
    """Heads of 52 channels cannot be rotated in a quarter of them: 13 is odd."""
    page = visit("compare?first=partial&d_model=208&n_heads=4")
    expect(page.locator(".trouble")).to_contain_text("even")
    assert page.locator(".stage.refused").count() == 1
    page.click("details.more summary")
    page.locator("[data-name=d_model] input[type=number]").fill("64")
    page.keyboard.press("Enter")
    expect(page.locator(".facts thead th").first).to_be_visible()
    expect(page.locator(".trouble")).to_be_hidden()
    assert page.locator(".stage.refused").count() == 0


TITLE = 48  # pixels
SAVED = ["table", "what_breaks"]  # the last is laid out by the width of the window


def drawing(path: Path, box: dict[str, float]) -> Image.Image:
    """The drawing of a saved picture, which has the view's title above it and below it where it is from."""
    saved = Image.open(path)
    wide, tall = round(box["width"] * 2), round(box["height"] * 2)
    assert saved.width == wide
    above, below = TITLE * 2, saved.height - tall - TITLE * 2
    assert 60 <= below <= 200
    for top, bottom in ((0, above), (saved.height - below, saved.height)):
        assert len(saved.crop((0, top, wide, bottom)).convert("L").getcolors()) > 20  # there is text
    return saved.crop((0, above, wide, above + tall))


@pytest.mark.parametrize("name", only(PAGES, *SAVED))
def test_the_drawing_is_saved_as_a_picture(visit, name):
    """Twice the size on the screen, with the colours of the screen."""
    page = visit(name)
    box = page.locator(".stage").bounding_box()
    with page.expect_download() as download:
        page.click("[data-role=picture]")
    assert download.value.suggested_filename == f"posenc-{name}.png"
    page.locator(".player").evaluate_all("all => all.forEach((one) => (one.style.visibility = 'hidden'))")
    saved = np.asarray(drawing(download.value.path(), box).convert("RGB"), dtype=float)
    page.evaluate("scrollTo(0, 0)")
    seen = Image.open(io.BytesIO(page.locator(".stage").screenshot())).convert("RGB")
    small = np.asarray(Image.fromarray(saved.astype(np.uint8)).resize((48, 48), Image.Resampling.BOX), dtype=float)
    assert np.abs(small - np.asarray(seen.resize((48, 48), Image.Resampling.BOX), dtype=float)).mean() < 4


# One field of every kind, of which a reader has changed what the attributes say.
FIELDS = """(stage) => {
  const made = [
    ["input", { type: "checkbox" }, { checked: true }], ["input", { type: "checkbox", checked: "" }, { checked: false }],
    ["input", { type: "checkbox", role: "switch" }, { checked: true }],
    ["input", { type: "radio", name: "one" }, { checked: true }],
    ["input", { type: "radio", name: "one", checked: "" }, { checked: false }],
    ["input", { type: "range", min: 0, max: 9, value: 0 }, { value: "9" }],
    ["input", { type: "number", value: 1 }, { value: "888" }],
    ["input", { type: "text", value: "" }, { value: "MMMMMMMM <&>" }],
    ["textarea", {}, { value: "MMMMMMMM\\n<&> WWWW" }],
    ["select", {}, { selectedIndex: 1 }],
    ["div", { style: "width: 80px; height: 20px; overflow: hidden" }, { scrollLeft: 80 }],
  ].map(([tag, attributes, values]) => {
    const one = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
    if (tag === "select") one.innerHTML = "<option>iiii</option><option>MMMM</option>";
    const halves = "background: linear-gradient(90deg, #fff 50%, #000 50%)";
    if (tag === "div") one.innerHTML = `<div style="width: 160px; height: 20px; ${halves}"></div>`;
    return [one, values];
  });
  const row = document.createElement("div");
  row.dataset.role = "fields";
  row.append(...made.map(([one]) => one));
  stage.prepend(row);
  for (const [one, values] of made) Object.assign(one, values);
}"""
# Switches stand beside centred words, whose width is no whole number of pixels.
WHOLE = """(stage) => [...stage.querySelectorAll("[data-switch]")].forEach((one) => {
  const x = one.getBoundingClientRect().left - stage.getBoundingClientRect().left;
  Object.assign(one.style, { position: "relative", left: `${Math.ceil(x) - x}px` });
})"""
STATE = """(stage) =>
  [...stage.querySelectorAll("input, select, textarea, details, .scroll, [data-role=fields] > div")]
    .map((one) => [one.tagName, one.type, one.checked, one.value, one.selectedIndex, one.open, one.scrollLeft])"""
BOXES = """(stage) => {
  const { left, top } = stage.getBoundingClientRect();
  return [...stage.querySelectorAll("input, select, textarea, [data-role=fields] > div")]
    .filter((one) => one.checkVisibility())
    .map((one) => [one.outerHTML.slice(0, 90), one.getBoundingClientRect()])
    .map(([name, box]) => [name, [box.left - left, box.top - top, box.right - left, box.bottom - top].map(Math.round)])
    .filter(([, [x, y, right, bottom]]) => right - x > 4 && bottom - y > 4);
}"""


@pytest.mark.parametrize("name", only(PAGES, "terms"))
def test_a_saved_picture_shows_every_field_as_it_is(visit, name):
    """Ticks, choices, sliders, texts and scrolled parts; the page itself stays as it was."""
    page = visit(name)
    stage = page.locator(".stage")
    stage.evaluate(FIELDS)
    # A picture begins with a whole pixel, so the drawing should too.
    stage.evaluate("(one) => (one.closest('main').style.marginTop = `${1 - (one.getBoundingClientRect().top % 1)}px`)")
    stage.evaluate(WHOLE)
    for switch in stage.locator("[data-switch]").all()[:2]:
        switch.click()
    settle(page)
    before = stage.evaluate(STATE)
    with page.expect_download() as download:
        page.click("[data-role=picture]")
    assert stage.evaluate(STATE) == before
    saved = drawing(download.value.path(), stage.bounding_box()).convert("RGB")
    saved = saved.resize((saved.width // 2, saved.height // 2), Image.Resampling.BOX)
    page.evaluate("scrollTo(0, 0)")
    seen = Image.open(io.BytesIO(stage.screenshot())).convert("RGB")
    boxes = stage.evaluate(BOXES)
    page.evaluate("document.querySelector('main').style.marginTop = ''")
    assert len(boxes) >= 11

    def apart(box: list[int]) -> float:
        """Mean difference in colour."""
        ours, theirs = (np.asarray(image.crop(box), dtype=float) for image in (saved, seen))
        return float(np.abs(ours - theirs).mean())

    assert {field: apart(box) for field, box in boxes if apart(box) > 20} == {}


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.is_file():
        if os.environ.get("CI"):
            pytest.fail("axe-core is missing: npm --prefix web ci")
        pytest.skip("axe-core is missing: accessibility is not checked (npm --prefix web ci)")
    return AXE.read_text("utf-8")


@pytest.mark.parametrize(("name", "theme"), thinned(6, every_second((START, *PAGES, "encoding"), ("light", "dark"))))
def test_axe_finds_nothing(visit, axe, name, theme):
    page = visit(name, lang="zh" if theme == "dark" else "en", dark=theme == "dark")
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    found = page.evaluate(
        """async (tags) => {
          const { violations } = await axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
          const said = (id, { html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`;
          return violations.flatMap(({ id, nodes }) => nodes.slice(0, 4).map((node) => said(id, node)));
        }""",
        TAGS,
    )
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", one_in(6, [START, *PAGES, "encoding"]))
def test_keys_reach_everything(visit, name):
    page = visit(name)
    page.evaluate("document.addEventListener('focusin', (event) => event.target.setAttribute('data-reached', 'yes'))")
    page.focus("main")
    for _ in range(300):
        page.keyboard.press("Tab")
        if not page.evaluate("document.activeElement.closest('main') !== null"):
            break
    else:
        pytest.fail("the focus never leaves the view again")
    missed = page.evaluate(
        """(selector) => [...document.querySelectorAll(`main :is(${selector})`)]
          .filter((one) => !one.disabled && one.checkVisibility({ visibilityProperty: true }))
          .filter((one) => one.tabIndex >= 0 || one.getAttribute("role") === "application")
          .filter((one) => one.type !== "radio" || one.checked)
          .filter((one) => one.dataset.reached !== "yes").map((one) => one.outerHTML.slice(0, 200))""",
        FOCUSABLE,
    )
    assert missed == []


def shown(page: Any) -> dict[str, Any]:
    """The visible state of a view."""
    return page.evaluate(
        """() => ({
          controls: [...document.querySelectorAll(".controls :is(input, select, textarea)")]
            .map((one) => one.type === "checkbox" ? one.checked : one.value),
          values: [...document.querySelectorAll("main [data-value]")].map((one) => one.dataset.value),
          formula: document.querySelector(".formula-card").textContent,
          code: document.querySelector(".code code").textContent,
        })"""
    )


MOVE = """() => {
  const unnamed = [];
  for (const more of document.querySelectorAll("details.more")) more.open = true;
  for (const field of document.querySelectorAll(".controls :is(select, input[type=checkbox], input[type=range])")) {
    if (!field.checkVisibility() || field.disabled) continue;
    if (!field.closest("label")?.querySelector("span")?.textContent.trim()) unnamed.push(field.outerHTML);
    if (field.type === "checkbox") { field.click(); continue; }
    if (field.type === "range") field.value = (Number(field.value) * 3 + Number(field.max)) / 4;
    else field.selectedIndex = (field.selectedIndex + 1) % field.options.length;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }
  return unnamed;
}"""


@pytest.mark.parametrize("name", one_in(9, PAGES))
def test_a_reload_keeps_what_was_moved(visit, server, name):
    """Moves every control and every drawing that accepts keys; a reload restores all of them from the URL."""
    page = visit(name)
    at_first = shown(page)
    assert page.evaluate(MOVE) == []
    for drawing in page.query_selector_all("main :is([role=application], [role=slider])"):
        if drawing.is_visible():
            drawing.focus()
            page.keyboard.press("ArrowRight")
            page.keyboard.press("ArrowDown")
    if page.locator(".controls :is(input, select, textarea)").count() == 0:
        page.locator(".stage button").first.click()
    settle(page)
    moved, address = shown(page), page.evaluate("location.href")
    assert moved != at_first
    assert "?" in address
    page.reload()
    page.wait_for_selector(drawn(name))
    settle(page)
    assert shown(page) == moved, address
    assert page.evaluate("location.href") == address
    silent(page, server)


def settle(page: Any) -> None:
    """Waits until the numbers have arrived and the URL is written."""
    page.wait_for_selector(".stage:not([aria-busy])", state="attached")
    page.evaluate("new Promise((done) => setTimeout(done, 150))")  # the address follows 120 ms later, by the same clock
    page.wait_for_selector(".stage:not([aria-busy])", state="attached")


# What the code says


def compared(name: str, arrays: dict[str, Any], code: str) -> None:
    """Runs the printed code and compares its variables with the arrays of the same names. test_rows.py compares a row's."""
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    common = [one for one in arrays if one in namespace]
    assert common or not arrays or name == "row", f"{name}: none of {', '.join(arrays)} is a variable of its code"
    for one in common:
        value = namespace[one]
        got = np.asarray(value.detach().double() if hasattr(value, "detach") else value, dtype=np.float64)
        wanted = arrays[one]
        wanted = np.asarray(wanted.detach().double() if hasattr(wanted, "detach") else wanted, dtype=np.float64)
        assert got.size == wanted.size, f"{name}.{one}: {got.shape} in the code, {wanted.shape} sent"
        np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=1e-9, atol=1e-12, err_msg=f"{name}.{one}")


@pytest.mark.parametrize("name", one_in(2, views.NAMES))
def test_the_code_of_the_default_and_of_every_stored_state_gives_its_numbers(name):
    module = views.view(name)
    requests = views.exported(name)
    computed = (
        Path(__file__).parents[2] / "web/src/computed" / f"{name}.ts"
    ).exists()  # the others are stored for what Python alone computes
    assert computed or name == "wavelengths" or requests[:1] in ((), (module.Parameters(),)), "the default comes first"
    assert len({one.model_dump_json() for one in requests}) == len(requests)
    for asked in dict.fromkeys((module.Parameters(), *requests)):
        found = module.data(asked)
        assert pack(found)
        compared(name, dict(found.arrays), found.python)
        assert max(map(len, found.python.splitlines())) <= 124


@pytest.mark.parametrize("name", one_in(7, PAGES))
def test_the_code_that_the_page_shows_runs(visit, name):
    page = visit(name)
    schema = views.schemas()[name]
    english = {parameter: about["in_english"] for parameter, about in schema.items() if "in_english" in about}
    found = views.data(name, english)
    code = page.inner_text(".code code")
    assert code.startswith(found.python.rstrip())
    compared(name, dict(found.arrays), code)
