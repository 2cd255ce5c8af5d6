"""The trial that a command is about: its words or its key, and its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from posenc.commands.lab_folder import Line
    from posenc.lab.records.record import Record
    from posenc.lab.records.results import Folder

FEWEST_DIGITS = 4

TrialWords = Annotated[
    list[str],
    typer.Argument(
        metavar="TRIAL",
        help="The first digits of its key, or words such as: language_model rope seed 0.",
        show_default=False,
    ),
]
TrialFolder = Annotated[
    Path | None,
    typer.Option(
        "--in",
        metavar="DIR",
        help="The folder of the trial; if left out, the only lab-* folder here.",
        show_default=False,
    ),
]


def stored(words: list[str], folder: Path | None) -> tuple[Folder, Line, Record]:
    """The folder, the trial and its record. Raises BadParameter if not exactly one trial is meant, ValueError without a
    record."""
    from posenc.commands.lab_folder import lines, opened

    results, manifest = opened(the_only() if folder is None else folder, "--in")
    line = chosen([word for given in words for word in given.split()], lines(results, manifest))
    record = results.get(line.key or "")
    if record is None:
        why = "not run yet" if line.damaged is None else f"its file is damaged: {line.damaged}"
        raise ValueError(f"{line}: {why}; posenc lab run --resume --out {results.path} runs it")
    return results, line, record


def the_only() -> Path:
    """The one results folder below the working directory."""
    found = sorted(path.parent for path in Path().glob("lab-*/experiment.json"))
    if len(found) == 1:
        return found[0]
    names = ", ".join(map(str, found)) or "none"
    raise typer.BadParameter(f"expected the folder of the trial; here are: {names}", param_hint="--in")


def chosen(words: list[str], there: list[Line]) -> Line:
    """The one trial that matches every word or whose key begins with it. Raises BadParameter if not exactly one does."""

    def fits(line: Line) -> bool:
        return all(
            word in line.words or (len(word) >= FEWEST_DIGITS and (line.key or "").startswith(word)) for word in words
        )

    found = [line for line in there if fits(line)]
    exactly = [line for line in found if set(line.words) == {*words, "seed"}]
    if len(found) == 1 or len(exactly) == 1:
        return (exactly or found)[0]
    listed = "\n".join(f"{(line.key or 'not run')[:8]}  {line}" for line in (found or there)[:20])
    more = f"\nand {len(found or there) - 20} more" if len(found or there) > 20 else ""
    problem = "is more than one" if found else "is none of them"
    raise typer.BadParameter(f"{' '.join(words)!r} {problem}:\n{listed}{more}", param_hint="TRIAL")
