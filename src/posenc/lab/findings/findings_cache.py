"""A cache of a folder's findings, valid as long as nothing in the folder or the code changes.

    DIR/findings.json    {"of": fingerprint, "findings": …}, written after the report

The fingerprint covers the sweep, the name, size and time of every result, and the size and time of every file of posenc.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from posenc.lab.records import files
from posenc.lab.records.fingerprint import SOURCES
from posenc.support import strict_json

NAME = "findings.json"
SUFFIXES = (".py", ".po", ".toml", ".css", ".js", ".md")


def recall(folder: Path) -> dict[str, Any] | None:
    """None if anything has changed or nothing is cached."""
    try:
        kept = strict_json.read(folder / NAME)
        findings: dict[str, Any] | None = kept["findings"] if kept["of"] == _fingerprint(folder) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return findings


def remember(folder: Path, findings: dict[str, Any]) -> None:
    """Raises OSError if it cannot write."""
    files.write(folder / NAME, json.dumps({"of": _fingerprint(folder), "findings": findings}, allow_nan=False))


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("[tm]*/*")):  # trials, measurements
        about = path.stat()
        digest.update(f"{path.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    digest.update((folder / "experiment.json").read_bytes())
    for path in made_with():
        about = path.stat()
        digest.update(f"{path} {about.st_size} {about.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def made_with() -> list[Path]:
    """Every file of posenc that computes or says something."""
    return sorted(path for path in SOURCES.rglob("*") if path.suffix in SUFFIXES)
