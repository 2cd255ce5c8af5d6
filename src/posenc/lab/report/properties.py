"""The section about properties that hold exactly: word order, shifts, decoding, memory, largest position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from posenc.catalogue import lookup
from posenc.lab.experiment.arm import encoding_of
from posenc.lab.findings.property_sentences import small
from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import because, numbered
from posenc.lab.report.cells import Findings, reason
from posenc.lab.report.chart import NOTHING
from posenc.lab.report.document import Block, Cell, Table, Text, cells
from posenc.lab.report.words import phrase, same
from posenc.lab.trial.fp64_properties import SAME
from posenc.lab.trial.training import CAUSAL_ONLY
from posenc.support.languages import Words, joined

Row = Mapping[str, Any]


COLUMNS: dict[str, Callable[[Row], Cell]] = {
    "bidirectional": lambda row: _order(row["order"]["bidirectional"]),
    "causal": lambda row: _order(row["order"]["causal"]),
    "shift": lambda row: _holds(row["shift"]),
    "decode": lambda row: _holds(row["decode"]),
    "parameters": lambda row: Cell(same(f"{row['parameters']:,}")),
    "bytes": lambda row: Cell(same(f"{4 * row['parameters']:,}")),
    "tables": lambda row: Cell(same(f"{row['table_bytes_per_token']:,.0f}")),
    "largest": lambda row: Cell(_largest(row)),
    "sites": lambda row: Cell(same(", ".join(site.lower() for site in row["sites"]) or "–")),
}


def blocks(findings: Findings) -> Iterator[Block]:
    """Nothing if the properties were not measured."""
    if measured := findings["properties"]:
        size, without = findings["size"], {kind: small(value) for kind, value in measured["order_without"].items()}
        layers, heads = numbered(size["n_layers"], "layer", "layers"), numbered(size["n_heads"], "head", "heads")
        yield Text(phrase("properties text", **without, d_model=size["d_model"], heads=heads, layers=layers))
        head = cells([phrase("encoding"), *(phrase(f"property {name}") for name in COLUMNS)])
        yield Table(
            head, [[Cell(title(name), _formula(name)), *_row(row)] for name, row in measured["rows"].items()], "facts"
        )


def _row(row: Row) -> list[Cell]:
    if "failed" in row:
        return [Cell(reason(row["failed"]), kind="none")] * len(COLUMNS)
    return [write(row) for write in COLUMNS.values()]


def _formula(name: str) -> Words:
    entry = lookup.BY_NAME.get(encoding_of(name))
    return NOTHING if entry is None else same(entry.formula)


def _order(value: float | None) -> Cell:
    if value is None:
        return Cell(because(CAUSAL_ONLY))
    return Cell(same(small(value)), kind="no" if value <= SAME else "")


def _holds(difference: float) -> Cell:
    kind = "yes" if difference <= SAME else "no"
    return Cell(phrase(kind), same(small(difference)), kind=kind)


def _largest(row: Row) -> Words:
    """The largest position; "0…" comes first if positions may not be negative."""
    top = row["largest_position"]
    position = phrase("any") if top is None else same(top)
    return joined([same("0…"), position], "", "") if row["from_zero"] else position
