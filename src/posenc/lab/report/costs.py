"""The section about cost: time of every encoding relative to no encoding, one panel for each kind of call."""

from __future__ import annotations

from collections.abc import Iterator

from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import numbered
from posenc.lab.report.cells import Findings, arms_of
from posenc.lab.report.chart import Row, Rows
from posenc.lab.report.document import Block, Picture, Side, Text
from posenc.lab.report.words import phrase, same

KINDS = ("prefill", "decode", "training")


def blocks(findings: Findings) -> Iterator[Block]:
    """Nothing if no cost was measured."""
    cost, names = findings["cost"], arms_of(findings)
    timed = [name for name in names if cost and name in cost["rows"]]
    if not timed:
        return
    sizes, trained = cost["sizes"], cost["sizes"]["training"]
    yield Text(
        phrase(
            "cost text",
            rounds=cost["rounds"],
            d_model=sizes["d_model"],
            heads=numbered(sizes["n_heads"], "head", "heads"),
            batch=trained["batch"],
            length=trained["length"],
            trained_d_model=trained["d_model"],
            layers=numbered(trained["n_layers"], "layer", "layers"),
        )
    )
    panels = []
    for kind in KINDS:
        words = phrase(f"cost {kind}", prompt=sizes["prompt"])
        of_kind = {name: cost["rows"][name][kind] for name in timed}
        rows = [
            Row(title(name), name, *(of_kind[name][part] for part in ("median", "low", "high")))
            for name in sorted(of_kind, key=lambda name: of_kind[name]["median"])
        ]
        panels.append(Picture(Rows(rows, phrase("cost axis"), words, [(1.0, same("1×"))], log=True), caption=words))
    yield Side(panels, "panels")
