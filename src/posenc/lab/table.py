"""The comparison as a table in the terminal: one where it fits, otherwise its parts one below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from posenc.lab.prose import factor, largest, small, times
from posenc.lab.trial.fp64_properties import SAME
from posenc.lab.verdict import NOT_LEARNT, behaviour

Row = Mapping[str, Any]

COLOURS = {"flat": "green", "fades": "yellow", "breaks": "red"}
NAME = 15  # as long as rope+randomized


class Column(NamedTuple):
    title: str
    width: int
    cell: Callable[[Row], Text]


def show(done: Mapping[str, Any], console: Console) -> None:
    for columns in _fitting([_order(done), _exact(), _cost(), _bits(done)], console.width):
        console.print(_table(columns, done["rows"]))
        console.print()
    for line in _legend(done):
        console.print(Text(line, style="dim"))


def _fitting(groups: list[list[Column]], width: int) -> list[list[Column]]:
    """Groups side by side as long as they fit."""
    lines: list[list[Column]] = []
    for group in groups:
        if lines and NAME + sum(column.width + 1 for column in [*lines[-1], *group]) <= width:
            lines[-1] = [*lines[-1], *group]
        else:
            lines.append(group)
    return lines


def _table(columns: list[Column], rows: list[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("encoding", min_width=NAME, no_wrap=True)
    for column in columns:
        table.add_column(column.title, min_width=column.width, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row["name"], *(column.cell(row) for column in columns))
    return table


def _order(done: Mapping[str, Any]) -> list[Column]:
    def cell(kind: str) -> Callable[[Row], Text]:
        return lambda row: _measured(row, "exact", lambda exact: _sensitivity(exact["order"][kind]))

    without = {kind: small(value) for kind, value in done["order_without"].items()}
    return [
        Column(f"order, both ways\n(without: {without['bidirectional']})", 16, cell("bidirectional")),
        Column(f"order, causal\n(without: {without['causal']})", 15, cell("causal")),
    ]


def _sensitivity(value: float | None) -> Text:
    return Text("causal only", style="dim") if value is None else Text(small(value))


def _exact() -> list[Column]:
    def of(write: Callable[[Mapping[str, Any]], Text]) -> Callable[[Row], Text]:
        return lambda row: _measured(row, "exact", write)

    return [
        Column("shift\ninvariant", 9, of(lambda exact: _holds(exact["shift"]))),
        Column("decode =\nprefill", 9, of(lambda exact: _holds(exact["decode"]))),
        Column("para-\nmeters", 6, of(lambda exact: Text(str(exact["parameters"])))),
        Column("bytes a\ntoken", 7, of(lambda exact: Text(f"{exact['table_bytes_per_token']:.0f}"))),
        Column("largest\nposition", 8, of(lambda exact: Text(largest(exact)))),
    ]


def _holds(value: float) -> Text:
    holds = value <= SAME
    return Text(f"{'yes' if holds else 'no'} {small(value)}", style="green" if holds else "red")


def _cost() -> list[Column]:
    def cell(kind: str) -> Callable[[Row], Text]:
        def write(cost: Mapping[str, Any]) -> Text:
            ratio = {name: times(value) for name, value in cost[kind].items()}
            return Text.assemble(f"{ratio['median']} ", (f"{ratio['low']}–{ratio['high']}", "dim"))

        return lambda row: _measured(row, "cost", write)

    return [Column(f"{kind}\n× NoPE", 14, cell(kind)) for kind in ("prefill", "decode", "training")]


def _measured(row: Row, part: str, write: Callable[[Mapping[str, Any]], Text]) -> Text:
    """What `write` makes of a part of the row; where there is none, why."""
    return _word(row["trials"][0].get("state", "failed")) if row[part] is None else write(row[part])


def _bits(done: Mapping[str, Any]) -> list[Column]:
    first = done["recipe"]["length"]

    def cell(length: int) -> Callable[[Row], Text]:
        def write(row: Row) -> Text:
            value = row["bits"][str(length)]
            if "state" in value:
                return _word(value["state"])
            rise = None if length == first else row["rise"].get(str(length))
            seeds = " ".join(f"{bits:.2f}" for bits in value["seeds"])
            return Text.assemble((f"{value['mean']:.2f} ", COLOURS.get(behaviour(rise) or "", "")), (seeds, "dim"))

        return write

    columns = [Column(f"{length} bytes\n{length // first}×", 14, cell(length)) for length in done["recipe"]["lengths"]]
    return [*columns, Column("flat\nto", 4, lambda row: Text(factor(row)))]


def _word(state: str) -> Text:
    """not learnt, cannot or failed; the line below the table says more."""
    return Text("not learnt", style="dim") if state == NOT_LEARNT else Text(state.split(":")[0], style="red")


def _legend(done: Mapping[str, Any]) -> Iterator[str]:
    gate, recipe = done["gate"], done["recipe"]
    yield (
        f"bits per byte of the same last {recipe['targets']} bytes of each window, mean and every seed; "
        f"trained {done['steps']} steps at {recipe['length']} bytes; "
        f"{len(done['settings']['seeds'])} seeds: exploratory"
    )
    yield f"green: up to {gate['flat']:g} bits worse than at the trained length; red: {gate['breaks']:g} or more"
    if gate["best"] is not None:
        yield (
            f"not learnt: more than {gate['margin']:g} bits above {gate['best']}, the best at the trained length, or no "
            f"better than a table of byte pairs ({done['byte_pairs']:.2f})"
        )
    for row in done["rows"]:
        states = {cell.get("state", NOT_LEARNT) for cell in row["bits"].values()} - {NOT_LEARNT}
        for state in sorted(states):
            yield f"{row['name']} {state}"
