"""A folder of results in the page: the file that `posenc lab report` writes, and `posenc explore FOLDER`.

What the page shows is held against the blocks of the report and, for curves, against the records' cells.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import in_process
from posenc.explorer.results import results
from posenc.explorer.serving import serving
from posenc.lab.findings.assemble import findings
from posenc.lab.report.page import as_data, page
from test_lab_report import HOSTILE, made_up

ROOT = Path(__file__).parents[2]
FOLDERS = ("compare", "chains", "picture", "study", "study-code", "study-tasks")
TABLES = """() => [...document.querySelectorAll(".results table:not(.charted table)")].map((table) =>
  [...table.querySelectorAll(":scope > thead > tr, :scope > tbody > tr")].map((row) =>
    [...row.children].flatMap((cell) => Array(cell.colSpan || 1).fill(cell.textContent))))"""

Json = dict[str, Any]


@functools.cache
def found(name: str) -> Json:
    return findings(ROOT / "results" / name)


def opened(browser: Browser, path: Path, language: str = "en", **more: Any) -> Iterator[Page]:
    """A page from disk that asks for nothing and says nothing in the console."""
    said, asked = [], []
    context = browser.new_context(locale="zh-CN" if language == "zh" else "en-GB", offline=True, **more)
    shown = context.new_page()
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(path.as_uri())
    shown.wait_for_selector("main[data-ready]")
    yield shown
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def spoken(words: str | Json, language: str) -> str:
    return words if isinstance(words, str) else words[language]


def blocks(some: list[Json]) -> Iterator[Json]:
    for one in some:
        yield one
        yield from blocks(one.get("blocks", []))


def of_report(data: Json, kind: str) -> list[Json]:
    return [one for section in data["sections"] for one in blocks(section["blocks"]) if one["is"] == kind]


def cell_text(cell: Json, language: str) -> str:
    return "".join(spoken(cell[part], language) for part in ("words", "small", "detail") if part in cell)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["compare", *(pytest.param(name, marks=pytest.mark.acceptance) for name in FOLDERS[1:])])
def test_the_page_has_every_table_and_sentence_of_the_report(browser, tmp_path, name, language):
    data = as_data(found(name))
    path = tmp_path / "index.html"
    path.write_text(page(found(name)), "utf-8")
    assert path.stat().st_size < 400_000
    for shown in opened(browser, path, language):
        assert shown.locator("h1").text_content() == spoken(data["title"], language)
        assert shown.locator(".lead").text_content() == spoken(data["lead"], language)
        assert shown.locator(".results h2").all_text_contents() == [
            spoken(one["words"], language) for one in data["sections"]
        ]
        expected = [
            [[cell_text(cell, language) for cell in row] for row in [*filter(None, [table["head"]]), *table["rows"]]]
            for table in of_report(data, "table")
        ]
        assert shown.evaluate(TABLES) == expected
        text = shown.locator(".results").text_content()
        for block in [*of_report(data, "text"), *of_report(data, "article")]:
            assert spoken(block["words"], language) in text


@pytest.mark.parametrize("name", ["compare", *(pytest.param(name, marks=pytest.mark.acceptance) for name in FOLDERS[1:])])
def test_the_curves_have_the_numbers_of_the_records(browser, tmp_path, name):
    """The numbers behind the first chart, and under its cursor, are the cells' means."""
    records = found(name)
    path = tmp_path / "index.html"
    path.write_text(page(records), "utf-8")
    data = as_data(records)
    (article,) = (one for one in data["sections"][0]["blocks"] if one["is"] == "article")
    chart = next(one["chart"] for one in article["blocks"] if one["is"] == "picture")
    task = next(task for task in records["tasks"] if task["title"]["en"] == spoken(article["words"], "en"))
    times = 1 if task["measure"] == "bits" else 100
    arms = {arm["name"]: arm for arm in task["arms"]}
    for shown in opened(browser, path):
        first = shown.locator(".charted").first
        first.locator("summary").click()
        rows = first.locator("tbody tr").evaluate_all(
            "all => all.map((row) => [...row.children].map((cell) => cell.dataset.value ?? cell.textContent))"
        )
        assert [row[0] for row in rows] == [str(length) for length in task["lengths"]]
        compared = 0
        for column, series in enumerate(chart["series"], 1):
            if not series["arm"] or "kind" in series:
                continue
            arm = arms[series["arm"]]
            for row, length in zip(rows, task["lengths"], strict=True):
                cell = arm["cells"][str(length)]
                mean = arm["last_window"]["mean"] if length == task["length"] and arm["last_window"] else cell["mean"]
                if mean is None:
                    assert row[column] == "–"
                else:
                    assert float(row[column]) == pytest.approx(times * mean, abs=1e-12)
                    compared += 1
        assert compared >= 2 * len(task["lengths"])
        figure = first.locator(".chart")
        figure.focus()
        shown.keyboard.press("End")
        under = first.locator(".legend li b").evaluate_all("all => all.map((one) => one.dataset.value)")
        last = [row[1:] for row in rows][-1]
        assert [float(one) for one, number in zip(under, last, strict=True) if number != "–"] == [
            float(number) for number in last if number != "–"
        ]
        expect(shown.locator("[role=status]")).to_contain_text(f"{task['lengths'][-1]}: ")


