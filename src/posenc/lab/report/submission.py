"""A contributed encoding as a folder: a publication (`publication`), the laws it was checked for, and a signed-off record.

    record.json   who, when, which encoding; fingerprint of the code, versions, machine; SHA-256 of every other file
    laws.json     every law with its verdict
    the rest      the encoding's file, trials, report, citation: as posenc lab publish writes them

`read` finds a file that was changed, lost or added since. Somebody who forges a score and its hash is found by
`posenc lab verify`, which trains again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from posenc.lab.records import files
from posenc.lab.report.cells import Findings
from posenc.lab.report.publication import environment

RECORD, LAWS = "record.json", "laws.json"
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f|<>`]+$")]  # fits a cell of a table: the file is somebody else's


class Laws(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    held: int
    tried: int


class Submission(BaseModel):
    """The record; `files` has the SHA-256 of every other file by its path."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal[1] = 1
    encoding: Line
    authors: list[Line]
    date: Line
    environment: dict[str, Any]
    laws: Laws
    files: dict[str, str]


def sign(folder: Path, word: str, authors: Sequence[str], laws: Sequence[Mapping[str, Any]], findings: Findings) -> None:
    """Writes the laws and the record of all files in the folder."""
    files.write(folder / LAWS, json.dumps(list(laws), ensure_ascii=False, indent=1) + "\n")
    record = Submission(
        encoding=word,
        authors=list(authors),
        date=datetime.now(UTC).date().isoformat(),
        environment=environment(findings),
        laws=Laws(held=sum(law["held"] for law in laws), tried=len(laws)),
        files=hashes(folder),
    )
    files.write(folder / RECORD, record.model_dump_json(indent=1) + "\n")


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file but the record, by its path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / RECORD)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def read(folder: Path) -> Submission | None:
    """What the record says, after a look at every file; None for a folder without a record.

    Raises ValueError that names a file which was changed, lost or added, and for a record that is none.
    """
    if not (folder / RECORD).is_file():
        return None
    try:
        signed = Submission.model_validate_json((folder / RECORD).read_bytes())
    except ValidationError:
        raise ValueError(f"{folder / RECORD}: expected a record of posenc lab submit, format 1") from None
    there = hashes(folder)
    for name in sorted({*there, *signed.files}):
        if there.get(name) != signed.files.get(name):
            how = "lost" if name not in there else "added" if name not in signed.files else "changed"
            raise ValueError(
                f"{folder}: {name} was {how} since it was signed; ask {', '.join(signed.authors)} for it again"
            )
    return signed
