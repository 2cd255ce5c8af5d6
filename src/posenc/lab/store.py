"""Results in a folder: each under the hash of everything that decides it, each file whole or absent.

DIR/comparison.json         whose folder this is: the settings
DIR/parts/NAME-KEY.json     one finished trial or measurement
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from posenc.lab.records.files import locked
from posenc.lab.records.files import write as write

MARKER, PARTS, LOCK = "comparison.json", "parts", ".lock"


class Store:
    """The folder of one comparison, a context that keeps a second process out of it.

    Raises ValueError for a folder that holds anything else or a comparison of other settings; OSError where it cannot
    be written. `settings` are plain JSON.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder, self.settings = folder, json.loads(canonical(settings))
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Store:
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"--out: {self.folder} is a file, a folder is expected")
        self._refuse_foreign()
        (self.folder / PARTS).mkdir(parents=True, exist_ok=True)
        self._open.enter_context(_only_here(self.folder / LOCK))
        for left in (*self.folder.glob(".*.tmp"), *(self.folder / PARTS).glob(".*.tmp")):
            left.unlink()  # of a run that was killed while writing
        write(self.folder / MARKER, json.dumps({"posenc": "compare", "settings": self.settings}, indent=1))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def get(self, name: str, inputs: Mapping[str, Any]) -> Any:
        """What was put under these very inputs, or None."""
        path = self._path(name, inputs)
        if not path.is_file():
            return None
        part = json.loads(path.read_text("utf-8"))
        return part["value"] if part["key"] == key(inputs) else None

    def put(self, name: str, inputs: Mapping[str, Any], value: Any) -> Any:
        """Writes it and returns it as it will be read."""
        text = json.dumps({"key": key(inputs), "inputs": inputs, "value": value}, indent=1, allow_nan=False)
        write(self._path(name, inputs), text)
        return json.loads(text)["value"]

    def _path(self, name: str, inputs: Mapping[str, Any]) -> Path:
        return self.folder / PARTS / f"{name}-{key(inputs)[:16]}.json"

    def _refuse_foreign(self) -> None:
        if not self.folder.is_dir():
            return
        marker = self.folder / MARKER
        if not marker.is_file():
            if any(not path.name.endswith(".tmp") and path.name not in (LOCK, PARTS) for path in self.folder.iterdir()):
                raise ValueError(
                    f"--out: {self.folder} holds files that posenc compare did not write; choose another folder"
                )
            return
        try:
            theirs = json.loads(marker.read_text("utf-8"))["settings"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"--out: {marker} is not from posenc compare; choose another folder") from None
        if differing := [name for name in self.settings if theirs.get(name) != self.settings[name]]:
            what = _difference(differing, theirs, self.settings)
            raise ValueError(f"--out: {self.folder} holds a comparison with {what}; choose another folder")


def _difference(names: list[str], theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    def said(name: str) -> str:
        if isinstance(ours[name], dict) or len(str(ours[name])) > 40:
            return f"another {name}"
        return f"{name} {theirs.get(name)} instead of {ours[name]}"

    return ", ".join(map(said, names))


def canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def key(inputs: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(inputs).encode()).hexdigest()


@contextlib.contextmanager
def _only_here(path: Path) -> Iterator[None]:
    """Holds a lock that ends with the process, however it ends; none where the system has no such lock."""
    file = locked(path)
    if file is None:
        raise ValueError(f"--out: another posenc compare is writing to {path.parent}")
    with file:
        yield
