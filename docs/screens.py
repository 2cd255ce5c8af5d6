"""Screenshots of every view in both languages at two sizes, and the two pages that show them.

    python docs/screens.py [NAME …]     docs/explorer.md, docs/explorer.zh-CN.md,
                                        docs/pictures/explorer/NAME-LANGUAGE.webp and NAME-LANGUAGE-phone.webp

Needs Chromium, Playwright and a font for Chinese. Titles and sentences are read from the page itself.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path

from explorer_questions import QUESTIONS
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from posenc.explorer import views
from posenc.explorer.serving import serving

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures" / "explorer"
SIZES = {"": (1440, 900), "-phone": (390, 844)}
HEAD = {
    "en": """# The explorer

English · [中文](explorer.zh-CN.md)

`posenc explore` opens it in the browser, offline (`pip install '.[explore]'`; in a notebook
`'.[notebook]'`); `posenc explore --export posenc.html` writes it as one file, with a link as that page stands;
`posenc explore RESULTS` shows a folder of the lab in its view *measured*;
`posenc.explorer.notebook.show("table")` puts it into a notebook, where `.value` is what the page shows. Numbers come from
the library, every view prints the Python that makes them, every state has a link and is saved as a picture; a chapter of
the story is saved as a film (GIF), too. Tab opens a bar that leads to every drawing. It opens with a story of ten
chapters, whose numbers the page computes by itself; "Contents"
has all pages under one numbering. Every encoding has a page with its formula, a program, limits, options and costs: the
comparison links to it, and `posenc explore swin` opens it where no view shows the encoding. The pictures below are made
by `python docs/screens.py`; `python tools/explorer_figures.py` measures accessibility, layout shift, the time to the
first drawing and the time of a frame in every view.

### A view in your own page

Every state can stand in a page of yours, alone, without a server. Beside the exported file, or from the site's address, a
frame shows it; "Copy code to embed" in the exported page writes this line for what it shows:

```html
<iframe src="posenc.html#/rotary_pair?m=9&n=4&alone=true&lang=en" style="width: 100%; height: 720px; border: 0"></iframe>
```

The site has a script that does the same and makes the frame as tall as the view; `data-file` names another exported file:

```html
<script src="https://example.org/assets/embed.js" data-view="rotary_pair?m=9&n=4" data-language="en"></script>
```

The notebook's widget is the same module (`page.js`), with the notebook's kernel in place of the page's own arithmetic.

""",
    "zh": """# 探索器

[English](explorer.md) · 中文

`posenc explore` 在浏览器中打开，无需联网（`pip install '.[explore]'`；
笔记本用 `'.[notebook]'`）；`posenc explore --export posenc.html` 把它写成一个文件，
给出链接时保持那一页的状态和句子；
`posenc explore RESULTS` 在视图“实测结果”里显示实验室的一个文件夹；
`posenc.explorer.notebook.show("table")` 把它放进笔记本，`.value` 就是页面正在显示的状态。
数值都来自本库，每个视图都附有得出这些数值的 Python 代码，每个状态都有链接，也可保存为图片；
故事的每一章还可以保存为动画（GIF）。
按 Tab 键会出现通往各幅图的导航栏。打开时先是十章的故事，其中的数值由页面自己计算；“目录”列出全部页面，编号统一。
每种编码都有一页，给出公式、程序、局限、选项和代价。并排比较链接到它；
没有视图展示的编码，`posenc explore swin` 会打开它的页面。
下面的图由 `python docs/screens.py` 生成；
`python tools/explorer_figures.py` 测量每个视图的无障碍、布局偏移、首次绘制时间和帧时间。

### 放进你自己的网页

任何状态都可以单独放进你的网页，不需要服务器。把导出的文件放在旁边，或用网站的地址，一个框架就能显示它；
导出的页面里，“复制嵌入代码”会为当前状态写出这一行：

```html
<iframe src="posenc.html#/rotary_pair?m=9&n=4&alone=true&lang=zh" style="width: 100%; height: 720px; border: 0"></iframe>
```

网站有一个脚本做同样的事，并让框架与视图一样高；`data-file` 指定另一个导出的文件：

