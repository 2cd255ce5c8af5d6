"""Hands and ears: keys reach every drawing, a screen reader hears its values, fingers have room, titles do not break.

Each test opens one page and goes through all views in it, because a measurement takes less than a page load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from posenc.explorer import views
from sampling import only

PAGES = views.PAGES
SAMPLE = ["binary", "table", "rotary_pair", "terms"]
NAMES = pytest.mark.parametrize("names", [SAMPLE, pytest.param(PAGES, marks=pytest.mark.acceptance)], ids=["some", "all"])
FINGER = 44  # pixels
TABS = 5
DRAWINGS = ".stage :is([role=application], [role=slider]:not(input), table[role=grid])"  # those that keys move
SEEN = f"""() => [...document.querySelectorAll("{DRAWINGS}")].filter((one) => one.checkVisibility())"""
# Every drawing, however it is made and whether or not keys move it; not the small ones beside a name or a number.
DRAWN = "main :is(canvas, svg, table[role=grid], .chart, .bits, .strips)"
PICTURES = f"""() => [...document.querySelectorAll("{DRAWN}")]
  .filter((one) => one.checkVisibility() && !one.closest("[aria-hidden=true]"))
  .filter((one) => Math.min(one.getBoundingClientRect().width, one.getBoundingClientRect().height) >= 60)"""
KEYS = ("ArrowRight", "ArrowDown", "ArrowLeft")


@pytest.fixture
def walk(browser, server) -> Iterator[Any]:
    """`walk(["table"], 390, 844, "zh")`: yields the name and the page of one view after the other, all in one page."""
    contexts = []

    def go(names: list[str], width: int, height: int, lang: str = "en") -> Iterator[tuple[str, Any]]:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            locale="zh-CN" if lang == "zh" else "en-GB",
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.goto(server)
        for name in names:
            page.goto(f"{server}/#/{name}")
            page.wait_for_selector(f"main[data-ready]:has(.view-{name})" if name else "main[data-ready]:has(.view-story)")
            yield name, page

    yield go
    for context in contexts:
        context.close()


@pytest.mark.acceptance
@NAMES
def test_five_tabs_reach_every_drawing(walk, names):
    """From the top of the page: a bar whose entries lead to all drawings; arrow keys choose, Enter goes."""
    for name, page in walk(["", *names], 1100, 900):
        page.evaluate("document.querySelector('.skips button').focus()")
        tabs = 1  # the bar is the first thing in the page: the next test
        labels = page.locator(".skips button").all_inner_texts()[1:]
        assert all(len(label) > 4 for label in labels), (name, labels)
        assert len(set(labels)) == len(labels), (name, labels)
        page.evaluate("window.reached = []")
        for number in range(len(labels)):
            page.evaluate("() => { getSelection().removeAllRanges(); document.querySelector('.skips button').focus(); }")
            for _ in range(number + 1):
                page.keyboard.press("ArrowRight")
            page.keyboard.press("Enter")
            page.evaluate("reached.push(document.activeElement)")
        missed = page.evaluate(
            f"""() => ({PICTURES})().filter((one) => !reached.some((at) => one.contains(at) || at.contains(one)))
              .map((one) => one.outerHTML.slice(0, 150))"""
        )
        assert missed == [], name
        assert page.evaluate("reached.every((one) => one.closest('main') && one.matches('main *'))"), name
        assert page.evaluate("new Set(reached).size") == len(labels) >= 1, name
        assert tabs <= TABS


def test_the_bar_is_the_first_tab(walk):
    for name, page in walk(["", "table"], 1100, 900):
        page.reload()
        page.wait_for_selector("main[data-ready]")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('.skips') !== null")
        # the text, and the table with its map, or the scene
        assert page.locator(".skips button").count() == (3 if name else 2)
        assert page.evaluate("document.querySelector('.skips').getBoundingClientRect().left") >= 0


@NAMES
def test_a_screen_reader_hears_the_value_under_the_cursor(walk, names):
    """After a key, the live region says a number that the page shows."""
    silent = []
    for name, page in walk(names, 1100, 900):
        for number in range(page.evaluate(f"({SEEN})().length")):
            page.evaluate("document.querySelector('[data-role=live]').textContent = ''")
            page.evaluate(
                f"""(number) => {{
                  const one = ({SEEN})()[number];
                  (one.querySelector("td[tabindex='0']") ?? one).focus();
                }}""",
                number,
            )
            for key in KEYS:  # one of them moves the cursor, wherever it is
                page.keyboard.press(key)
                page.wait_for_selector(".stage:not([aria-busy])", state="attached")
                said, shown = page.evaluate(
                    """() => [
                      document.querySelector("[data-role=live]").textContent,
                      [...document.querySelectorAll("main :is([data-value], output, [aria-valuenow])")].flatMap((one) =>
                        [one.textContent.trim(), one.getAttribute("aria-valuenow")]),
                    ]"""
                )
                numbers = re.findall(r"[−-]?\d+(?:\.\d+)?(?:e[−-]?\d+)?", said)
                if set(numbers) & set(shown):
                    break
            else:
                silent.append((name, number, said))
    assert silent == []


PRESSED = (
    ".posenc :is(a[href], button, select, input, textarea, summary, label.button, "
    "g[role=slider], [role=application], td[tabindex])"
)
SMALL = """([finger, pressed]) => {
  const label = (one) => one.closest("label") ?? one.parentElement.querySelector("label");
  const box = (one) => (["checkbox", "file"].includes(one.type) ? label(one) : one).getBoundingClientRect();
  const inSentence = (one) => one.matches("a") && [...one.closest("p, li, dd")?.childNodes ?? []]
    .some((node) => node.nodeType === 3 && node.textContent.trim().length > 3);
  return [...document.querySelectorAll(pressed)]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest(".skips") && !inSentence(one))
    .map((one) => [one.outerHTML.slice(0, 90), Math.round(box(one).width), Math.round(box(one).height)])
    .filter(([, width, height]) => width < finger || height < finger);
}"""


@NAMES
def test_a_finger_has_room_on_a_telephone(walk, names):
    """Everything that can be pressed measures 44 pixels both ways, except links inside a sentence."""
    found = {name: page.evaluate(SMALL, [FINGER, PRESSED]) for name, page in walk(["", "encoding", *names], 390, 844)}
    assert {name: small for name, small in found.items() if small} == {}


HEADINGS = """() => [...document.querySelectorAll("main tr")].flatMap((line) => {
  const words = [...line.querySelectorAll("th[scope=col]")].map((one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    return [one.textContent, range.getBoundingClientRect()];
  }).filter(([text, box]) => text && box.width);
  return words.slice(1).flatMap(([text, box], index) =>
    box.left - words[index][1].right < 3 ? [`${words[index][0]}|${text}`] : []);
})"""


@NAMES
@pytest.mark.parametrize("lang", only(("en", "zh"), "zh"))
def test_a_telephone_shows_one_header_row_whole_windows_and_headings_apart(walk, lang, names):
    faults: dict[str, Any] = {}
    for name, page in walk(["", "encoding", *names], 390, 844, lang):
        tops = page.evaluate(
            "[...document.querySelector('.bar').children].filter((one) => !one.matches('.skips, .rail, dialog'))"
            ".map((one) => { const box = one.getBoundingClientRect(); return Math.round(box.top + box.height / 2); })"
        )
        cut = page.evaluate(
            "[...document.querySelectorAll('main :is(.scroll:has(> table.window), input[type=number])')]"
            ".filter((one) => one.checkVisibility())"
            ".filter((one) => one.scrollWidth > one.clientWidth).length"
        )
        merged = page.evaluate(HEADINGS)
        if max(tops) - min(tops) > 2 or cut or merged:
            faults[name] = (tops, cut, merged)
    assert faults == {}


@pytest.mark.acceptance
@NAMES
def test_headings_stand_apart_on_a_desktop(walk, names):
    merged = {name: page.evaluate(HEADINGS) for name, page in walk(names, 1440, 900)}
    assert {name: found for name, found in merged.items() if found} == {}


BROKEN = r"""(width) => {
  const words = new Intl.Segmenter("zh", { granularity: "word" });
  return [...document.querySelectorAll("main :is(h1, .onward a > span)")]
    .flatMap((title) => {
      const [before, range] = [title.style.width, document.createRange()];
      title.style.width = `${width}px`;
      const walker = document.createTreeWalker(title, NodeFilter.SHOW_TEXT);
      const split = [];
      while (walker.nextNode()) {
        const node = walker.currentNode;
        for (const { segment, index, isWordLike } of words.segment(node.textContent)) {
          if (!isWordLike || !/^[\u4e00-\u9fff]{2,}$/.test(segment)) continue;
          range.setStart(node, index);
          range.setEnd(node, index + segment.length);
          if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) split.push(segment);
        }
      }
      title.style.width = before;
      return split;
    });
}"""


@pytest.mark.acceptance
@NAMES
def test_a_chinese_title_breaks_between_words(walk, names):
    """At widths from a narrow telephone on, no word of a title such as 如何 stands on two lines."""
    split: dict[str, list[str]] = {}
    for name, page in walk(["", *names], 390, 844, "zh"):
        for width in range(120, 340, 40):
            if found := page.evaluate(BROKEN, width):
                split[f"{name} {width}"] = found
    assert split == {}


@pytest.mark.acceptance
def test_titles_did_break_inside_words(walk):
    """The measurement sees it: without the page's rule some word does break; which one depends on the font."""
    for _, page in walk([""], 390, 844, "zh"):
        page.add_style_tag(content=".phrased { word-break: normal !important }")
        page.evaluate("document.querySelectorAll('wbr').forEach((one) => one.remove())")
        page.evaluate("document.querySelector('main').normalize()")
        assert any(page.evaluate(BROKEN, width) for width in range(120, 340, 40))
