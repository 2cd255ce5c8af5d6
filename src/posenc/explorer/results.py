"""A folder of results of the lab, as the view *measured* shows it: the report's blocks."""

from __future__ import annotations

from pathlib import Path

from posenc.explorer.data import Data
from posenc.lab.commands.folder import opened, warn_of_damage
from posenc.lab.findings.assemble import findings
from posenc.lab.report.cells import Findings
from posenc.lab.report.page import as_data

VIEW = "measured"


def results(path: Path) -> tuple[Findings, Data]:
    """Its findings, and the data of the view; damaged trials are named in one line.

    Raises ValueError for a path that is no folder of results, and for results without a score.
    """
    folder, manifest = opened(path, "VIEW")
    warn_of_damage(folder)
    found = findings(path)
    if not any(
        cell["mean"] is not None for task in found["tasks"] for arm in task["arms"] for cell in arm["cells"].values()
    ):
        raise ValueError(f"VIEW: no trial of {path} has a score yet; {manifest['command']} runs them")
    program = f"""from pathlib import Path
from posenc.lab.findings.assemble import findings

found = findings(Path({str(path)!r}))
main = found["tasks"][0]
bits = {{arm["name"]: [cell["mean"] for cell in arm["cells"].values()] for arm in main["arms"]}}"""
    return found, Data({}, program, {"report": as_data(found)})
