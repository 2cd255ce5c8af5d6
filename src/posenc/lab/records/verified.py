"""Pairs of code versions that are known to give the same numbers, and reference results of other machines.

    DIR/verified.jsonl      a line for each `posenc lab verify` that found everything equal
    DIR/references/         re-runs of some trials on machines that round differently from the one that made the results

A line says which fingerprints gave the same numbers ("equal": pairs of old and new), by which trials that was found, when,
and with which revision, torch and device. Lines are only added, and the file is replaced as a whole.

The same code rounds differently on another kind of processor, and training amplifies that. A reference is a re-run on such
a machine by code that is known to give the results. Code that repeats the reference there bit for bit is equal too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from posenc.lab.records import files
from posenc.lab.records.record import Record
from posenc.lab.records.results import described, unpacked
from posenc.lab.records.written import Verification, expect
from posenc.support import strict_json

NAME, REFERENCES = "verified.jsonl", "references"
Pair = tuple[str, str]  # fingerprints: of the record, of the code that repeats it


def entries(folder: Path) -> list[dict[str, Any]]:
    """Every verification, the oldest first. Raises ValueError for a file that posenc did not write."""
    path = folder / NAME
    try:
        lines = [strict_json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        for entry in lines:
            expect(Verification, entry)
    except ValueError as error:
        raise ValueError(
            f"{path}: expected a line of JSON for each verification; take it from a copy or delete it ({error})"
        ) from None
    return lines


def pairs(folder: Path) -> frozenset[Pair]:
    """The fingerprints that are known to be equal."""
    return frozenset((old, new) for entry in entries(folder) for old, new in entry["equal"])


def stands(about: Mapping[str, Any], today: str, known: frozenset[Pair]) -> bool:
    """Whether a record was made by code of today's fingerprint, or by code that is known to give the same numbers."""
    old: str = about["provenance"]["fingerprint"]
    return old == today or (old, today) in known


def add(folder: Path, entry: Mapping[str, Any]) -> None:
    """Adds a line by replacing the file, so that the file is always complete."""
    lines = [*entries(folder), dict(entry)]
    text = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
    files.write(folder / NAME, text)


def references(folder: Path) -> dict[str, list[Record]]:
    """By the key of the trial. Raises ValueError for a file that is not whole."""
    records: dict[str, list[Record]] = {}
    for path in sorted((folder / REFERENCES).glob("*.parquet")):
        try:
            record = described(unpacked(path.read_bytes()))
        except ValueError as error:
            raise ValueError(f"{path}: {error}; take it from a copy or delete it") from None
        records.setdefault(record.about["key"], []).append(record)
    return records


def add_references(folder: Path, records: Sequence[Record]) -> None:
    """Keeps re-runs, each under its trial and a number."""
    (folder / REFERENCES).mkdir(exist_ok=True)
    for record in records:
        trial, key = record.about["trial"], record.about["key"]
        name = f"{trial['task']['name']}-s{trial['seed']}-{key[:16]}"
        number = len(list((folder / REFERENCES).glob(f"{name}-*.parquet")))
        files.write(folder / REFERENCES / f"{name}-{number}.parquet", record.to_parquet())
