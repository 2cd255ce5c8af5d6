"""The report as Markdown in one language: the blocks of the page, with pictures as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from posenc.lab.report.cells import Findings
from posenc.lab.report.document import Article, Block, Cards, Cell, Fold, Items, Picture, Side, Table, Text, merged
from posenc.lab.report.pictures import ENDING
from posenc.lab.report.sections import lead, sections
from posenc.lab.report.words import phrase
from posenc.support.languages import Language, Words


def markdown(findings: Findings, language: Language) -> str:
    parts = [f"# {_md(phrase('title'), language)}", _md(lead(findings), language)]
    for section in sections(findings):
        parts += [f"## {_md(section.words, language)}", *_printed(section.blocks, language)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _printed(blocks: Sequence[Block], language: Language) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(words, kind):
                yield f"*{_md(words, language)}*" if kind == "small" else _md(words, language)
            case Items(sentences):
                yield "\n".join(f"- {_md(sentence, language)}" for sentence in sentences)
            case Cards(cards):
                told = ([_md(words, language) for words in card] for card in cards)
                yield "\n".join(f"- {need}: **{pick}** ({why})" for need, pick, why in told)
            case Table(head, rows):
                yield grid(
                    [_cell(cell, language) for cell in head] or [""] * len(rows[0]),
                    [list(_row(row, language)) for row in rows],
                )
            case Picture(chart, file) if file:
                yield f"![{_md(chart.described, language)}]({file}{ENDING[language]}.svg)"
            case Article(words, inner):
                yield f"### {_md(words, language)}"
                yield from _printed(inner, language)
            case Side(inner):
                yield from _printed(inner, language)
            case Fold() | Picture():
                pass


def _row(row: Sequence[Cell], language: Language) -> Iterator[str]:
    """What spans several columns stands in the first of them."""
    for cell, columns in merged(row):
        yield from (_cell(cell, language), *[""] * (columns - 1))


def _cell(cell: Cell, language: Language) -> str:
    return _md(cell.words, language) + (f" ({_md(cell.small, language)})" if cell.small.en else "")


def grid(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _md(words: Words, language: Language) -> str:
    """The text with characters escaped that mean something in Markdown or HTML."""
    flat = " ".join(words.in_language(language).split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join("\\" + letter if letter in r"\`*_[]|" else letter for letter in flat)
