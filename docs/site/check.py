"""Checks a built site: links and parts of pages lead to files of the site, and nothing is loaded from elsewhere.

python docs/site/check.py [build/site/html]
"""

from __future__ import annotations

import re
import sys
from codecs import BOM_UTF16_LE
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from posenc.explorer.views import PAGES

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
NOT_LOADED = ("canonical", "alternate", "next", "prev")  # relations of <link> that only name a page


class Page(HTMLParser):
    """The links, the loaded files and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links, self.loaded, self.anchors = set[str](), set[str](), set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        for name in ("id", "name"):
            if given.get(name):
                self.anchors.add(str(given[name]))
        if tag == "a" and given.get("href"):
            self.links.add(str(given["href"]))
        relation = given.get("rel") or ""
        address = given.get(LOADED.get(tag, ""))
        if address and not (tag == "link" and relation in NOT_LOADED):
            self.loaded.add(address)


@cache
def parsed(file: Path) -> Page:
    content = file.read_bytes()
    return Page(content.decode("utf-16" if content.startswith(BOM_UTF16_LE) else "utf-8"))  # the explorer is in UTF-16


def faults(site: Path) -> Iterator[str]:
    """One line for each link that leads nowhere and each file that is loaded from elsewhere."""
    parsed.cache_clear()
    for file in sorted(site.rglob("*.html")):
        page, where = parsed(file), file.relative_to(site)
        for address in sorted(page.loaded):
            if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
                yield f"{where}: loads {address}"
        for address in sorted(page.links | page.loaded):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or file.name == "404.html":
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or site.resolve() not in (target, *target.parents):
                yield f"{where}: {address} leads nowhere"
            elif parts.fragment.startswith("/"):  # an address in the explorer
                view = parts.fragment[1:].partition("?")[0]
                if view not in ("", "encoding", *PAGES):
                    yield f"{where}: {address} has no such view"
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in parsed(target).anchors:
                yield f"{where}: {address} has no such heading"
    for style in sorted(site.rglob("*.css")):
        for address in re.findall(r"url\(['\"]?([^'\")]+)", style.read_text(encoding="utf-8")):
            outside = urlsplit(address).scheme not in ("", "data")
            if outside or not (address.startswith("data:") or (style.parent / urlsplit(address).path).is_file()):
                yield f"{style.relative_to(site)}: {address} is not part of the site"


def main() -> int:
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "build" / "site" / "html"
    found = list(faults(site))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
