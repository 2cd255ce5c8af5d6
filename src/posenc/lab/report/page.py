"""The report as one HTML file (page.html.j2) that loads nothing from the network: light and dark, both languages."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from posenc.lab.report.cells import Findings
from posenc.lab.report.document import merged
from posenc.lab.report.sections import lead, sections
from posenc.lab.report.style import shaded, sheet
from posenc.lab.report.words import phrase

if TYPE_CHECKING:
    from jinja2 import Template


def page(findings: Findings) -> str:
    """The whole file. Its policy allows only its script."""
    script = _read("report.js")
    told = {"name": findings["name"], "title": phrase("title"), "lead": lead(findings), "contents": phrase("contents")}
    return _template().render(
        **told,
        sections=sections(findings),
        style=_read("charts.css") + _read("report.css") + sheet(),
        script=script,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _read(name: str) -> str:
    return files("posenc.lab.report").joinpath(name).read_text("utf-8")


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    made = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    made.filters |= {"merged": merged, "heat": heat, "kind": lambda block: type(block).__name__}
    return made.from_string(_read("page.html.j2"))


def heat(shade: float) -> str:
    """The style of a cell of a heat map."""
    background, colour = shaded(shade)
    return f"background:{background};color:{colour}"
