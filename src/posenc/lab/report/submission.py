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
from typing import Any, NamedTuple

from posenc.lab.records import files
from posenc.lab.report.cells import Findings
from posenc.lab.report.publication import environment
from posenc.support import strict_json

RECORD, LAWS = "record.json", "laws.json"
FORMAT = 1
FIELDS = {"format", "encoding", "authors", "date", "environment", "laws", "files"}


class Submission(NamedTuple):
    encoding: str
    authors: tuple[str, ...]
    date: str
    environment: Mapping[str, Any]
    laws: Mapping[str, int]  # how many of each verdict


def sign(folder: Path, word: str, authors: Sequence[str], laws: Sequence[Mapping[str, Any]], findings: Findings) -> None:
    """Writes the laws and the record of all files in the folder."""
    files.write(folder / LAWS, json.dumps(list(laws), ensure_ascii=False, indent=1) + "\n")
    record = {
        "format": FORMAT,
        "encoding": word,
        "authors": list(authors),
        "date": datetime.now(UTC).date().isoformat(),
        "environment": environment(findings),
        "laws": {"held": sum(one["held"] for one in laws), "tried": len(laws)},
        "files": hashes(folder),
    }
    files.write(folder / RECORD, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


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
        said = strict_json.loads((folder / RECORD).read_bytes())
    except ValueError as error:
        raise ValueError(f"{folder / RECORD}: {error}") from None
    if not isinstance(said, dict) or set(said) != FIELDS or said["format"] != FORMAT or not _is_record(said):
        raise ValueError(f"{folder / RECORD}: expected a record of posenc lab submit, format {FORMAT}")
    there, signed = hashes(folder), said["files"]
    for name in sorted({*there, *signed}):
        if there.get(name) != signed.get(name):
            how = "lost" if name not in there else "added" if name not in signed else "changed"
            raise ValueError(
                f"{folder}: {name} was {how} since it was signed; ask {', '.join(said['authors'])} for it again"
            )
    return Submission(said["encoding"], tuple(said["authors"]), said["date"], said["environment"], said["laws"])


def _is_record(said: Mapping[str, Any]) -> bool:
    """Whether the fields have their types, and names are one line that fits a table: the file is somebody else's."""
    names = [said["encoding"], said["date"], *(said["authors"] if isinstance(said["authors"], list) else [None])]
    return (
        all(isinstance(name, str) and name.isprintable() and not set("|<>`") & set(name) for name in names)
        and all(isinstance(said[field], dict) for field in ("environment", "laws", "files"))
        and said["laws"].keys() == {"held", "tried"}
        and all(type(count) is int for count in said["laws"].values())
    )
