"""The worked examples in the terminal, or as data, as `posenc walk` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from posenc.learn.notes import FILES
from posenc.learn.say import say
from posenc.support.languages import Language, Words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from posenc.learn.ledger import Example
    from posenc.learn.walk import Step

DIGITS = 4


def as_data(example: Example) -> dict[str, Any]:
    """One example as JSON data."""
    return {
        "name": example.name,
        "title": example.title.as_dict(),
        "notes": [FILES[note] for note in example.notes],
        "steps": [_step_as_data(step) for step in example.steps()],
    }


def _step_as_data(step: Step) -> dict[str, Any]:
    return {
        "title": step.title.as_dict(),
        "formula": step.formula,
        "rows": step.rows,
        "columns": step.columns,
        "matrix": step.matrix,
        "printed_in_the_note": step.printed or None,
        "slips": [
            {
                "row": step.rows[slip.row],
                "column": step.columns[slip.column],
                "printed": slip.printed,
                "right": slip.right,
                "truncated": slip.truncated,
            }
            for slip in step.slips
        ],
        "remark": step.remark.as_dict() if step.remark else None,
    }


def rendered(example: Example, language: Language) -> list[RenderableType]:
    """One example for the terminal: a rule, then the title, formula, matrix and remark of every step."""
    from rich.padding import Padding
    from rich.rule import Rule
    from rich.text import Text

    from posenc.terminal.wrapped import Wrapped

    source = say("note").in_language(language)
    parts: list[RenderableType] = [
        Rule(f"[bold]{example.title.in_language(language)}[/]", align="left", style="cyan"),
        Text(f"{source} {', '.join(FILES[note] for note in example.notes)}", style="dim"),
    ]
    for number, step in enumerate(example.steps(), 1):
        head = Text.assemble(
            (f"{number:>3}  ", "cyan"), (step.title.in_language(language), "bold"), "   ", (step.formula, "cyan")
        )
        parts += ["", head, Padding(_matrix(step), (0, 0, 0, 5), expand=False)]
        below = [verdict.in_language(language)] if (verdict := _slips_in_words(step)) else []
        below += [step.remark.in_language(language)] if step.remark else []
        parts += [Padding(Wrapped(line, "italic"), (0, 0, 0, 5), expand=False) for line in below]
    return [*parts, ""]


def _matrix(step: Step) -> RenderableType:
    """The matrix with equal decimals, at most four. Where the note differs: printed → correct."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 0, 0, 1))
    table.add_column("", style="dim")
    for column in step.columns:
        table.add_column(column, justify="right", no_wrap=True)
    needed = max(_decimals(entry) for row in step.matrix for entry in row)
    decimals = [0 if _counts(column) else needed for column in zip(*step.matrix, strict=True)]
    printed = {(slip.row, slip.column): slip.printed for slip in step.slips}
    for r, (label, row) in enumerate(zip(step.rows, step.matrix, strict=True)):
        cells = []
        for c, entry in enumerate(row):
            wrong = printed.get((r, c))
            digits = max(decimals[c], len(wrong.partition(".")[2]) if wrong else 0)
            right = f"{entry:.{digits}f}"
            cells.append(Text.assemble((wrong, "red"), " → ", (right, "bold green")) if wrong else Text(right))
        table.add_row(label, *cells)
    return table


def _decimals(entry: float) -> int:
    """Number of decimals, at most four, that represent this number exactly."""
    return next((n for n in range(DIGITS) if abs(round(entry, n) - entry) < 1e-12), DIGITS)


def _counts(column: tuple[float, ...]) -> bool:
    """A column such as 1, 10, 100, 1000."""
    return max(column) >= 10 and max(_decimals(entry) for entry in column) == 0


def _slips_in_words(step: Step) -> Words | None:
    if not step.slips:
        return None
    count = sum(1 for row in step.printed for shown in row if shown)
    cut = sum(slip.truncated for slip in step.slips)
    wrong = len(step.slips) - cut
    if wrong and cut:
        return say(
            "The note prints {wrong} of {count} wrong and cuts {cut} off instead of rounding (printed → right).",
            wrong=wrong,
            count=count,
            cut=cut,
        )
    if cut:
        return say("The note cuts {cut} of {count} off instead of rounding (printed → right).", cut=cut, count=count)
    return say("The note prints {wrong} of {count} wrong (printed → right).", wrong=wrong, count=count)
