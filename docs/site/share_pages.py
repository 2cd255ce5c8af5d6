"""The cards that show a view where its link is sent: a picture, a title and a sentence, in both languages.

share/VIEW.html, share/VIEW-zh.html     leads on to the view; its Open Graph tags are what a message shows
share/VIEW.jpg, share/VIEW-zh.jpg       1200 × 630, the top of the live view's picture by docs/screens.py

Titles and sentences are those that docs/screens.py reads from the page. Addresses are whole where mkdocs.yml has a
site_url; some programs show no others.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import NamedTuple

from live_page import FILE

from posenc.support.languages import Language

DOCS = Path(__file__).parents[1]
SIZE = (1200, 630)
SECTION = re.compile(
    r"^## (?:\d+\. )?(.+)\n\n(?:(?!!)(.+)\n\n)?!\[[^\]]*\]\((pictures/explorer/(\w+)-(?:en|zh)\.webp)\)", re.MULTILINE
)
SAYS: dict[Language, str] = {
    "en": "Positional encodings, seen: every number is the library's, and everything can be moved.",
    "zh": "看得见的位置编码：数值都来自本库，处处可以动手。",
}
OPEN: dict[Language, str] = {"en": "Open it in the explorer", "zh": "在探索器中打开"}


class Card(NamedTuple):
    name: str
    title: str
    says: str
    picture: Path


def cards(language: Language) -> list[Card]:
    """One of every view, and of the start page."""
    text = (DOCS / f"explorer{'.zh-CN' * (language == 'zh')}.md").read_text(encoding="utf-8")
    return [
        Card(name, title, idea or SAYS[language], DOCS / picture) for title, idea, picture, name in SECTION.findall(text)
    ]


def tags(title: str, says: str, image: str, language: Language, address: str = "") -> str:
    """What a message shows of a page that is linked in it."""
    told = {
        "og:type": "website",
        "og:site_name": "posenc",
        "og:title": html.escape(title),
        "og:description": html.escape(says),
        "og:image": image,
        "og:locale": "zh_CN" if language == "zh" else "en_GB",
        **({"og:url": address} if address else {}),
    }
    lines = [f'<meta property="{name}" content="{value}">' for name, value in told.items()]
    return "\n".join([*lines, '<meta name="twitter:card" content="summary_large_image">'])


def page(card: Card, language: Language, site: str) -> str:
    """The page of a card; `site` stands before addresses, "" or an address that ends in /."""
    view = "" if card.name == "start" else card.name
    onward = f"../{FILE}#/{view}?lang={language}"
    file = f"{card.name}{'-zh' * (language == 'zh')}"
    title, says = f"{card.title} · posenc", html.escape(card.says)
    image = f"{site}share/{file}.jpg" if site else f"{file}.jpg"
    meta = tags(title, card.says, image, language, f"{site}share/{file}.html" if site else "")
    title = html.escape(title)
    return f"""<!doctype html>
<html lang="{"zh-CN" if language == "zh" else "en"}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<meta name="description" content="{says}">
{meta}
<meta property="og:image:width" content="{SIZE[0]}">
<meta property="og:image:height" content="{SIZE[1]}">
<meta property="og:image:alt" content="{title}">
<meta http-equiv="refresh" content="0; url={onward}">
<h1>{title}</h1>
<p>{says}</p>
<p><a href="{onward}">{OPEN[language]}</a></p>
<img src="{file}.jpg" alt="{title}" width="{SIZE[0]}" height="{SIZE[1]}">
"""


def write_cards(folder: Path, site: str = "") -> None:
    """Writes the cards of both languages into a folder."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for language in ("en", "zh"):
        for card in cards(language):
            file = folder / f"{card.name}{'-zh' * (language == 'zh')}"
            file.with_suffix(".html").write_text(page(card, language, site), encoding="utf-8")
            with Image.open(card.picture) as whole:
                picture = whole.convert("RGB")
                tall = round(picture.height * SIZE[0] / picture.width)
                picture.resize((SIZE[0], tall)).crop((0, 0, *SIZE)).save(file.with_suffix(".jpg"), quality=85)
