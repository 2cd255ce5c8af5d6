"""`posenc lab publish`: writes one zip file of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posenc.terminal.interruption import interruptible
from posenc.terminal.output import echo


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that posenc lab run has written.")],
    out: Annotated[Path, typer.Option(metavar="NAME.zip", help="The new file.", show_default=False)],
    author: Annotated[
        list[str],
        typer.Option(help="An author for CITATION.cff: 'Family, Given', or one name. Repeatable.", show_default=False),
    ],
) -> None:
    """Write one zip file: report, results, configuration, requirements, citation, and how to repeat any trial.

    Every posenc lab command reads the folder that it unpacks to. The report is in English and Chinese, the trials are
    Parquet. posenc lab repeat TRIAL --in NAME trains one model again and compares its scores to a stated tolerance.

    Examples:  posenc lab publish lab-quick --out encodings-compared.zip --author 'Noether, Emmy'
    """
    with interruptible("nothing was published; the same command starts anew"):
        from posenc.lab.commands.folder import opened
        from posenc.lab.findings.assemble import findings
        from posenc.lab.report.publication import first_trial, publish

        results, _ = opened(folder, "DIR")
        data = findings(folder)
        publish(results, data, out, author)
    echo(f"{out}: unzip it, then posenc lab repeat {first_trial(data)} --in {out.stem}")
