"""Findings of a folder in which nothing has changed since they were last reported, so that asking again takes no time.

    DIR/findings.json    {"of": fingerprint, "findings": …}, written after the report

The fingerprint is of the sweep, of every result's name, size and time, and of the bytes of every source that findings and
report are made with, sentences and catalogue entries included. Whatever changes, the findings are computed anew.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from posenc.lab.records import files
from posenc.lab.records.import_closure import SOURCES, closure, file_of

NAME = "findings.json"
FINDINGS, VIEWS = "posenc.lab.findings.assemble", "posenc.lab.views"
SUFFIXES = (".py", ".css", ".js")


def recall(folder: Path) -> dict[str, Any] | None:
    """None where anything has changed, or nothing is kept."""
    try:
        kept = json.loads((folder / NAME).read_text("utf-8"))
        found: dict[str, Any] | None = kept["findings"] if kept["of"] == _fingerprint(folder) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found


def remember(folder: Path, findings: dict[str, Any]) -> None:
    """Raises OSError where it cannot write."""
    files.write(folder / NAME, json.dumps({"of": _fingerprint(folder), "findings": findings}, allow_nan=False))


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("[tm]*/*")):  # trials, measurements
        about = path.stat()
        digest.update(f"{path.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    digest.update((folder / "experiment.json").read_bytes())
    for path in made_with():
        digest.update(path.read_bytes())
    return digest.hexdigest()


def made_with(sources: Path = SOURCES) -> list[Path]:
    """The files of the lab, what findings and report import from elsewhere, and the encodings, which hold their entries."""
    imported = {file_of(name, sources) for name in closure([FINDINGS, VIEWS], sources)}
    lab = (path for path in (sources / "lab").rglob("*") if path.suffix in SUFFIXES)
    return sorted({*imported, *lab, *(sources / "encodings").glob("*.py")})
