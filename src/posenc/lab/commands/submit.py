"""`posenc lab submit`: one folder with a contributed encoding, its laws, its trials and a signed-off record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from posenc.checking.commands.check import Timeout
from posenc.support.apart import LIMIT
from posenc.terminal.interruption import interruptible


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that posenc lab add has added your encoding to.")],
    encoding: Annotated[
        str, typer.Option(metavar="FILE.py:CLASS", help="Your encoding in it, as posenc lab list DIR calls it.")
    ],
    out: Annotated[Path, typer.Option(help="The new folder.", show_default=False)],
    author: Annotated[
        list[str], typer.Option(help="Who signs: 'Family, Given', or one name. Repeatable.", show_default=False)
    ],
    timeout: Timeout = LIMIT,
) -> None:
    """Write one folder to contribute an encoding: its file, its laws, its trials, the report, and a record that signs them.

    The laws are checked again, in a process of their own; if one fails, nothing is written. The record holds your name, the
    day, the fingerprint of the code, versions and machine, and a hash of every file: posenc lab board finds a file that was
    changed since. posenc lab verify OUT trains a sample of the trials again.

    Examples:  posenc lab submit lab-quick --encoding mine.py:Mine --out mine-submitted --author 'Noether, Emmy'
    """
    with interruptible("nothing was written; the same command starts anew"):
        from posenc.lab.commands.folder import opened
        from posenc.lab.findings.assemble import findings
        from posenc.lab.report import submission, write
        from posenc.lab.report.publication import new_folder, publish

        results, manifest = opened(folder, "DIR")
        sources: dict[str, str] = manifest["experiment"].get("sources", {})
        if encoding not in sources:
            raise typer.BadParameter(
                f"{folder} has no encoding {encoding!r} of yours; it has {', '.join(sources) or 'none'}; "
                f"posenc lab add FILE.py:CLASS --to {folder} adds one",
                param_hint="--encoding",
            )
        laws = held(encoding, sources[encoding], manifest, timeout)
        with new_folder(out, folder) as place:
            data = findings(folder)
            publish(results, data, place, author)
            write(data, place / "report")
            submission.sign(place, encoding, author, laws, data)
    typer.echo(f"{out}: {encoding}, {len(laws)} laws, signed by {', '.join(author)}")
    typer.echo(f"posenc lab board {out} --out board.md")


def held(word: str, source: str, manifest: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
    """The result of every law. Raises ValueError that names those that fail."""
    from functools import partial

    from posenc.lab.commands.add import as_data, counted, examined, judged
    from posenc.lab.experiment import Experiment

    experiment = Experiment.model_validate(manifest["experiment"])
    laws = partial(examined, word, source, experiment.size, tuple(plan.task for plan in experiment.tasks))
    results = list(judged(word, laws, timeout, "Nothing was written"))
    if broken := [law for law in results if not law.held]:
        raise ValueError(f"{word} breaks {counted(broken, results)}; nothing was written")
    return [as_data(law) for law in results]
