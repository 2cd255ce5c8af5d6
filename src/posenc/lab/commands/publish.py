"""`posenc lab publish`: writes one self-contained folder of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posenc.terminal.interruption import interruptible


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that posenc lab run has written.")],
    out: Annotated[Path, typer.Option(help="The new folder.", show_default=False)],
    author: Annotated[
        list[str],
        typer.Option(help="An author for CITATION.cff: 'Family, Given', or one name. Repeatable.", show_default=False),
    ],
) -> None:
    """Write one self-contained folder: report, data, configuration, environment, citation, and how to repeat any cell.

    The results in it are read by every posenc lab command. The report is in English and Chinese, the data is Parquet.
    posenc lab repeat TRIAL --in OUT trains one model again and compares its scores to a stated tolerance.

    Examples:  posenc lab publish lab-quick --out encodings-compared --author 'Noether, Emmy'
    """
    with interruptible("nothing was published; the same command starts anew"):
        from posenc.lab.commands.folder import opened
        from posenc.lab.findings.assemble import findings
        from posenc.lab.report import write
        from posenc.lab.report.paper import write_paper
        from posenc.lab.report.publication import first_trial, new_folder, publish

        results, manifest = opened(folder, "DIR")
        with new_folder(out, folder) as place:
            data = findings(folder)
            names = publish(results, data, place, author)
            write(data, place / "report")
            write_paper(data, next(reversed(manifest["experiment"]["sources"]), None), place / "report")
    typer.echo(f"{out}: {', '.join([*names, 'report'])}")
    typer.echo(f"posenc lab repeat {first_trial(data)} --in {out}")
