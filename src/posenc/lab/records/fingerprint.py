"""A short hash of the code that a trial runs through: how the lab trains and scores, the encoding and the task.

    lab/trial/*.py, encodings/**/NAME.py, lab/tasks/NAME.py   ─►   SHA-256, 12 digits

It says that a record was made by other code; `posenc lab repeat` says whether that code gives the same scores. Code that
these files import is not part of it. Needs no torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from posenc.lab import tasks

if TYPE_CHECKING:
    from posenc.lab.experiment import Trial

SOURCES = Path(__file__).parents[2]  # the package posenc
DIGITS = 12


def fingerprint(trial: Trial, sources: Path = SOURCES) -> str:
    """12 hexadecimal digits."""
    digest = hashlib.sha256()
    for text in texts(trial, sources):
        digest.update(text.encode())
    return digest.hexdigest()[:DIGITS]


def texts(trial: Trial, sources: Path = SOURCES) -> Iterator[str]:
    """The files; the text of a user's own encoding or task in place of a file."""
    yield from (path.read_text("utf-8") for path in sorted((sources / "lab" / "trial").glob("*.py")))
    for own, folder, name in (
        (trial.source, "encodings", trial.encoding.partition("+")[0]),
        (trial.task.source, "lab/tasks", tasks.file_of(trial.task.name)),
    ):
        files = [] if own is not None else sorted((sources / folder).rglob(f"{name}.py"))
        yield from [own or "", *(path.read_text("utf-8") for path in files)]
