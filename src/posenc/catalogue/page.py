"""The page of an entry: NAME.md beside its NAME.py, and NAME.zh.md, which translates it.

    # ALiBi                                    <!-- translates 1f3c9a07 -->
                                               # 线性偏置注意力
    - kind: biased
    - …
    ## Idea
                                               ## 思路
    The attention score decreases …
                                               注意力分数随距离线性下降……

ENGLISH and CHINESE list the sections; facts reads the lines below the title. English is the source. The Chinese file has
what differs: what has no translation is shown in English. It begins with a digest of the English that it translates:
`make translations` lists pages without a translation and those whose English has changed since.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from posenc.support.languages import Words

ENGLISH = {
    "Idea": "idea",
    "Formula": "latex",
    "Where it breaks": "breaks",
    "What differs": "differs",
    "Positions": "coordinates",
    "Example": "example",
    "Source": "source",
    "Code": "code",
}
CHINESE = {
    "思路": "idea",
    "局限": "breaks",
    "差异": "differs",
    "位置": "coordinates",
    "选项": "options",
    "使用者": "used_by",
}
HAN = "[\u3000-\u9fff\uff00-\uffef]"
NEEDED = ("Idea", "Formula", "Where it breaks", "Source")


@dataclass(frozen=True, kw_only=True)
class Page:
    """What is said of an entry, in both languages.

    title        the heading
    idea         two to four sentences
    latex        the formula, without delimiters
    breaks       where it fails, or what it cannot do
    differs      how it differs here from the paper or the authors' code; None: in nothing that is known
    coordinates  of a token with several: what they are in the paper's or the authors' models, and where that is said
    example      lines of Python that are shown after the common example
    source       paper and section
    code         the authors' code on GitHub, "owner/name"; empty where none is known
    options      the Chinese of what the docstring says of an option; see option_descriptions
    used_by      the Chinese of those of the entry's `used_by` that have one
    translates   the digest of the English that the Chinese translates
    """

    title: Words
    idea: Words
    latex: str
    breaks: Words
    source: str
    differs: Words | None
    coordinates: Words | None
    example: str
    code: str
    options: dict[str, str]
    used_by: dict[str, str]
    translates: str


def read(file: Path) -> Page:
    """The page of NAME.md and, where there is one, of NAME.zh.md.

    Raises ValueError, naming the file, for a section that is unknown, stands twice, is missing or is written otherwise.
    """
    twin = file.with_suffix(".zh.md")
    english = _sections(file, ENGLISH)
    if missing := [heading for heading in NEEDED if ENGLISH[heading] not in english]:
        raise ValueError(f"{file}: has no section {', '.join(missing)}")
    chinese = _sections(twin, CHINESE) if twin.exists() else {}

    def both(field: str) -> Words:
        text = _paragraph(file, english[field])
        return Words(text, _paragraph(twin, chinese[field]) if field in chinese else text)

    return Page(
        title=both("title"),
        idea=both("idea"),
        latex=_inside(file, english["latex"], r"\$\$\n(.*)\n\$\$", "$$, the formula and $$, each on its own line"),
        breaks=both("breaks"),
        differs=both("differs") if "differs" in english else None,
        coordinates=both("coordinates") if "coordinates" in english else None,
        example=_inside(file, english.get("example", "```python\n```"), r"```python\n(.*)```", "a block of ```python"),
        source=_paragraph(file, english["source"]),
        code=english.get("code", ""),
        options=_translated(twin, chinese.get("options", ""), r"`(\w+)`", "`NAME`：MEANING"),
        used_by=_translated(twin, chinese.get("used_by", ""), r"(.+?)", "ENGLISH：CHINESE"),
        translates=chinese.get("translates", ""),
    )


def _sections(file: Path, known: dict[str, str]) -> dict[str, str]:
    """The text of each section, by its field."""
    head, *parts = re.split(r"^## ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    title = re.fullmatch(r"(?:<!-- translates (\w*) -->\s+)?# (.+)\s*(?:(?:- |  ).+\s*)*", head)
    if title is None:
        raise ValueError(f"{file}: expected to begin with '# TITLE' and then '## SECTION', got {head!r}")
    sections = {"translates": title[1] or "", "title": title[2]}
    for part in parts:
        heading, _, text = part.partition("\n")
        if heading not in known:
            raise ValueError(f"{file}: unknown section {heading!r}; known: {', '.join(known)}")
        if known[heading] in sections:
            raise ValueError(f"{file}: the section {heading!r} stands twice")
        if not text.strip():
            raise ValueError(f"{file}: the section {heading!r} is empty")
        sections[known[heading]] = text.strip()
    return sections


def _paragraph(file: Path, text: str) -> str:
    """Its lines as one, with a space between them unless one of them is Chinese there."""
    if "\n\n" in text:
        raise ValueError(f"{file}: expected one paragraph in a section, got {text!r}")
    return re.sub(rf"(?<={HAN})\n|\n(?={HAN})", "", text).replace("\n", " ")


def _inside(file: Path, text: str, pattern: str, expected: str) -> str:
    match = re.fullmatch(pattern, text, re.DOTALL)
    if match is None:
        raise ValueError(f"{file}: expected {expected}, got {text!r}")
    return match[1]


def _translated(file: Path, text: str, name: str, expected: str) -> dict[str, str]:
    """What a list of lines says of each name."""
    found = dict[str, str]()
    for line in text.splitlines():
        if (match := re.fullmatch(f"- {name}：(.+)", line)) is None:
            raise ValueError(f"{file}: expected a list of '- {expected}', a line for each, got {text!r}")
        if match[1] in found:
            raise ValueError(f"{file}: {match[1]!r} stands twice")
        found[match[1]] = match[2]
    return found
