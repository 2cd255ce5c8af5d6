"""The section about properties that hold exactly: word order, shifts, decoding, memory, largest position."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any

from posenc.catalogue import lookup
from posenc.lab.experiment.arm import encoding_of
from posenc.lab.findings.property_sentences import small
from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import because, numbered
from posenc.lab.report.cells import Findings, reason
from posenc.lab.report.html import span, table, tag
from posenc.lab.report.words import phrase
from posenc.lab.trial.fp64_properties import SAME
from posenc.lab.trial.training import CAUSAL_ONLY

Row = Mapping[str, Any]


def properties(findings: Findings) -> str:
    """The section; empty if the properties were not measured."""
    measured, size = findings["properties"], findings["size"]
    if not measured:
        return ""
    columns: dict[str, Callable[[Row], str]] = {
        "bidirectional": lambda row: _order(row["order"]["bidirectional"]),
        "causal": lambda row: _order(row["order"]["causal"]),
        "shift": lambda row: _holds(row["shift"]),
        "decode": lambda row: _holds(row["decode"]),
        "parameters": lambda row: f"{row['parameters']:,}",
        "bytes": lambda row: f"{4 * row['parameters']:,}",
        "tables": lambda row: f"{row['table_bytes_per_token']:,.0f}",
        "largest": lambda row: _largest(row),
        "sites": lambda row: ", ".join(site.lower() for site in row["sites"]) or "–",
    }

    def cells(row: Row) -> list[str]:
        if "failed" in row:
            return [f'<td class="none" colspan="{len(columns)}">{span(reason(row["failed"]))}</td>']
        return [f"<td>{write(row)}</td>" for write in columns.values()]

    head = [span(phrase("encoding")), *(span(phrase(f"property {name}")) for name in columns)]
    body = [[span(title(name)) + f"<small>{_formula(name)}</small>", *cells(row)] for name, row in measured["rows"].items()]
    without = {kind: small(value) for kind, value in measured["order_without"].items()}
    layers, heads = numbered(size["n_layers"], "layer", "layers"), numbered(size["n_heads"], "head", "heads")
    text = phrase("properties text", **without, d_model=size["d_model"], heads=heads, layers=layers)
    return tag("p", text) + table("facts", head, body)


def _formula(name: str) -> str:
    entry = lookup.BY_NAME.get(encoding_of(name))
    return "" if entry is None else html.escape(entry.formula)


def _order(value: float | None) -> str:
    if value is None:
        return span(because(CAUSAL_ONLY))
    return f'<span class="no">{small(value)}</span>' if value <= SAME else small(value)


def _holds(difference: float) -> str:
    kind = "yes" if difference <= SAME else "no"
    return f'<span class="{kind}">{span(phrase(kind))}</span> <small>{small(difference)}</small>'


def _largest(row: Row) -> str:
    """The largest position as text; "0…" comes first if positions may not be negative."""
    top = row["largest_position"]
    position = span(phrase("any")) if top is None else str(top)
    return f"0…{position}" if row["from_zero"] else position
