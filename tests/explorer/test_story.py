"""The story: chapters with addresses, a prediction in each, and numbers that are the library's.

All of it goes through few pages: a chapter is drawn in less time than a page is loaded.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageChops
from playwright.sync_api import expect
from widths import fits

from posenc import frequencies
from posenc.explorer import growth, recorded, stretch, today, views
from sampling import first_only

RIGHT = (1, 2, 1, 1, 2, 2, 1, 2, 1, 2)  # the answer of each chapter
LAST = len(RIGHT) - 1
CHAPTERS = range(LAST + 1)
NEXT = "[data-role=next]"
WEB = Path(__file__).parents[2] / "web"
VERDICTS = {"en": ("Right. ", "No. "), "zh": ("答对了。", "不对。")}
KEYS = ("ArrowRight", "ArrowRight", "ArrowUp", "PageDown", "ArrowRight")


@pytest.fixture(scope="module", params=["en", pytest.param("zh", marks=pytest.mark.acceptance)])
def page(request, browser, server) -> Iterator[Any]:
    """The story in one language, without motion; the console stays empty."""
    locale = {"en": "en-GB", "zh": "zh-CN"}[request.param]
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale=locale, reduced_motion="reduce")
    page, said = context.new_page(), []
    page.set_default_timeout(15_000)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.root, page.lang = server, request.param
    page.goto(f"{server}/#/")
    page.wait_for_selector("main[data-ready] .view-story")
    yield page
    context.close()
    assert said == []


def go(page: Any, chapter: int, fresh: bool = True) -> None:
    """Opens a chapter by its address; `fresh`: as a visitor who has seen nothing."""
    if fresh:
        page.goto("about:blank")
    page.goto(f"{page.root}/#/story?chapter={chapter}")
    page.wait_for_selector(f"main[data-ready] .chapter-{chapter}")


def now(page: Any) -> int:
    return int(page.locator(".view-story").get_attribute("data-chapter"))


# Way through


def test_next_alone_shows_every_answer_and_chapter(page):
    go(page, 0)
    for chapter in CHAPTERS:
        expect(page.locator(".view-story")).to_have_attribute("data-chapter", str(chapter))
        expect(page.locator(".rail [aria-current=page]")).to_contain_text(str(chapter))
        title, caption = page.inner_text("h1"), page.inner_text(".caption")
        assert page.locator(".ask .choice").count() >= 3
        page.click(NEXT)
        expect(page.locator(".ask .choice")).to_have_count(0)
        assert page.inner_text(".ask")
        assert page.inner_text("h1") != title
        assert page.inner_text(".caption") != caption
        assert page.inner_text(".failure")
        if chapter < LAST:
            page.click(NEXT)
    page.go_back()
    expect(page.locator(".view-story")).to_have_attribute("data-chapter", str(LAST - 1))
    expect(page.locator(".ask .choice")).to_have_count(0)  # as it was left
    page.go_forward()
    expect(page.locator(".view-story")).to_have_attribute("data-chapter", str(LAST))


def test_arrow_keys_step_but_on_a_handle_they_move_it(page):
    go(page, 2)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".ask .choice")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".view-story")).to_have_attribute("data-chapter", "3")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".view-story")).to_have_attribute("data-chapter", "2")
    handle = page.locator("[role=slider]").first
    before = handle.get_attribute("aria-valuetext")
    handle.focus()
    page.keyboard.press("ArrowRight")
    assert now(page) == 2
    assert handle.get_attribute("aria-valuetext") != before


def test_a_swipe_steps_back_and_forth(page):
    go(page, 1)
    swipe = """(by) => {
      const main = document.querySelector("main"), target = main.querySelector("h1");
      const touch = (clientX) => new Touch({ identifier: 1, target, clientX, clientY: 90 });
      const [one, other] = [touch(300), touch(300 + by)];
      target.dispatchEvent(new TouchEvent("touchstart", { touches: [one], changedTouches: [one], bubbles: true }));
      target.dispatchEvent(new TouchEvent("touchend", { touches: [], changedTouches: [other], bubbles: true }));
    }"""
    page.evaluate(swipe, 200)
    expect(page.locator(".view-story")).to_have_attribute("data-chapter", "0")
    page.evaluate(swipe, 20)
    assert now(page) == 0
    page.evaluate(swipe, -200)
    expect(page.locator(".ask .choice")).to_have_count(0)
    page.evaluate(swipe, -200)
    expect(page.locator(".view-story")).to_have_attribute("data-chapter", "1")


def test_the_contents_have_all_pages_under_one_numbering(page):
    go(page, 1)
    page.click("[data-role=contents]")
    entries = page.locator("dialog.contents a")
    numbers = entries.locator("span:first-child").all_inner_texts()
    assert numbers == [*map(str, range(len(CHAPTERS) + len(views.PAGES))), ""]
    assert {link.split("/")[-1] for link in entries.evaluate_all("all => all.map((one) => one.hash)")} >= set(views.PAGES)
    entries.nth(3).click()
    expect(page.locator(".view-story")).to_have_attribute("data-chapter", "3")
    expect(page.locator("dialog.contents")).to_be_hidden()


@pytest.mark.parametrize("asked", ["chapter=10", "chapter=two", "chapter=-1", "step=hands"])
def test_an_impossible_chapter_is_named_and_its_address_stays(page, asked):
    page.goto(f"{page.root}/#/story?{asked}")
    expect(page.locator("[data-role=missing-asked]")).to_contain_text(asked.replace("=", " = "))
    assert page.url.endswith(asked)
    page.click("[data-role=missing-nearest]")
    expect(page.locator(".view-story")).to_have_attribute("data-chapter", "0")


def test_the_other_language_keeps_the_chapter_and_what_was_moved(page):
    go(page, 2)
    page.locator("[role=slider]").first.focus()
    page.keyboard.press("PageUp")
    moved = page.locator("[role=slider]").first.get_attribute("aria-valuenow")
    title = page.inner_text("h1")
    page.click(f"[data-language={'zh' if page.lang == 'en' else 'en'}]")
    expect(page.locator("h1")).not_to_have_text(title)
    assert now(page) == 2
    assert page.locator("[role=slider]").first.get_attribute("aria-valuenow") == moved
    page.click(f"[data-language={page.lang}]")


# Predictions


def test_a_right_answer_and_a_wrong_one_have_their_verdicts(page):
    """Every other one is right, in Chinese the others."""
    go(page, 0)
    for chapter, right in enumerate(RIGHT):
        expect(page.locator(".view-story")).to_have_attribute("data-chapter", str(chapter))
        wrong = (chapter + (page.lang == "zh")) % 2
        page.locator(".ask .choice").nth(right - wrong).click()
        expect(page.locator(".ask .choice")).to_have_count(0)
        expect(page.locator(".ask .verdict")).to_contain_text(VERDICTS[page.lang][wrong])
        page.click(NEXT)


# Numbers


def test_every_number_is_what_the_printed_program_computes(page):
    """As each chapter opens, with its answer, and for each of its choices; in English after each handle was moved."""
    go(page, 0)
    for chapter in CHAPTERS:
        expect(page.locator(".view-story")).to_have_attribute("data-chapter", str(chapter))
        checked = compared(page)
        page.click(NEXT)
        checked |= compared(page)
        for handle in page.locator("figure [role=slider]").all() if page.lang == "en" else ():
            handle.focus()
            for key in KEYS:
                handle.press(key)
            checked |= compared(page)
        for choice in page.locator("figure [role=button]").all():
            choice.click()
            checked |= compared(page)
        assert len(checked) >= 2, chapter
        page.click(NEXT)


def test_each_way_to_mend_rope_has_the_frequencies_of_the_library(page):
    go(page, 8)
    page.click(NEXT)
    rope = frequencies.rotary(32, 10000.0)
    expect(page.locator("figure [role=slider]")).to_have_attribute("aria-valuenow", "8")
    ways = (rope, frequencies.linear(rope, 8.0), frequencies.ntk(rope, 8.0), frequencies.yarn(rope, 8.0, 128))
    for choice, wanted in zip(page.locator("figure [role=button]").all(), ways, strict=True):
        choice.click()
        drawn = page.locator("figure [data-value]").evaluate_all("all => all.map((one) => Number(one.dataset.value))")
        assert drawn == pytest.approx(list(wanted), rel=1e-12)


def compared(page: Any) -> set[str]:
    """The names of the numbers in the page's sentences, each compared with the variable of that name."""
    details = page.locator(".closer")
    if details.get_attribute("open") is not None:
        details.locator("summary").click()
    details.locator("summary").click()
    page.wait_for_selector(".closer .code code:not(:empty)")
    variables: dict[str, Any] = {}
    exec(page.inner_text(".closer .code code"), variables)
    found = page.locator(".view-story [data-see]").evaluate_all(
        "all => all.map((one) => [one.dataset.see, one.textContent])"
    )
    numbers = {(name, text) for name, text in found if re.match(r"[−\d]", text)}
    for name, text in numbers:
        assert shown(variables[name], text) == text, (name, text, variables[name])
    return {name for name, _ in numbers}


