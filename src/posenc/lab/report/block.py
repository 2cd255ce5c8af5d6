"""A sentence and the table below it, which the page and Markdown render alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from posenc.lab.report.html import span, table, tag
from posenc.support.languages import Words


class Block(NamedTuple):
    """The first cell of a row is its heading."""

    text: Words
    head: list[Words]
    rows: list[list[Words]]

    def html(self) -> str:
        rows = [[span(heading), *(f"<td>{span(words)}</td>" for words in cells)] for heading, *cells in self.rows]
        return tag("p", self.text) + table("plain", list(map(span, self.head)), rows)

    def markdown(self, md: Callable[[Words], str]) -> list[str]:
        """`md` gives a text in one language, escaped."""
        return [md(self.text), grid(list(map(md, self.head)), [list(map(md, row)) for row in self.rows])]


def grid(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
