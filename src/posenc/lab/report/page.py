"""The report as one HTML file that loads nothing from the network: its blocks as data, which the page's script draws.

findings ─► sections ─► JSON ─► web/src/results, also behind the view *measured* of `posenc explore RESULTS`
"""

from __future__ import annotations

from typing import Any

from posenc.lab.report.cells import Findings
from posenc.lab.report.document import plain
from posenc.lab.report.sections import lead, sections
from posenc.lab.report.words import phrase
from posenc.support.page_file import ALONE, digest, document, inline, script, starting


def page(findings: Findings) -> str:
    """The whole file. Its policy allows only its script."""
    code = inline(script("lab/report"))
    running = f'<script type="module">{code}</script>'
    return document(
        f"{starting(as_data(findings))}\n{running}", ALONE.format(script=digest(code)), f"posenc lab: {findings['name']}"
    )


def as_data(findings: Findings) -> dict[str, Any]:
    """The report as JSON: what the page draws."""
    told = {"name": findings["name"], "title": phrase("title"), "lead": lead(findings), "contents": phrase("contents")}
    return {name: plain(words) for name, words in told.items()} | {"sections": plain(sections(findings))}
