"""What `posenc.support.apart` is asked to run in its tests; it imports nothing, so that a process is started quickly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def running(code: str) -> Iterator[Any]:
    """A number, what the code assigns to `said`, and another number."""
    yield 1
    names: dict[str, Any] = {}
    exec(code, names)
    yield names.get("said")
    yield 2
