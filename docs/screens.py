"""Pictures of every view in both languages, and the two pages that show them.

    python docs/screens.py [NAME …]     docs/explorer.md, docs/explorer.zh-CN.md, docs/pictures/explorer/NAME-LANGUAGE.png

Needs Chromium, Playwright and a font for Chinese. Titles and sentences are read from the page itself.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from posenc.explorer import views
from posenc.explorer.serving import serving

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures" / "explorer"
WIDTH, TALLEST = 1100, 1500
HEAD = {
    "en": """# The explorer

English · [中文](explorer.zh-CN.md)

`posenc explore` opens it in the browser, offline; `posenc explore --export posenc.html` writes it as one file;
`posenc.explorer.notebook.show("table")` puts it into a notebook. Numbers come from the library, every view prints the
Python that makes them, every state has a link. The pictures below are made by `python docs/screens.py`.

""",
    "zh": """# 探索器

[English](explorer.md) · 中文

`posenc explore` 在浏览器中打开，无需联网；`posenc explore --export posenc.html` 把它写成一个文件；
`posenc.explorer.notebook.show("table")` 把它放进笔记本。
数值都来自本库，每个视图都附有得出这些数值的 Python 代码，每个状态都有链接。
下面的图由 `python docs/screens.py` 生成。

""",
}
START = {"en": "The start page", "zh": "首页"}


def keep(page: Page, name: str, language: str) -> None:
    """Writes the screenshot with a palette of 256 colours, which takes a third of the bytes.

    MAXCOVERAGE keeps rare colours, such as those of a heat map's scale; MEDIANCUT merges them.
    """
    tall = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
    shot = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": tall})
    whole = Image.open(io.BytesIO(shot)).convert("RGB")
    picture = whole.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    picture.save(PICTURES / f"{name}-{language}.png", optimize=True)


def section(page: Page, name: str, language: str, number: int) -> str:
    if not number:
        return f"## {START[language]}\n\n![{START[language]}](pictures/explorer/{name}-{language}.png)\n"
    title = page.inner_text("h1")
    idea = (" " if language == "en" else "").join(page.locator(".lead, .notice > .about").all_inner_texts())
    return f"## {number}. {title}\n\n{idea}\n\n![{title}](pictures/explorer/{name}-{language}.png)\n"


def main() -> None:
    chosen = sys.argv[1:]
    path = os.environ.get("POSENC_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no Chromium was found; POSENC_CHROMIUM names one")
    PICTURES.mkdir(parents=True, exist_ok=True)
    names = ["start", *(name for name in views.NAMES if name != "story")]
    with serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for language, ending in (("en", ".md"), ("zh", ".zh-CN.md")):
            page = browser.new_page(
                viewport={"width": WIDTH, "height": 900}, locale="zh-CN" if language == "zh" else "en-GB"
            )
            sections = []
            for number, name in enumerate(names):
                page.goto(f"{address}/#/{'' if name == 'start' else name}")
                page.reload()
                page.wait_for_selector("main[data-ready]")
                page.wait_for_timeout(300)
                sections.append(section(page, name, language, number))
                if not chosen or name in chosen:
                    keep(page, name, language)
                    print(f"{name} {language}")
            (DOCS / f"explorer{ending}").write_text(HEAD[language] + "\n".join(sections), encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    main()