def shown(value: Any, like: str) -> str:
    """A value as the page would write it in the manner of a text: with as many digits, with commas."""
    if isinstance(value, str):
        return value
    digits = len(like.partition(".")[2])
    rounded = 0 if abs(value) < 0.5 * 10**-digits else value
    return f"{rounded:{',' if ',' in like else ''}.{digits}f}".replace("-", "−")


# The numbers of the picture, and the picture


def columns(page: Any) -> list[list[str]]:
    rows = page.locator(".with tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.dataset.value ?? cell.textContent))"
    )
    return [list(column) for column in zip(*rows, strict=True)]


def right_numbers(chapter: int, found: list[list[str]], language: str) -> None:
    """What the picture draws once the answer is given, computed here."""
    names, *rest = found
    numbers = np.array([[float(one) for one in column] for column in rest]) if chapter != 9 else np.array([])
    places = np.arange(len(names))
    if chapter == 0:
        stops = growth.record()[language]["stops"][: len(names)]
        np.testing.assert_array_equal(numbers.T, [stop["near"] for stop in stops])
        assert names == [str(stop["bytes"]) for stop in stops]
    elif chapter == 1:
        assert numbers[0].sum() == pytest.approx(1)
    elif chapter == 2:
        np.testing.assert_allclose(numbers, [places, places / places[-1]])
    elif chapter == 3:
        turned = 2 * np.pi * places / 8
        np.testing.assert_allclose(numbers[:2], [np.sin(turned), np.cos(turned)], atol=1e-12)
    elif chapter == 4:
        assert np.ptp(np.diff(np.log(numbers[0]))) < 1e-9
        assert numbers[0][0] == pytest.approx(2 * np.pi)
    elif chapter == 5:
        assert (numbers[0][:8].argmax(), numbers[0][8:].argmax()) == (0, 20)
    elif chapter == 6:
        assert np.ptp(numbers[1][np.isfinite(numbers[1])]) < 1e-12 < np.ptp(numbers[0])
    elif chapter == 7:
        assert numbers.sum(1) == pytest.approx([1, 1])
        assert np.ptp(numbers[1]) == 0
    elif chapter == 8:
        np.testing.assert_allclose(numbers[0], 128 * 10000 ** (-places / 16) / (2 * np.pi))
        np.testing.assert_allclose(numbers[1], 8 * numbers[0])
    else:
        encodings = today.record()["encodings"]
        assert rest == [[one["month"] for one in encodings], [str(len(one["models"])) for one in encodings]]


