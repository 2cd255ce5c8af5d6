"""Findings of a folder in which nothing has changed since they were last reported, so that asking again takes no time.

    DIR/findings.json    {"of": fingerprint, "findings": …}, written after the report

The fingerprint is of the sweep, of every result's name, size and time, and of the lab's sources: whatever changes, the
findings are computed anew.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import posenc
from posenc.lab.records import files

NAME = "findings.json"


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
    for path in sorted((Path(posenc.__file__).parent / "lab").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
