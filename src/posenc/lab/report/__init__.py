"""Shows what an experiment found: one HTML file, pictures, CSV tables, and Markdown in both languages.

findings ─► write(findings, directory) ─┬─ index.html             everything, in one file
                                        ├─ *.svg                  curves-TASK, pareto-factor, pareto-area
                                        ├─ *.csv                  cells, summary
                                        └─ report.md, report.zh-CN.md
"""

from __future__ import annotations

from pathlib import Path

from posenc.lab.records.files import write as write_whole
from posenc.lab.report.cells import Findings


def write(findings: Findings, directory: Path) -> list[Path]:
    """Writes each file completely or leaves it unchanged.

    Raises ValueError for findings of another format, OSError if a file cannot be written.
    """
    from posenc.lab.findings.assemble import FORMAT
    from posenc.lab.report.markdown import markdown
    from posenc.lab.report.page import page
    from posenc.lab.report.pictures import pictures
    from posenc.lab.report.tables import tables

    if findings.get("format") != FORMAT:
        raise ValueError(
            f"findings: expected format {FORMAT}, got {findings.get('format')!r}; "
            "write the report with the version of posenc that made them"
        )
    if not findings["tasks"]:
        raise ValueError("findings: expected at least one task, got none")
    files: dict[str, str | bytes] = {"index.html": page(findings)}
    files |= tables(findings)
    files |= {"report.md": markdown(findings, "en"), "report.zh-CN.md": markdown(findings, "zh")}
    files |= pictures(findings)
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(directory / name, content)
    return [directory / name for name in files]
