"""The report's tables and sentences in a terminal; what explains them stands on the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text as Line

from posenc.lab.report.chart import NOTHING
from posenc.lab.report.document import Article, Block, Cards, Cell, Fold, Items, Picture, Section, Side, Table, Text
from posenc.lab.report.style import shaded
from posenc.lab.say import say
from posenc.support.languages import Language
from posenc.terminal.wrapped import Wrapped

if TYPE_CHECKING:
    from rich.console import Console

CARD = say("→ {need}: {pick} ({why})")
COLOURS = {"stays": "green", "fades": "yellow", "breaks": "red", "yes": "green", "no": "red"}


def show(sections: Sequence[Section], console: Console, language: Language) -> None:
    for section in sections:
        console.print(Line(section.words.in_language(language), style="bold"))
        _print(section.blocks, console, language)
        console.print()


def _print(blocks: Sequence[Block], console: Console, language: Language) -> None:
    for block in blocks:
        match block:
            case Text(words, kind) if kind:
                console.print(Wrapped(words.in_language(language), "dim"))
            case Items(words):
                for each in words:
                    console.print(Wrapped("· " + each.in_language(language)))
            case Cards(cards):
                for card in cards:
                    console.print(Wrapped(CARD.filled(**card._asdict()).in_language(language)))
            case Table():
                _table(block, console, language)
            case Article(words, inner):
                console.print(Line(words.in_language(language), style="bold"))
                _print(inner, console, language)
            case Side(inner):
                _print(inner, console, language)
            case Text() | Fold() | Picture():
                pass


def _table(table: Table, console: Console, language: Language) -> None:
    """The table, in several where it is wider than the terminal, then why cells have no number."""
    head = [_line(cell, "\n", language) for cell in table.head]
    rows = [[_line(cell, " ", language, detail=True) for cell in row] for row in table.rows]
    if sum(widths := _widths(head, rows)) > console.width:
        rows = [[_line(cell, " ", language) for cell in row] for row in table.rows]
        widths = _widths(head, rows)
    for columns in _fitting(widths, console.width):
        grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for n in columns:
            grid.add_column(head[n], justify="right" if n else "left", overflow="fold", min_width=widths[n] - 1)
        for row in rows:
            grid.add_row(*(row[n] for n in columns))
        console.print(grid)
    for cells in table.rows:
        for why in dict.fromkeys(cell.words for cell in cells if _reason(cell)):
            console.print(Wrapped(f"{cells[0].words.in_language(language)}: {why.in_language(language)}", "dim"))


def _line(cell: Cell, between: str, language: Language, detail: bool = False) -> Line:
    """The text of a cell in the colours of the page, and beside it what is small."""
    words = cell.words.in_language(language)
    style = next((colour for kind, colour in COLOURS.items() if kind in cell.kind.split()), "")
    if cell.shade is not None:
        background, colour = shaded(cell.shade)
        style = f"{colour} on {background}"
    elif cell.kind.startswith("none"):
        words, style = re.split("[:：]", words)[0], "dim"
    beside = [part for part in (cell.small, cell.detail if detail else NOTHING) if part.en]
    return Line.assemble((words, style), *((between + part.in_language(language), "dim") for part in beside))


def _reason(cell: Cell) -> bool:
    """Whether the cell says at length why it has no number."""
    return cell.kind.startswith("none") and ":" in cell.words.en


def _widths(head: Sequence[Line], rows: Sequence[Sequence[Line]]) -> list[int]:
    """The width of each column and the space behind it; headings wrap between words."""
    columns = zip(head, *rows, strict=True)
    return [1 + max(map(cell_len, [*top.plain.split(), *(line.plain for line in below)])) for top, *below in columns]


def _fitting(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """The numbers of the columns in groups that fit into a terminal, each after the first column."""
    group = [0]
    for n in range(1, len(widths)):
        if len(group) > 1 and sum(widths[m] for m in (*group, n)) > room + 1:
            yield group
            group = [0]
        group.append(n)
    yield group
