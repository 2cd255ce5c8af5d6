"""The trial that a command is about: its words or its key, and its folder."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from posenc.lab.commands.folder import Line
    from posenc.lab.records.record import Record
    from posenc.lab.records.results import Folder

FEWEST_DIGITS, MOST_LISTED = 4, 5

TrialWords = Annotated[
    list[str],
    typer.Argument(
        metavar="TRIAL",
        help="Four or more first digits of its key, or words such as: language_model rope seed 0.",
        show_default=False,
    ),
]
TrialFolder = Annotated[
    Path | None,
    typer.Option(
        "--in", metavar="DIR", help="The folder of the trial; if left out, the only lab-* folder here.", show_default=False
    ),
]


def stored(words: list[str], folder: Path | None) -> tuple[Folder, Line, Record]:
    """The folder, the trial and its record. Raises BadParameter if not exactly one trial is meant, ValueError without a
    record."""
    from posenc.lab.commands.folder import lines, opened

    results, manifest = opened(the_only() if folder is None else folder, "--in")
    line = chosen([word for argument in words for word in argument.split()], lines(results, manifest))
    record = results.get(line.key or "")
    if record is None:
        why = "not run yet" if line.damaged is None else f"its file is damaged: {line.damaged}"
        raise ValueError(f"{line}: {why}; posenc lab run --resume --out {results.path} runs it")
    return results, line, record


def other_seeds(results: Folder, line: Line) -> list[Record]:
    """The records of the same model with the other seeds of the experiment, as far as they have run."""
    from posenc.lab.commands.folder import lines, opened

    alike = (
        other
        for other in lines(*opened(results.path, "--in"))
        if other.words[:2] == line.words[:2] and (other.oracle, other.failed) == (line.oracle, None)
    )
    records = (results.get(other.key or "") for other in alike if other.seed != line.seed)
    return [record for record in records if record is not None]


def the_only() -> Path:
    """The one results folder below the working directory."""
    folders = sorted(path.parent for path in Path().glob("lab-*/experiment.json"))
    if len(folders) == 1:
        return folders[0]
    names = ", ".join(map(str, folders)) or "none"
    raise typer.BadParameter(f"expected the folder of the trial; here are: {names}", param_hint="--in")


def chosen(words: list[str], there: list[Line]) -> Line:
    """The one trial that matches every word or whose key begins with it. Raises BadParameter if not exactly one does."""
    matches = [line for line in there if all(fits(word, line) for word in words)]
    exactly = [line for line in matches if all(word in (*words, "seed") or title(word) in words for word in line.words)]
    if len(matches) == 1 or len(exactly) == 1:
        return (exactly or matches)[0]
    listed = [f"{(line.key or 'not run')[:8]}  {line}" for line in (matches or there)[:MOST_LISTED]]
    if (more := len(matches or there) - len(listed)) > 0:
        listed.append(f"and {more} more; posenc lab list DIR shows all")
    problem = f"{' '.join(words)!r} is more than one trial" if matches else unknown(words, there)
    raise typer.BadParameter(
        "\n".join([f"{problem}{'' if problem.endswith('?') else '.'} Trials:", *listed]), param_hint="TRIAL"
    )


def fits(word: str, line: Line) -> bool:
    """Whether a word is one of the trial, its encoding as reports call it, or the beginning of its key."""
    return word in (*line.words, title(line.encoding)) or (len(word) >= FEWEST_DIGITS and begins(line, word))


def title(encoding: str) -> str:
    """LogDistance, of log_distance.py:LogDistance."""
    return encoding.rpartition(":")[2]


def begins(line: Line, digits: str) -> bool:
    return (line.key or "").startswith(digits)


def unknown(words: list[str], there: list[Line]) -> str:
    """Why the words name no trial."""
    for word in words:
        if any(fits(word, line) for line in there):
            continue
        if any(begins(line, word) for line in there):
            return f"{word!r} is too short for a key; expected at least {FEWEST_DIGITS} of its digits"
        known = dict.fromkeys(known_word for line in there for known_word in (*line.words, title(line.encoding)))
        close = [] if word.isdigit() else difflib.get_close_matches(word, known, n=1)
        return f"{word!r} is in no trial here{f'; did you mean {close[0]}?' if close else ''}"
    return f"no trial here has all of {' '.join(words)!r}"
