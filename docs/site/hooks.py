"""For mkdocs: the reference exists once, in English; a page that is linked in a message shows a card."""

from __future__ import annotations

import re
from typing import Any

from mkdocs.plugins import event_priority
from share_pages import SAYS, tags

from posenc.catalogue.lookup import BY_NAME
from posenc.support.languages import Language


@event_priority(-200)  # after the plug-in that makes a Chinese page of every English one
def on_files(files: Any, config: Any) -> Any:
    for file in list(files):
        if file.dest_uri.startswith("zh/api/"):
            files.remove(file)
        elif file.dest_uri.startswith("api/"):
            file.alternates = {"en": file}
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    if page.url.startswith("api/"):  # the menu of languages leads to the start page: from here, also without a server
        output = output.replace('href="/zh/', f'href="{"../" * page.url.count("/")}zh/')
    return output.replace("</head>", f"{card(page.url, page.title, config.site_url or '')}\n</head>", 1)


def card(address: str, title: str, site_url: str) -> str:
    """The tags of a page: an encoding has its own picture and sentence. Addresses are whole where the site has one."""
    language: Language = "zh" if address.startswith("zh/") else "en"
    site = site_url.removesuffix("zh/")
    up = site or "../" * address.count("/")
    found = re.fullmatch(r"(?:zh/)?encodings/(\w+)\.html", address)
    entry = BY_NAME[found[1]] if found else None
    image = f"pictures/{entry.name}.png" if entry else f"share/start{'-zh' * (language == 'zh')}.jpg"
    says = entry.page.idea.in_language(language) if entry else SAYS[language]
    return tags(f"{title} · posenc", says, up + image, language, site + address if site else "")
