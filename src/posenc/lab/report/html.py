"""Parts of an HTML file that loads nothing from the network and contains both languages.

document(title, body, styles=, scripts=)     the whole file; its policy allows only these scripts
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence

from posenc.lab.report import svg
from posenc.pictures.plots.style import mix
from posenc.support.languages import Words

HEAT = ("#dcefe9", "#f8e3b4", "#eb9a73", "#c44a4a", "#6d1030")  # good … bad
LANGUAGES = (("en", "English"), ("zh", "中文"))


def document(title: str, body: str, *, styles: Sequence[str], scripts: Sequence[str]) -> str:
    """The whole file. The scripts run at the start of the body, in order."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">
<title>{html.escape(title)}</title>
<style>
{"".join(styles)}</style>
</head>
<body>
{"".join(f"<script>{script}</script>" for script in scripts)}
<main>
{body}</main>
</body>
</html>
"""


def _policy(scripts: Sequence[str]) -> str:
    """The content security policy: nothing is loaded, and pictures are part of the file."""
    known = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in known) or "'none'"
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def header(brand: str, title: Words, lead: Words) -> str:
    buttons = "".join(f'<button type="button" data-language="{short}">{name}</button>' for short, name in LANGUAGES)
    bar = f'<div class="bar"><span class="brand">{brand}</span><span class="languages">{buttons}</span></div>'
    return f"<header>{bar}{tag('h1', title)}{tag('p', lead, 'lead')}</header>\n"


def section(heading: Words, content: str, name: str = "") -> str:
    opening = f'section id="{name}"' if name else "section"
    return f"<{opening}>{tag('h2', heading)}{content}</section>\n"


def tag(kind: str, words: Words, classes: str = "") -> str:
    opening = f'{kind} class="{classes}"' if classes else kind
    return f"<{opening}>{span(words)}</{kind}>"


def span(words: Words) -> str:
    """The text in both languages; once if they are equal."""
    en, zh = map(html.escape, words.both())
    return en if en == zh else f'<span class="en" lang="en">{en}</span><span class="zh" lang="zh">{zh}</span>'


def table(kind: str, head: Sequence[str], body: Sequence[Sequence[str]], caption: Words | None = None) -> str:
    """A table. `head` and the first cell of each row become headings; the other cells are complete <td> elements."""
    heads = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    rows = "".join(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>' for name, *cells in body)
    caption_tag = "" if caption is None else tag("caption", caption)
    inside = f"{caption_tag}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="scroll" tabindex="0"><table class="{kind}">{inside}</table></div>'


def both(chart: svg.Chart, height: int) -> str:
    """A chart for wide windows and one for narrow windows, where the text of the first would be too small."""
    wide, narrow = svg.lines(chart, width=940, height=height), svg.lines(chart, width=370, height=430)
    return f'<div class="chart wide">{wide}</div><div class="chart narrow">{narrow}</div>'


def heat(share: float) -> str:
    """The style of a heat map cell, from 0 (good) to 1 (bad), with a text colour of enough contrast."""
    return f"background:{mix(HEAT, share)};color:{'#fff' if share > 0.55 else '#1d2129'}"