def test_what_users_call_their_own_is_text(browser, tmp_path):
    """HTML, emoji and right-to-left names of encodings and experiments."""
    records = made_up()
    own = "mine.py:😀<img src=x onerror=alert(1)>שלום"
    records["tasks"][0]["arms"][6]["name"] = own
    records["cost"]["rows"][own] = records["cost"]["rows"].pop(HOSTILE)
    path = tmp_path / "index.html"
    path.write_text(page(records), "utf-8")
    for shown in opened(browser, path):
        assert shown.locator(".results :is(img, i:not(.swatch, .dashed, .wide):not([class='']), script)").count() == 0
        for place in (".results .heat tbody th", ".results .legend li"):
            assert any("😀<img src=x onerror=alert(1)>שלום" in text for text in shown.locator(place).all_text_contents())
        assert "Second <sentence>." in shown.locator(".results .said").text_content()


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_the_window_and_both_languages_are_a_press_away(browser, tmp_path, width, dark):
    path = tmp_path / "index.html"
    path.write_text(page(found("compare")), "utf-8")
    look: Json = {"viewport": {"width": width, "height": 900}, "color_scheme": "dark" if dark else "light"}
    for shown in opened(browser, path, **look):
        for language, heading in (("zh", "结论"), ("en", "The answer")):
            shown.click(f"[data-language={language}]")
            assert shown.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-CN"}[language]
            expect(shown.locator("h2").first).to_have_text(heading)
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
        before = shown.evaluate("getComputedStyle(document.querySelector('.posenc')).backgroundColor")
        shown.click("[data-role=theme]")
        assert shown.evaluate("getComputedStyle(document.querySelector('.posenc')).backgroundColor") != before


def test_the_view_measured_of_the_explorer_shows_the_folder(browser):
    folder = ROOT / "results" / "compare"
    data = results(folder)[1]
    with serving(data) as server:
        context = browser.new_context(locale="en-GB")
        shown = context.new_page()
        shown.goto(f"{server}/#/measured")
        shown.wait_for_selector("main[data-ready] .view-measured .results table")
        assert shown.locator(".results h2").all_text_contents() == [
            one["words"]["en"] for one in data.facts["report"]["sections"]
        ]
        shown.click("[data-language=zh]")
        expect(shown.locator(".results h2").first).to_have_text("结论")
        shown.goto(f"{server}/#/table")
        shown.wait_for_selector("main[data-ready] .view-table")
        context.close()
    variables: Json = {}
    exec(data.python, variables)
    assert variables["bits"].keys() == {arm["name"] for arm in found("compare")["tasks"][0]["arms"]}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    shutil.copytree(ROOT / "results" / "compare", folder, ignore=shutil.ignore_patterns("report"))
    return folder


def explore(*arguments: str | Path) -> Any:
    return in_process.posenc("explore", *arguments, COLUMNS="200")


def test_a_folder_is_exported_as_the_page_of_the_report(copied, tmp_path):
    done = explore(copied, "--export", tmp_path / "mine.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "mine.html").read_text("utf-8") == page(findings(copied))


def test_what_is_no_folder_of_results_is_named_in_one_sentence(copied, tmp_path):
    (tmp_path / "empty").mkdir()
    no_scores = tmp_path / "none"
    shutil.copytree(copied, no_scores)
    shutil.rmtree(no_scores / "trials")
    (no_scores / "trials").mkdir()
    (tmp_path / "file.txt").write_text("x")
    for path, said in (
        (tmp_path / "empty", "holds no experiment of posenc lab"), (tmp_path / "not-there", "there is no folder"),
        (tmp_path / "file.txt", "is a file; give the folder that holds it"), (no_scores, "has a score yet"),
    ):  # fmt: skip
        done = explore(path, "--export", tmp_path / "page.html")
        assert done.returncode == 1, path
        assert said in done.stderr
        assert str(path) in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "page.html").exists()
    done = explore(copied, "--position", "3")
    assert done.returncode == 2
    assert "no single position" in done.stderr


def test_a_broken_trial_is_named_and_the_others_are_shown(copied, tmp_path):
    broken = sorted((copied / "trials").iterdir())[0]
    broken.write_bytes(b"PAR1 nothing")
    done = explore(copied, "--export", tmp_path / "page.html")
    assert done.returncode == 0
    assert broken.name in done.stderr
    told = re.search(r'id="posenc-about">(.*?)</script>', (tmp_path / "page.html").read_text("utf-8"))
    assert told
    lost = next(section for section in json.loads(told[1])["sections"] if section["name"] == "how")
    assert any(len(table["rows"]) == 1 for table in blocks(lost["blocks"]) if table["is"] == "table")
