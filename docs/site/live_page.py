"""The site's page with the explorer inside it: what `posenc explore --export` writes, opened at the address after #."""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.explorer.links import SHOWN_BY
from posenc.support.languages import Language

FILE = "assets/explorer.html"
TITLES = {"en": "Explorer", "zh": "探索器"}
TEXT = {
    "en": "The page computes by itself; what it cannot, it says with the command of `posenc explore` that does.",
    "zh": "本页自己计算；算不了的，会给出能算它的 `posenc explore` 命令。",
}
WHOLE = {"en": "Open it alone", "zh": "单独打开"}
SHARE = {"en": "Link with a card, to send", "zh": "带卡片的链接，可发送"}
OPEN = {"en": "Open {title} in the explorer", "zh": "在探索器中打开 {title}"}


def live_page(language: Language) -> str:
    up = "../" if language == "zh" else ""
    here = up + FILE
    return f"""---
hide: [navigation, toc]
---

# {TITLES[language]}

{TEXT[language]} <a href="{here}" data-role="whole">{WHOLE[language]}</a> ·
<a href="{up}share/start{"-zh" * (language == "zh")}.html" data-role="share">{SHARE[language]}</a>

<iframe class="explorer" src="{here}#/?lang={language}" title="{TITLES[language]}"></iframe>
"""


def opened(entry: Entry, language: Language) -> str:
    """A link to the explorer: to the view that is made for this encoding, or its page there."""
    address = SHOWN_BY.get(entry.name, f"encoding?name={entry.name}")
    title = entry.label.zh if language == "zh" else entry.title
    return f"[{OPEN[language].format(title=title)}](../live.md#/{address})\n{{ data-search-exclude }}"
