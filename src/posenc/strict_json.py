"""JSON as the standard has it: each key of an object once, finite numbers only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def loads(text: bytes, constants: Mapping[str, float] | None = None) -> Any:
    """The value of a text in UTF-8.

    constants  words that Python's parser accepts beyond the standard ("Infinity", "-Infinity", "NaN"), and their values

    Raises ValueError for a key that occurs twice, another such word, what is no JSON or no UTF-8, and too deep a nesting.
    """
    known = constants or {}

    def constant(word: str) -> float:
        if word not in known:
            raise ValueError(f"holds {word}, which is not a JSON number")
        return known[word]

    try:
        return json.loads(text.decode("utf-8-sig"), parse_constant=constant, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {max(keys, key=keys.count)[:40]!r} occurs twice")
    return found
