"""`posenc walk`: what the founding notes describe, row by row, and their worked examples; in the terminal, or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.explorer.say import say
from posenc.support.languages import Language
from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo_json, print_chinese
from posenc.terminal.sparkline import BLOCKS, sparkline

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from posenc.explorer.figures import Figures
    from posenc.learn.ledger import Row

WIDTH = 78
WIDE = 7  # characters of one value


def command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[ROW | EXAMPLE]", help="S1 … S21, or components, rope, sum, attention.", show_default=False
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Figures and steps as JSON, both languages.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """What the founding notes describe, in 21 rows, and their worked examples.

    Without an argument it lists the rows, each with a command and the address that shows it in the explorer.

    S1 … S21     one row: the example of the notes and its figures
    components   the components of PE(2), with 8 and with 4 channels
    rope         人工 智能 正在 快速 发展: RoPE scores of 正在 with every word
    sum          猫 吃 鱼: word + position, base 100
    attention    我 喜欢 猫: self-attention by hand, and the same for the reversed sentence

    Where the number printed in a note is wrong, an example shows both: printed → correct.

    Examples:  posenc walk S13   ·   posenc walk attention   ·   posenc walk rope --lang zh   ·   posenc walk --json
    """
    from posenc.learn.ledger import EXAMPLES, ROWS

    row = what.upper()
    if what and row not in ROWS and what not in EXAMPLES:
        raise typer.BadParameter(
            f"expected one of {', '.join(EXAMPLES)}, or a row of S1 to S{len(ROWS)}, got {what!r}", param_hint="WHAT"
        )
    language = chosen_language(lang)
    rows = [ROWS[row]] if row in ROWS else [] if what else list(ROWS.values())
    examples = [] if row in ROWS else [EXAMPLES[what]] if what else list(EXAMPLES.values())
    if as_json:
        from posenc.learn.printed import as_data

        content = {"rows": [_row_as_data(row) for row in rows], "examples": [as_data(example) for example in examples]}
        echo_json(content, indent=1)
        return
    from rich.console import Console

    from posenc.learn.printed import rendered

    print_chinese()  # the words of the notes, in both languages
    console = Console(highlight=False, emoji=False)
    if not what:
        parts = _listed(rows, language)
    elif rows:
        parts = _rendered(rows[0], language)
    else:
        parts = rendered(examples[0], language)
    for part in parts:
        console.print(part)


def _row_as_data(row: Row) -> dict[str, Any]:
    from posenc.explorer.figures import FIGURES

    return {
        "name": row.name,
        "title": row.title.as_dict(),
        "says": row.says.as_dict(),
        "notes": row.notes,
        "command": row.command,
        "page": f"#{row.name}",
        "view": row.view,
        "figures": FIGURES[row.name]().as_dict(),
        "claims": [claim.id for claim in row.claims],
    }


def _listed(rows: Iterable[Row], language: Language) -> list[RenderableType]:
    """All rows, each in two lines: what it is; its command and its address on the page."""
    from rich.table import Table

    from posenc.terminal.wrapped import Wrapped

    table = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(f"[cyan]{row.name}[/]", Wrapped(row.title.in_language(language)))
        table.add_row("", Wrapped(f"{row.command}   ·   posenc explore {row.name}   ·   #{row.name}", "dim"))
    more = say(
        "posenc walk S13 prints a row with its figures, posenc explore S13 shows it; #S13 stands behind its address. "
        "posenc walk components, rope, sum and attention compute the worked examples."
    )
    return [table, "", Wrapped(more.in_language(language))]


def _rendered(row: Row, language: Language) -> list[RenderableType]:
    """One row: what it is, what is so, the figures, the claims about it, and where more is to be seen."""
    from rich.padding import Padding
    from rich.rule import Rule
    from rich.text import Text

    from posenc.explorer.figures import FIGURES
    from posenc.learn.commands.claims import table
    from posenc.learn.notes import FILES
    from posenc.terminal.wrapped import Wrapped

    source, figures = say("note").in_language(language), FIGURES[row.name]()
    return [
        Rule(f"[bold]{row.name}  {row.title.in_language(language)}[/]", align="left", style="cyan"),
        Text(f"{source} {', '.join(FILES[note] for note in row.notes)}", style="dim"),
        "",
        Wrapped(row.says.in_language(language)),
        "",
        *_drawn(figures, language),
        *(part for rows in figures.tables() for part in (Padding(_table(rows, language), (0, 0, 0, 2), expand=False), "")),
        *([table([(claim, claim.check()) for claim in row.claims], language)] if row.claims else []),
        Text(f"{row.command}   ·   posenc explore {row.name}", style="cyan"),
    ]


def _drawn(figures: Figures, language: Language) -> list[RenderableType]:
    """Of every row its curve, in bars from the lowest value of all rows to the highest; `·` where there is no value."""
    from rich.table import Table

    from posenc.explorer.figures import words

    if not figures.curves:
        return []
    values = [value for curve in figures.curves for value in curve if value is not None]
    low, high = min(values), max(values)
    table = Table.grid(padding=(0, 2, 0, 2))
    table.add_row("", "".join(f"{factor:g}×".ljust(WIDE) for factor in figures.at))
    for (name, _), curve in zip(figures.rows, figures.curves, strict=True):
        table.add_row(words(name).in_language(language), sparkline(curve, low, high, WIDE))
    table.add_row("", f"{BLOCKS[0]} {low:.2f}   {BLOCKS[-1]} {high:.2f}")
    return [table, ""]


def _table(figures: Figures, language: Language) -> RenderableType:
    """The figures; wider than a terminal, with rows and columns changed."""
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table

    from posenc.explorer.figures import words

    heads = ["", *(words(column).in_language(language) for column in figures.columns)]
    empty = ("",) * len(heads)
    lines = [
        heads,
        *(
            [*(words(cell).in_language(language) for cell in (name, *cells)), *empty][: len(heads)]
            for name, cells in figures.rows
        ),
    ]
    if sum(max(map(cell_len, column)) + 2 for column in zip(*lines, strict=True)) > WIDTH and len(lines) < len(heads):
        lines = [list(column) for column in zip(*lines, strict=True)]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 0, 0, 1))
    table.add_column(lines[0][0], style="dim")
    for head in lines[0][1:]:
        table.add_column(head, justify="right")
    for line in lines[1:]:
        table.add_row(*line)
    return table
