"""The table of word-order sensitivity, exact properties and cost per encoding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from posenc.lab.say import say
from posenc.support.languages import Language, Words

if TYPE_CHECKING:
    from rich.console import Console

FIRST = 15  # width of the names, as long as rope+randomized
TABLES = "table_bytes_per_token"
Row = Mapping[str, Any]


class Column(NamedTuple):
    """One column. `cell` returns the text for an encoding, empty if nothing was measured."""

    title: str
    width: int
    cell: Callable[[str], Text]


def show(findings: Mapping[str, Any], console: Console, language: Language) -> None:
    """One table if it fits the width, otherwise several."""
    names = list(dict.fromkeys(arm["name"] for task in findings["tasks"] for arm in task["arms"]))
    groups = []
    if findings["properties"]:
        groups += [_order(findings["properties"], language), _exact(findings["properties"]["rows"], language)]
    if findings["cost"]:
        groups.append(_cost(findings["cost"]["rows"], language))
    for columns in _fitting(groups, console.width):
        console.print(_table(columns, names, language))
        console.print()


def _fitting(groups: list[list[Column]], width: int) -> list[list[Column]]:
    """Groups of columns, each as wide as fits."""
    lines: list[list[Column]] = []
    for group in groups:
        if lines and FIRST + sum(column.width + 1 for column in [*lines[-1], *group]) <= width:
            lines[-1] = [*lines[-1], *group]
        else:
            lines.append(group)
    return lines


def _table(columns: list[Column], names: list[str], language: Language) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(say("encoding").in_language(language), min_width=FIRST, no_wrap=True)
    for column in columns:
        table.add_column(column.title, min_width=column.width, justify="right", no_wrap=True)
    for name in names:
        table.add_row(name, *(column.cell(name) for column in columns))
    return table


def _order(properties: Mapping[str, Any], language: Language) -> list[Column]:
    from posenc.lab.findings.property_sentences import small

    titles = {"bidirectional": say("order, both ways\n(without: {})"), "causal": say("order, causal\n(without: {})")}

    def column(kind: str, words: Words) -> Column:
        def write(row: Row) -> Text:
            value = row["order"][kind]
            only = Text(say("causal only", context="column").in_language(language), style="dim")
            return only if value is None else Text(small(value))

        title = words.in_language(language).format(small(properties["order_without"][kind]))
        return Column(title, 16, _of(properties["rows"], write))

    return [column(kind, words) for kind, words in titles.items()]


def _exact(rows: Mapping[str, Row], language: Language) -> list[Column]:
    def title(words: Words) -> str:
        return words.in_language(language)

    def held(name: str) -> Callable[[str], Text]:
        return _of(rows, lambda row: _holds(row[name], language))

    return [
        Column(title(say("shift\ninvariant")), 9, held("shift")),
        Column(title(say("decode =\nprefill")), 9, held("decode")),
        Column(title(say("para-\nmeters")), 6, _of(rows, lambda row: Text(f"{row['parameters']}"))),
        Column(title(say("bytes/\ntoken")), 7, _of(rows, lambda row: Text(f"{row['table_bytes_per_token']:.0f}"))),
        Column(title(say("largest\nposition")), 8, _of(rows, lambda row: Text(largest(row, language)))),
    ]


def _holds(difference: float, language: Language) -> Text:
    from posenc.lab.findings.property_sentences import small
    from posenc.lab.trial.fp64_properties import SAME

    holds = difference <= SAME
    word = (say("yes") if holds else say("no")).in_language(language)
    return Text(f"{word} {small(difference)}", style="green" if holds else "red")


def largest(row: Row, language: Language) -> str:
    """The largest position, prefixed by 0 if positions may not be negative."""
    top = row["largest_position"]
    largest_position = say("any").in_language(language) if top is None else str(top)
    return f"0…{largest_position}" if row["from_zero"] else largest_position


def _cost(rows: Mapping[str, Row], language: Language) -> list[Column]:
    titles = {"prefill": say("prefill\n× NoPE"), "decode": say("decode\n× NoPE"), "training": say("training\n× NoPE")}

    def column(kind: str, words: Words) -> Column:
        def write(row: Row) -> Text:
            from posenc.lab.report.cells import times

            low, median, high = (times(row[kind][part]) for part in ("low", "median", "high"))
            return Text.assemble(f"{median} ", (f"{low}–{high}", "dim"))

        return Column(words.in_language(language), 14, _of(rows, write))

    return [column(kind, words) for kind, words in titles.items()]


def _of(rows: Mapping[str, Row], write: Callable[[Row], Text]) -> Callable[[str], Text]:
    """A function that formats an encoding's row with `write`, or gives the reason of its failure."""

    def cell(name: str) -> Text:
        row = rows.get(name)
        if row is None:
            return Text("–", style="dim")
        return Text(row["failed"].partition(":")[0], style="red") if "failed" in row else write(row)

    return cell