def test_the_numbers_of_every_picture_are_a_table_and_it_is_saved(page):
    for chapter in CHAPTERS:
        go(page, chapter)
        expect(page.locator(".with")).to_be_hidden()  # they are the answer
        page.click(NEXT)
        expect(page.locator(".with")).to_be_visible()
        page.click(".with summary")
        page.wait_for_selector(".with tbody tr")
        right_numbers(chapter, columns(page), page.lang)
    with page.expect_download() as download:
        page.click("[data-role=save]")
    assert download.value.suggested_filename == f"posenc-chapter-{LAST}.png"
    width, height = struct.unpack(">II", Path(download.value.path()).read_bytes()[16:24])
    assert width == pytest.approx(2 * (page.locator(".view-story").bounding_box()["width"] + 48), abs=2)
    assert 500 < height < 2 * page.locator(".view-story").bounding_box()["height"]


@pytest.mark.parametrize(("chapter", "width"), [(6, 1100), (3, 390)])
def test_a_film_shows_the_motion_of_a_chapter(opened, chapter, width):
    """From the question to the answer, above where it is from; the page itself stays as it was."""
    page = opened(f"story?chapter={chapter}", width=width, still=True)
    page.click(NEXT)
    before = page.locator("main").inner_html()
    with page.expect_download(timeout=120_000) as download:
        page.click("[data-role=film]")
    assert download.value.suggested_filename == f"posenc-chapter-{chapter}.gif"
    expect(page.locator("[data-role=film]")).to_be_enabled()
    assert page.locator("main").inner_html() == before
    assert page.locator(".studio").count() == 0
    film = Image.open(download.value.path())
    assert film.width == (390 if width < 700 else 1000) + 2 * 24
    frames = [(film.seek(n), film.info["duration"], film.convert("L"))[1:] for n in range(film.n_frames)]
    assert len(frames) >= 15
    assert 4000 < sum(milliseconds for milliseconds, _ in frames) < 20_000
    assert frames[0][0] == 1800
    assert 3000 <= frames[-1][0] < 4000
    apart = [ImageChops.difference(one, frames[-1][1]).getbbox() for _, one in frames[:-1]]
    assert all(apart[: len(apart) // 2])
    foot = (0, film.height - 50, film.width, film.height)
    assert len(frames[0][1].crop(foot).getcolors()) > 10
    assert {one.crop(foot).tobytes() for _, one in frames} == {frames[0][1].crop(foot).tobytes()}


def test_the_film_holds_the_pictures_that_were_put_in():
    """Read by another library: exactly those of few colours, nearly those of many; a picture that stays is none more."""
    random = np.random.default_rng(0)
    few = [random.integers(0, 200, (40, 60, 1), np.uint8).repeat(3, 2) for _ in range(2)]
    few.insert(1, few[0].copy())
    few[1][5:9, 7:30] = (1, 2, 3)
    noise = random.integers(0, 256, (40, 60, 3), np.uint8)
    smooth = np.stack(np.broadcast_arrays(np.arange(40)[:, None] * 6, np.arange(60) * 4, 80), -1).astype(np.uint8)
    pictures = [*few, few[-1], noise, smooth]
    pixels = [np.dstack([one, np.full(one.shape[:2], 255, np.uint8)]).reshape(-1).view("<u4").tolist() for one in pictures]
    program = f"""import {{ build }} from "esbuild";
      const options = {{ entryPoints: ["src/parts/gif.ts"], bundle: true, format: "esm", write: false }};
      const code = Buffer.from((await build(options)).outputFiles[0].contents).toString("base64");
      const {{ Gif }} = await import(`data:text/javascript;base64,${{code}}`);
      const gif = new Gif(60, 40);
      for (const one of {json.dumps(pixels)}) gif.add(Uint32Array.from(one), 8);
      process.stdout.write(Buffer.from(await gif.file().arrayBuffer()));"""
    if shutil.which("node") is None or not (WEB / "node_modules").exists():
        pytest.skip("no node: the film is not made")
    made = subprocess.run(["node", "--input-type=module"], cwd=WEB, input=program.encode(), capture_output=True, check=True)
    film = Image.open(io.BytesIO(made.stdout))
    assert film.n_frames == len(pictures) - 1
    read = [(film.seek(n), film.info["duration"], np.asarray(film.convert("RGB"), int))[1:] for n in range(film.n_frames)]
    assert [milliseconds for milliseconds, _ in read] == [80, 80, 160, 80, 80]
    for (_, one), wanted in zip(read[:3], few, strict=True):
        assert np.array_equal(one, wanted)
    assert np.abs(read[4][1] - smooth).max() <= 16
    assert np.abs(read[3][1] - noise).mean() < 40


# The stored growth


@pytest.mark.parametrize("language", first_only([("en",), ("zh",)]))
def test_the_stored_growth_is_what_the_models_do(language):
    record, tale = growth.record(), recorded.arrays(stretch.FILE)[f"tale.{language}"].tobytes()
    stops = record[language]["stops"]
    assert [stop["bytes"] for stop in stops] == growth.stops(tale, language)
    assert record[language]["text"] == tale[: stops[-1]["bytes"]].decode()
    for stop, writes in ((stops[0], True), (stops[len(stops) // 3], False), (stops[-1], False)):
        again = growth.stop(tale, stop["bytes"], writes)
        assert stop == {**stop, **again, "near": pytest.approx(again["near"], abs=2e-6)}
    assert sum("written" in stop for stop in stops) == 16


@pytest.mark.acceptance
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_models_write_what_is_stored(language):
    tale = recorded.arrays(stretch.FILE)[f"tale.{language}"].tobytes()
    for stop in growth.record()[language]["stops"]:
        if "written" in stop:
            assert growth.stop(tale, stop["bytes"], True)["written"] == stop["written"]


def test_the_stored_types_of_model_are_what_their_configurations_say():
    """A tenth of them, and all of the rarest encodings."""
    stored = {one["name"]: one for one in today.record()["encodings"]}
    types = today.model_types()
    rare = [one for name in ("alibi", "shaw", "t5") for one in stored[name]["models"]]
    for one in {*types[:: len(types) // 80], *rare, "llama", "gpt2", "whisper"}:
        assert (today.kinds(one) or set()) == {name for name, kind in stored.items() if one in kind["models"]}, one
    assert [one["month"] for one in stored.values()] == sorted(today.month(name) for name in stored)
    assert stored["rope"]["month"] == "2021-04"
    assert len(stored["rope"]["models"]) > max(len(kind["models"]) for name, kind in stored.items() if name != "rope")


@pytest.mark.acceptance
def test_the_total_is_that_of_all_configurations():
    assert sum(today.kinds(one) is not None for one in today.model_types()) == today.record()["total"]


def test_the_growth_shows_the_failure_and_the_mending():
    for language in ("en", "zh"):
        stops = growth.record()[language]["stops"]
        at_1, at_8 = min(stops, key=lambda one: abs(one["bytes"] - 128)), stops[-1]
        assert max(at_1["near"]) < 1.5
        alibi, rope, yarn = at_8["near"]
        assert alibi < yarn < 2 < 6 < rope


# Looks


@pytest.mark.parametrize(("width", "height", "lang"), first_only([(390, 844, "zh"), (390, 844, "en"), (1440, 900, "zh")]))
def test_picture_question_and_next_are_on_the_first_screen(opened, width, height, lang):
    page = opened("story", lang=lang, width=width, height=height, still=True)
    over = {}
    for chapter in CHAPTERS:
        if chapter:
            page.evaluate("(to) => { location.hash = to; }", f"/story?chapter={chapter}")
            page.wait_for_selector(f".chapter-{chapter}")
        fits(page)
        edges = page.evaluate(
            """(parts) => parts.map((one) => [one, document.querySelector(one).getBoundingClientRect()])
              .map(([one, { top, bottom }]) => [one, Math.round(top), Math.round(bottom)])""",
            ["h1", ".ask", "figure", NEXT],
        )
        bottom = edges[-1][1]  # the picture ends above the line of navigation
        over |= {f"{chapter} {name}": (top, end) for name, top, end in edges[:-1] if top < 0 or end > bottom + 4}
    assert over == {}


def test_the_chinese_of_the_story_is_in_its_font():
    web = Path(__file__).parents[2] / "web" / "src"
    there = set((web / "fonts" / "characters.txt").read_text("utf-8"))
    used = "".join(path.read_text("utf-8") for path in (web / "story").glob("*.ts"))
    assert set(re.findall("[\u4e00-\u9fff]", used)) - there == set(), "python web/fonts.py"
