"""The comparison as a table in the terminal: one where it fits, otherwise its parts one below the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from posenc.lab.exact import SAME
from posenc.lab.verdict import NOT_LEARNT, failed

COLOURS = {"flat": "green", "fades": "yellow", "breaks": "red"}


class Column(NamedTuple):
    title: str
    width: int
    cell: Callable[[Mapping[str, Any]], Text]


def show(done: Mapping[str, Any], console: Console) -> None:
    groups = [_order(done), _exact(), _cost(), _bits(done)]
    for columns in _fitting(groups, console.width):
        console.print(_table(columns, done["rows"]))
    console.print(_legend(done))


def _fitting(groups: list[list[Column]], width: int) -> list[list[Column]]:
    """Groups side by side as long as they fit."""
    lines: list[list[Column]] = []
    for group in groups:
        if lines and _width([*lines[-1], *group]) <= width:
            lines[-1] = [*lines[-1], *group]
        else:
            lines.append(group)
    return lines


NAME = 15


def _width(columns: list[Column]) -> int:
    return NAME + sum(column.width + 1 for column in columns)


def _table(columns: list[Column], rows: list[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("encoding", min_width=NAME, no_wrap=True)
    for column in columns:
        table.add_column(column.title, min_width=column.width, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row["name"], *(column.cell(row) for column in columns))
    return table


def _order(done: Mapping[str, Any]) -> list[Column]:
    without = done["order_without"]

    def cell(kind: str) -> Callable[[Mapping[str, Any]], Text]:
        def of(row: Mapping[str, Any]) -> Text:
            if row["exact"] is None:
                return _failed()
            value = row["exact"]["order"][kind]
            return Text("causal only", style="dim") if value is None else Text(small(value))

        return of

    return [
        Column(f"order, both ways\n(without: {small(without['bidirectional'])})", 16, cell("bidirectional")),
        Column(f"order, causal\n(without: {small(without['causal'])})", 14, cell("causal")),
    ]


def _exact() -> list[Column]:
    def of(write: Callable[[Mapping[str, Any]], Text]) -> Callable[[Mapping[str, Any]], Text]:
        return lambda row: _failed() if row["exact"] is None else write(row["exact"])

    def holds(name: str) -> Callable[[Mapping[str, Any]], Text]:
        def write(exact: Mapping[str, Any]) -> Text:
            value = exact[name]
            return Text(f"yes {small(value)}", style="green") if value <= SAME else Text(f"no {small(value)}", style="red")

        return of(write)

    return [
        Column("shift\ninvariant", 10, holds("shift")),
        Column("decode =\nprefill", 10, holds("decode")),
        Column("para-\nmeters", 6, of(lambda exact: Text(str(exact["parameters"])))),
        Column("bytes a\ntoken", 7, of(lambda exact: Text(f"{exact['table_bytes_per_token']:.0f}"))),
        Column("largest\nposition", 8, of(lambda exact: Text(largest(exact)))),
    ]


def _cost() -> list[Column]:
    def cell(kind: str) -> Callable[[Mapping[str, Any]], Text]:
        def of(row: Mapping[str, Any]) -> Text:
            if row["cost"] is None:
                return _failed()
            ratio = row["cost"][kind]
            return Text.assemble(f"{times(ratio['median'])} ", (f"{times(ratio['low'])}–{times(ratio['high'])}", "dim"))

        return of

    return [Column(f"{kind}\n× NoPE", 14, cell(kind)) for kind in ("prefill", "decode", "training")]


def _bits(done: Mapping[str, Any]) -> list[Column]:
    def cell(length: str) -> Callable[[Mapping[str, Any]], Text]:
        def of(row: Mapping[str, Any]) -> Text:
            value = row["bits"][length]
            if "state" in value:
                short = {NOT_LEARNT: "not learnt"}.get(value["state"], value["state"])
                short = "cannot" if short.startswith("cannot") else "failed" if short.startswith("failed") else short
                return Text(short, style="dim" if short == "not learnt" else "red")
            home = length == str(done["recipe"]["length"])
            colour = "" if home else COLOURS.get(_behaviour(row["rise"].get(length), done["gate"]), "")
            seeds = " ".join(f"{bits:.2f}" for bits in value["seeds"])
            return Text.assemble((f"{value['mean']:.2f} ", colour), (seeds, "dim"))

        return of

    first = done["recipe"]["length"]
    columns = [Column(f"{length} bytes\n{length // first}×", 14, cell(str(length))) for length in done["recipe"]["lengths"]]
    return [*columns, Column("flat\nto", 4, lambda row: Text(factor(row)))]


def _behaviour(rise: float | None, gate: Mapping[str, Any]) -> str:
    if rise is None:
        return ""
    return "flat" if rise <= gate["flat"] else "breaks" if rise >= gate["breaks"] else "fades"


def _legend(done: Mapping[str, Any]) -> RenderableType:
    gate, lines = done["gate"], list[str]()
    lines.append(f"bits per byte on the same {done['recipe']['targets']} last bytes of each window, mean and every seed; "
                 f"trained {done['steps']} steps at {done['recipe']['length']} bytes; {len(done['settings']['seeds'])} seeds: exploratory")  # fmt: skip
    lines.append(f"green: up to {gate['flat']} bits worse than at the trained length; red: {gate['breaks']:g} or more")
    if gate["best"] is not None:
        lines.append(f"not learnt: more than {gate['margin']} bits above {gate['best']}, the best at the trained length, "
                     f"or no better than a table of byte pairs ({gate['byte_pairs']:.2f})")
    if any("state" in cell and cell["state"].startswith("cannot") for row in done["rows"] for cell in row["bits"].values()):
        reasons = sorted({f"{row['name']} {cell['state']}" for row in done["rows"] for cell in row["bits"].values()
                          if cell.get("state", "").startswith("cannot")})  # fmt: skip
        lines.append("; ".join(reasons))
    for name, why in failed(done).items():
        lines.append(f"{name} {why}")
    return Group(*(Text(line, style="dim") for line in lines))


def _failed() -> Text:
    return Text("failed", style="red")


def small(value: float) -> str:
    """Two digits, and rounding error as a power of ten."""
    return "0" if value == 0 else f"{value:.2f}" if value >= 0.005 else f"{value:.0e}"


def times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def largest(exact: Mapping[str, Any]) -> str:
    """0 in front where the encoding knows no negative position."""
    top = "any" if exact["largest_position"] is None else str(exact["largest_position"])
    return f"0…{top}" if exact["from_zero"] else top


def factor(row: Mapping[str, Any]) -> str:
    keeps = row["keeps"]
    return "" if keeps is None else f"≥{keeps['factor']}×" if keeps["at_least"] else f"{keeps['factor']}×"
