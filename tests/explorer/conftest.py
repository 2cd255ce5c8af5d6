"""Opens the page in Chromium, served by the same server as `posenc explore`.

Without Chromium these tests are skipped with a notice; in continuous integration they fail.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import in_process
from posenc.explorer import views
from posenc.explorer.serving import serving

expect.set_options(timeout=30_000)  # of a busy machine; five seconds were too few for a row whose claims are computed first
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BOTH = ("wavelengths", "attention")  # views of which the page computes some states, and a file holds others
METHODS = ("nope", "sinusoidal", "learned", "rope", "alibi", "t5", "shaw", "transformer_xl")  # that the page computes
IN_PAGE = ("data:", "blob:")  # what no request leaves the page for
Opened = Callable[..., Page]
Contexts = dict[tuple[str, int, int, bool, bool], BrowserContext]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for each test file: while Playwright runs, this process cannot run another event loop."""
    path = os.environ.get("POSENC_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium: apt-get install chromium")
        pytest.skip("no Chromium was found: the page is not tested (POSENC_CHROMIUM names one)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def contexts(browser: Browser) -> Iterator[Contexts]:
    """One for each language, window and theme of a test file: what one page has loaded, the next takes from memory."""
    made: Contexts = {}
    yield made
    for context in made.values():
        context.close()


@pytest.fixture
def opened(browser: Browser, contexts: Contexts, server: str) -> Iterator[Opened]:
    """`opened("table?length=8", lang="zh", width=390, dark=True, still=True)`: the page with that view drawn.

    At the end, the console must be empty and all requests must have gone to the server. Nothing that a page has stored
    is there for the next test.
    """
    pages, said, asked = [], [], []

    def open_(
        address: str = "",
        *,
        lang: str = "en",
        width: int = 1100,
        height: int = 900,
        dark: bool = False,
        still: bool = False,
    ) -> Page:
        key = (lang, width, height, dark, still)
        if key not in contexts:
            contexts[key] = browser.new_context(
                viewport={"width": width, "height": height},
                locale="zh-CN" if lang == "zh" else "en-GB",
                color_scheme="dark" if dark else "light",
                reduced_motion="reduce" if still else "no-preference",
                permissions=["clipboard-read", "clipboard-write"],
            )
        page = contexts[key].new_page()
        pages.append(page)
        page.set_default_timeout(15_000)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{server}/#/{address}")
        page.wait_for_selector("main[data-ready]")
        return page

    yield open_
    for page in pages:
        page.evaluate("localStorage.clear()")
        page.close()
    assert said == []
    assert [url for url in asked if not url.startswith((server, *IN_PAGE))] == []


@pytest.fixture(scope="session")
def export() -> Callable[..., None]:
    """`posenc explore … --export FILE`, in this process: what views answer is computed once for all files."""
    answers = {name: functools.cache(views.view(name).data) for name in views.NAMES}

    def write(path: Path, *link: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for name, data in answers.items():
                patch.setattr(views.view(name), "data", data)
            done = in_process.posenc("explore", *link, "--export", path, COLUMNS="200")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"wrote {path}, {path.stat().st_size / 1e6:.1f} MB: open it in any browser\n"

    return write


@pytest.fixture(scope="session")
def file(tmp_path_factory, export) -> Path:
    """The file that the command writes."""
    path: Path = tmp_path_factory.mktemp("exported") / "posenc 位置.html"
    export(path)
    return path
