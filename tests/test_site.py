"""The site of docs/: its navigation holds every page; built, no link is broken and nothing is loaded from elsewhere."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import build
import check
import hooks
import pytest
import share_pages
import yaml
from PIL import Image

from posenc.catalogue import lookup
from posenc.catalogue.lookup import ENTRIES
from posenc.explorer.views import PAGES
from test_finding_words import GUESSED, KNOWN

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """The pages that mkdocs would build from, in a folder of their own."""
    build.OUT = tmp_path_factory.mktemp("site")
    build.stage()
    return build.OUT


def leaves(tree):
    for row in tree:
        for below in row.values():
            yield from [below] if isinstance(below, str) else leaves(below)


def test_the_navigation_holds_every_page_once(staged):
    settings = yaml.safe_load((staged / "mkdocs.yml").read_text(encoding="utf-8").replace(build.SLUGIFY, "name"))
    languages = next(plugin for plugin in settings["plugins"] if "i18n" in plugin)["i18n"]["languages"]
    for language, tree in (("en", settings["nav"]), ("zh", languages[1]["nav"])):
        listed = list(leaves(tree))
        assert len(listed) == len(set(listed)), "a page stands twice in the navigation"
        pages = {
            path.relative_to(staged / "pages" / language).as_posix() for path in (staged / "pages" / language).rglob("*.md")
        }
        reference = [page for page in listed if page.startswith("api/")]
        assert set(listed) - (set(reference) if language == "zh" else set()) == pages
        assert {f"encodings/{entry.name}.md" for entry in ENTRIES} <= set(listed)
        if language == "zh":  # the reference is there once
            assert reference == [f"api/{build.modules()[0]}.html"]
        else:
            assert "api/posenc.encoding.md" in reference


def test_every_view_has_a_card_with_a_picture_and_a_title_in_both_languages(staged):
    said = {}
    for name in ("start", *PAGES):
        for suffix in ("", "-zh"):
            file = staged / "pages" / "en" / "share" / f"{name}{suffix}.html"
            text = file.read_text(encoding="utf-8")
            tags = dict(re.findall(r'<meta property="(og:[\w:]+)" content="([^"]*)">', text))
            assert tags["og:image"] == f"{name}{suffix}.jpg"
            assert Image.open(file.parent / tags["og:image"]).size == (1200, 630) == (
                int(tags["og:image:width"]), int(tags["og:image:height"]))  # fmt: skip
            assert bool(re.search("[\u4e00-\u9fff]", tags["og:title"])) == (suffix == "-zh")
            assert len(tags["og:description"]) >= 15
            assert f"#/{'' if name == 'start' else name}?lang=" in text
            assert "http" not in text.replace("http-equiv", ""), "a card loads nothing from elsewhere"
            said[name, suffix] = tags["og:title"]
    assert len(set(said.values())) == len(said)


def test_addresses_of_a_card_are_whole_where_the_site_has_one():
    text = share_pages.page(share_pages.cards("zh")[1], "zh", "https://example.org/")
    assert 'content="https://example.org/share/stretch-zh.jpg"' in text
    assert 'content="https://example.org/share/stretch-zh.html"' in text


def test_every_page_has_a_card_with_whole_addresses_where_the_site_has_one():
    told = hooks.card("zh/encodings/rope.html", "旋转位置编码", "https://example.org/zh/")
    tags = dict(re.findall('<meta property="([^"]+)" content="([^"]*)">', told))
    assert tags["og:image"] == "https://example.org/pictures/rope.png"
    assert tags["og:url"] == "https://example.org/zh/encodings/rope.html"
    assert (tags["og:title"], tags["og:locale"]) == ("旋转位置编码 · posenc", "zh_CN")
    assert tags["og:description"] == lookup.BY_NAME["rope"].page.idea.zh
    near = dict(re.findall('<meta property="([^"]+)" content="([^"]*)">', hooks.card("zh/caches.html", "缓存", "")))
    assert near["og:image"] == "../share/start-zh.jpg"
    assert "og:url" not in near


def test_links_of_the_pages_lead_to_pages(staged):
    """A page of the Chinese folder may use what only the English one has: pictures, files, the reference."""
    seen = 0
    for language in ("en", "zh"):
        folder = staged / "pages" / language
        for page in folder.rglob("*.md"):
            text = page.read_text(encoding="utf-8")
            assert ".zh-CN.md" not in re.sub(r"`[^`]*`|```.*?```|files/\S*", "", text, flags=re.DOTALL), page
            for address in re.findall(r"\]\(([^)#\s]+)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
                if "://" in address:
                    continue
                target = (page.parent / address).resolve()
                assert target.exists() or (staged / "pages" / "en" / target.relative_to(folder.resolve())).exists(), (
                    page,
                    address,
                )
                seen += 1
    assert seen > 1000


def test_where_a_page_is_edited_is_where_the_site_has_it(staged):
    for language in ("en", "zh"):
        home = (staged / "pages" / language / "index.md").read_text(encoding="utf-8")
        assert "[ALiBi](encodings/alibi.md)" in home
        assert "[NTK-aware scaling](encodings/ntk.md)" in home


def test_the_checker_sees_broken_links_and_foreign_files(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">b</a><a href="b.html#gone">b</a><a href="c.html">c</a><a href="https://example.org">x</a>'
        '<script src="https://example.org/x.js"></script><img src="p.png"><link rel="stylesheet" href="s.css">'
    )
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1>')
    (tmp_path / "s.css").write_text("@font-face { src: url(https://example.org/f.woff2) } i { background: url(gone.png) }")
    assert list(check.faults(tmp_path)) == [
        "a.html: loads https://example.org/x.js",
        "a.html: b.html#gone has no such heading",
        "a.html: c.html leads nowhere",
        "a.html: p.png leads nowhere",
        "s.css: https://example.org/f.woff2 is not part of the site",
        "s.css: gone.png is not part of the site",
    ]


@pytest.fixture(scope="module")
def built():
    """The whole site, built from nothing."""
    subprocess.run([sys.executable, "docs/site/build.py"], cwd=ROOT, check=True)
    return ROOT / "build" / "site" / "html"


@pytest.mark.acceptance
def test_the_built_site_is_whole(built):
    assert list(check.faults(built)) == []
    for language in ("", "zh"):
        for entry in ENTRIES:
            assert (built / language / "encodings" / f"{entry.name}.html").is_file()


def chromium():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    assert found, "no Chromium: apt-get install chromium"
    return found


@pytest.mark.acceptance
@pytest.mark.parametrize(("folder", "words"), [("", "rotary base"), ("zh/", "旋转编码"), ("", "频率")])
def test_one_search_finds_pages_of_both_languages_the_reader_s_own_first(built, folder, words):
    """Without a server; the reference is the last."""
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"])
        site = browser.new_page(viewport={"width": 1440, "height": 900})
        site.goto(f"file://{built}/{folder}index.html")
        field = site.locator("input.md-search__input")
        field.click()
        field.fill(words)
        field.press("Shift")  # the theme searches when a key is up
        found = site.locator(".md-search-result__list .md-search-result__link")
        expect(found.first).to_be_visible(timeout=60_000)
        pages = found.evaluate_all("links => links.map(link => link.href)")
        assert any("encodings/" in page for page in pages)
        assert all(Path(re.sub(r"file://|[?#].*", "", page)).is_file() for page in pages)
        places = ["api" if "/html/api/" in page else "zh/" if "/html/zh/" in page else "" for page in pages]
        other = "" if folder else "zh/"
        assert places == sorted(places, key=[folder, other, "api"].index)
        browser.close()


@pytest.mark.acceptance
@pytest.mark.parametrize("folder", ["", "zh/"])
@pytest.mark.parametrize("word", ["why sine", "时钟"])
def test_a_question_reaches_a_chapter_or_a_view_before_the_text(built, folder, word):
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"])
        site = browser.new_page(viewport={"width": 1440, "height": 900})
        site.goto(f"file://{built}/{folder}index.html")
        field = site.locator("input.md-search__input")
        field.click()
        field.fill(word)
        first = site.locator(".found-by-name a[href*='live.html#/']").first
        expect(first).to_be_visible()
        first.click()
        expect(site.frame_locator("iframe.explorer").locator("main[data-ready]")).to_be_visible(timeout=30_000)
        assert f"/{folder}live.html#/" in site.url
        browser.close()


TYPED = {
    "": ("rotary2d", "p-rope", "bert", "gpt-neox", "vaswani", "camera", "rotery", "2108.12409", "旋转编码", "线性偏置"),
    "zh/": (
        "旋转位置嵌入",
        "位置插值",
        "动态NTK",
        "图",
        "拉普拉斯",
        "哪吒",
        "llama 3.1",
        "Qwen3-VL",
        "segment anything",
        "alibbi",
    ),
}


@pytest.mark.acceptance
@pytest.mark.parametrize(("folder", "words"), TYPED.items())
def test_a_word_that_people_type_reaches_its_page_first(built, folder, words):
    """As `posenc list WORD`, offline; a guess says so, and Enter opens the first page."""
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"])
        site = browser.new_page(viewport={"width": 1440, "height": 900})
        site.goto(f"file://{built}/{folder}index.html")
        field = site.locator("input.md-search__input")
        field.click()
        for word in words:
            field.fill(word)
            named = site.locator(".found-by-name")
            first = lookup.find(word)[0]
            there = re.compile(f"/{folder}encodings/{first.entry.name}.html")
            expect(named.locator("a").first).to_have_attribute("href", there)
            assert first.entry.name == (KNOWN | GUESSED)[word]
            expect(named.get_by_text("猜测" if folder else "guess")).to_have_count(int(first.guess))
        expect(site.locator(".md-search-result__item").first).to_be_visible(timeout=60_000)
        field.press("Enter")
        site.wait_for_url(there)
        browser.close()


def test_pages_of_measured_encodings_have_their_curve(staged):
    """Every number of the curve is the study's; an encoding that was not measured has none."""
    study = json.loads((ROOT / "src/posenc/catalogue/measured.json").read_text(encoding="utf-8"))
    task = next(one for one in study["tasks"] if one["name"] == "language_model")
    cells = {arm["name"]: arm["cells"] for arm in task["arms"]} | {arm["name"]: arm["cells"] for arm in task["after"]}
    cells |= {"linear": cells["interpolation"], "drope": cells["rope+dropped"]}
    for language in ("en", "zh"):
        for entry in ENTRIES:
            text = (staged / "pages" / language / "encodings" / f"{entry.name}.md").read_text(encoding="utf-8")
            assert text.count('<figure class="measured">') == (entry.name in cells), entry.name
            if entry.name in cells:
                caption = re.search("<figcaption>(.*)</figcaption>", text)[1]
                shown = [float(number) for number in re.findall(r"× (\d+\.\d\d)", caption)]
                assert shown == [round(cell["mean"], 2) for cell in cells[entry.name] if "mean" in cell], entry.name
            assert re.search(r"\(\.\./live\.md#/[\w?=&]+\)", text), entry.name


