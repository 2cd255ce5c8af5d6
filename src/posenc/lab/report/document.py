"""What a report consists of, before it is printed: the page, markdown.py and screen.py print the same blocks.

Section("heat", words, [Text(…), Article(words, [Table(…), Fold(words, [Table(…)])])])
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from posenc.lab.report.chart import NOTHING, Chart, Rows
from posenc.support.languages import Words


class Cell(NamedTuple):
    """A cell of a table, or a heading of one.

    small    beside the text, in small type: a unit, an interval, a remark
    detail   every seed of a mean: on the page, and in a terminal that is wide enough
    kind     a class of the style sheet; "none …" for a cell without a number
    shade    of a heat map, from 0 (good) to 1 (bad)
    arm      the encoding whose colour stands before the text
    """

    words: Words
    small: Words = NOTHING
    detail: Words = NOTHING
    kind: str = ""
    shade: float | None = None
    arm: str = ""


class Text(NamedTuple):
    words: Words
    kind: str = ""


class Items(NamedTuple):
    """A list of sentences."""

    words: Sequence[Words]
    kind: str


class Card(NamedTuple):
    """A need, what to take for it, and why."""

    need: Words
    pick: Words
    why: Words


class Cards(NamedTuple):
    cards: Sequence[Card]


class Table(NamedTuple):
    """The first cell of a row is its heading."""

    head: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    kind: str = "plain"
    caption: Words = NOTHING


class Picture(NamedTuple):
    """A chart; `file` is the file with its picture."""

    chart: Chart | Rows
    file: str = ""
    caption: Words = NOTHING


class Fold(NamedTuple):
    """What only a reader of the page sees who opens it."""

    words: Words
    blocks: Sequence[Block]


class Article(NamedTuple):
    """Blocks under a heading, of one task."""

    words: Words
    blocks: Sequence[Block]
    kind: str = "task"


class Side(NamedTuple):
    """Blocks side by side where there is room."""

    blocks: Sequence[Block]
    kind: str = "tasks"


class Section(NamedTuple):
    name: str
    words: Words
    blocks: Sequence[Block]


Block = Text | Items | Cards | Table | Picture | Fold | Article | Side


def cells(words: Iterable[Words]) -> list[Cell]:
    return [Cell(each) for each in words]


def tabled(text: Words, head: Iterable[Words], rows: Iterable[Iterable[Words]]) -> Iterator[Block]:
    """A sentence and the table below it."""
    yield Text(text)
    yield Table(cells(head), list(map(cells, rows)))


def merged(row: Sequence[Cell]) -> Iterator[tuple[Cell, int]]:
    """Each cell and how many columns it takes: equal neighbours without a number are one."""
    for cell, alike in itertools.groupby(row):
        count = len(list(alike))
        yield from [(cell, count)] if cell.kind.startswith("none") and not cell.detail.en else [(cell, 1)] * count


def plain(value: Any) -> Any:
    """Blocks as JSON: {"is": "table", "rows": …} without defaults; words that are equal in both languages are one text."""
    if isinstance(value, Words):
        return value.en if value.en == value.zh else value.as_dict()
    if hasattr(value, "_fields"):
        defaults = value._field_defaults
        fields = {
            name: plain(one) for name, one in value._asdict().items() if name not in defaults or one != defaults[name]
        }
        return {"is": type(value).__name__.lower(), **fields} if isinstance(value, Block | Chart | Rows) else fields
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
