"""The section about cost: time of every encoding relative to no encoding, one panel for each kind of call."""

from __future__ import annotations

from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import numbered
from posenc.lab.report import svg
from posenc.lab.report.cells import Findings, arms_of
from posenc.lab.report.html import tag
from posenc.lab.report.style import look
from posenc.lab.report.words import phrase

KINDS = ("prefill", "decode", "training")


def costs(findings: Findings) -> str:
    """The section; empty if no cost was measured."""
    cost = findings["cost"]
    names = arms_of(findings)
    if not cost or not cost["rows"].keys() & set(names):
        return ""
    sizes = cost["sizes"]

    def panel(kind: str) -> str:
        words = phrase(f"cost {kind}", prompt=sizes["prompt"])
        timed = {name: cost["rows"][name][kind] for name in names if name in cost["rows"]}
        rows = [
            svg.Ratio(title(name), look(name, names).classes, *(timed[name][part] for part in ("low", "median", "high")))
            for name in sorted(timed, key=lambda name: timed[name]["median"])
        ]
        drawn = svg.ratios(rows, width=370, described=words)
        return f"<figure>{tag('figcaption', words)}{drawn}</figure>"

    trained = sizes["training"]
    text = phrase(
        "cost text",
        rounds=cost["rounds"],
        d_model=sizes["d_model"],
        heads=numbered(sizes["n_heads"], "head", "heads"),
        batch=trained["batch"],
        length=trained["length"],
        trained_d_model=trained["d_model"],
        layers=numbered(trained["n_layers"], "layer", "layers"),
    )
    return tag("p", text) + f'<div class="panels">{"".join(map(panel, KINDS))}</div>'
