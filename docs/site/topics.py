"""What a search finds beside encodings, in both languages: chapters and views of the explorer, and pages of the guide.

Titles and sentences of the explorer are read from its sources, those of pages from their headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

WEB = Path(__file__).parents[2] / "web" / "src"
PAIR = re.compile(r'both\(\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)",?\s*\)')
CHAPTERS = re.compile(r"CHAPTERS: Chapter\[\] = \[(.*?)\]")
HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)


def explorer() -> Iterator[dict[str, Any]]:
    """Chapters in their order, then views by their names; the first pair of a file's texts is its title."""
    (listed,) = CHAPTERS.findall((WEB / "story" / "chapters.ts").read_text(encoding="utf-8"))
    names = [re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name) for name in listed.split(", ")]
    places = {WEB / "story" / f"{name}.ts": f"story?chapter={number}" for number, name in enumerate(names)}
    for file in sorted((WEB / "views").glob("*.ts")):
        if "export const view: View" in file.read_text(encoding="utf-8"):
            places[file] = file.stem
    for file, address in places.items():
        text = file.read_text(encoding="utf-8")
        told = PAIR.findall(text[text.index("  title: both(") :])
        english, chinese = zip(*told, strict=True)
        yield topic(f"live.html#/{address}", english[0], chinese[0], english, chinese)


def guide(pages: Mapping[PurePosixPath, tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """The pages of the guide, by their English and Chinese texts."""
    for place, texts in pages.items():
        english, chinese = (HEADING.findall(text) for text in texts)
        yield topic(str(place.with_suffix(".html")), english[0], chinese[0], english, chinese)


def topic(to: str, english: str, chinese: str, *told: Any) -> dict[str, Any]:
    words = [re.sub(r"[`*\\]|\{\w+\}", "", "\n".join(texts)) for texts in told]
    return {"to": to, "en": english, "zh": chinese, "words": words}