@pytest.mark.acceptance
@pytest.mark.parametrize(("folder", "lang"), [("", "en"), ("zh/", "zh")])
def test_the_explorer_is_in_the_site_and_opens_where_a_page_leads(built, folder, lang):
    """From disk: the navigation leads to it, an encoding's page to that encoding there; nothing comes from elsewhere."""
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        asked, said = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"file://{built}/{folder}index.html")
        page.locator(".md-tabs__link", has_text="探索器" if folder else "Explorer").click()
        inside = page.frame_locator("iframe.explorer")
        expect(inside.locator("main[data-ready]")).to_be_visible(timeout=30_000)
        expect(inside.locator(".posenc")).to_have_attribute("lang", "zh-CN" if folder else "en")
        for name, view in (("yarn", ""), ("rope", ".view-rotary_pair"), ("alibi", ".view-bias")):
            page.goto(f"file://{built}/{folder}encodings/{name}.html")
            page.locator("article a[href*='live.html#/']").click()
            expect(inside.locator(f"main[data-ready] {view or 'h1'}").first).to_be_visible(timeout=30_000)
            if not view:
                expect(inside.locator("h1")).to_contain_text("YaRN")
            expect(inside.locator(".posenc")).to_have_attribute("lang", "zh-CN" if folder else "en")
        page.goto(f"file://{built}/{folder}live.html#/table")
        expect(inside.locator("main[data-ready] .view-table")).to_be_visible(timeout=30_000)
        page.evaluate("location.hash = '#/shift?p=20'")
        expect(inside.locator("main[data-ready] .view-shift")).to_be_visible(timeout=30_000)
        browser.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file://", "data:", "blob:"))] == []


@pytest.mark.acceptance
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_of_an_entry_is_drawn_in_a_browser(built, scheme):
    """Formulas are rendered, pictures are there, a telephone need not scroll sideways, nothing is fetched."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
        asked, said = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: said.append(str(error)))
        for folder in ("", "zh/"):
            for entry in ENTRIES:
                page.goto(f"file://{built}/{folder}encodings/{entry.name}.html")
                page.wait_for_selector(".katex-html")
                page.evaluate("document.fonts.ready.then(() => new Promise(requestAnimationFrame)).then(() => true)")
                assert page.locator(".katex-error").count() == 0, entry.name
                assert page.locator("article img").first.evaluate("image => image.complete && image.naturalWidth") > 0
                assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, entry.name
                cut = "all => all.filter(one => one.scrollWidth - one.clientWidth > 1).length"
                assert page.locator("div.arithmatex").evaluate_all(cut) == 0, f"{entry.name}: a formula is cut"
        browser.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file://", "data:"))] == []