```html
<script src="https://example.org/assets/embed.js" data-view="rotary_pair?m=9&n=4" data-language="zh"></script>
```

笔记本里的小部件是同一个模块（`page.js`），只是由笔记本的内核来计算。

""",
}
START = {"en": "0 to 9. The story", "zh": "0 到 9：故事"}
CHAPTERS = {
    "en": "Ten chapters, from the failure of a trained model to what models use today. In each a need, one picture that is "
    "moved by hand, one question to answer before seeing, and what is still missing; one button leads through all of it.",
    "zh": "十章，从一个训练好的模型怎样失效，到今天的模型用什么。每章有一个需要、一幅可以用手拖动的图、"
    "一个先答后看的问题，以及还缺什么；一个按钮就能走完全部。",
}
ANSWERS = {"en": "The picture answers:", "zh": "这幅图回答："}
PHONE = {"en": "On a telephone", "zh": "手机上"}


def keep(page: Page, file: Path) -> None:
    """Writes what the window shows, with a palette and without loss: half the bytes of a PNG.

    MAXCOVERAGE keeps rare colours, such as those of a heat map's scale; MEDIANCUT merges them.
    """
    whole = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture = whole.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
    picture.convert("RGB").save(file, lossless=True, quality=90, method=6)


def draws_chinese(page: Page) -> bool:
    """Whether two characters look different: without a font for them, both are the same empty box."""
    picture = """character => {
        const canvas = document.createElement("canvas"), context = canvas.getContext("2d")
        context.font = "40px sans-serif"
        context.fillText(character, 10, 60)
        return canvas.toDataURL()
    }"""
    return bool(page.evaluate(picture, "猫") != page.evaluate(picture, "鱼"))


def section(page: Page, name: str, language: str) -> str:
    number = page.locator(".view-title .count").all_text_contents()  # none in the story
    title = page.inner_text("h1") if number else START[language]
    space = " " if language == "en" else ""
    idea = space.join(page.locator(".lead, .notice > .about").all_inner_texts()) if number else CHAPTERS[language]
    questions = [english if language == "en" else chinese for english, chinese, _ in QUESTIONS.get(name, ())]
    picture = f"pictures/explorer/{name}-{language}"
    parts = [
        f"## {number[0]}. {title}" if number else f"## {title}",
        idea,
        f"![{title}]({picture}.webp)",
        f"{ANSWERS[language]}{space}{space.join(questions)} [{PHONE[language]}]({picture}-phone.webp)",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def main() -> None:
    chosen = sys.argv[1:]
    path = os.environ.get("POSENC_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no Chromium was found; POSENC_CHROMIUM names one")
    PICTURES.mkdir(parents=True, exist_ok=True)
    names = ["start", *views.PAGES]
    with serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for language, ending in (("en", ".md"), ("zh", ".zh-CN.md")):
            locale = "zh-CN" if language == "zh" else "en-GB"
            sections = []
            for size, (width, height) in SIZES.items():
                # Without motion, so that a picture is the same each time; each window its own, so that all stand open.
                context = browser.new_context(
                    viewport={"width": width, "height": height},
                    locale=locale,
                    reduced_motion="reduce",
                    has_touch=bool(size),  # fingers, and no room for a scroll bar
                    is_mobile=bool(size),
                )
                page = context.new_page()
                if not draws_chinese(page):
                    sys.exit("no font for Chinese was found; on Debian: apt-get install fonts-wqy-zenhei")
                for name in names:
                    page.goto(f"{address}/#/{'' if name == 'start' else name}")
                    page.wait_for_selector(f"main[data-ready]:has(.view-{'story' if name == 'start' else name})")
                    if name == "start" and page.locator(".choice").count():
                        page.click("[data-role=next]")  # the text at its longest
                    page.wait_for_timeout(300)
                    if not size:
                        sections.append(section(page, name, language))
                    if not chosen or name in chosen:
                        keep(page, PICTURES / f"{name}-{language}{size}.webp")
                        print(f"{name} {language}{size}", flush=True)
                context.close()
            (DOCS / f"explorer{ending}").write_text(HEAD[language] + "\n".join(sections), encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    main()
