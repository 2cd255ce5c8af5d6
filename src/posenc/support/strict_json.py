"""JSON as the standard has it: each key of an object once, finite numbers only, and within bounds of size and depth.

    loads(text)    the value of a text in UTF-8
    read(path)     the value of a file

Whoever reads JSON that a user or another program wrote reads it here. What posenc wrote into its own package is not.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from posenc.support.file_kinds import ENOUGH, mistaken

MOST_BYTES = 64 * 2**20  # bytes; the index of the largest published checkpoint has 13 MiB
DEEPEST = 32  # levels
MOST_DIGITS = 300  # of a whole number: what float64 holds
SHOWN = 40  # characters of a key or a number in a message


def loads(text: bytes, constants: Mapping[str, float] | None = None) -> Any:
    """The value of a text in UTF-8.

    constants  words that Python's parser accepts beyond the standard ("Infinity", "-Infinity", "NaN"), and their values

    Raises ValueError, one line that says where and what, for a key that occurs twice, another such word, a number beyond
    float64, half of a surrogate pair, what is no JSON or no UTF-8, a text of more than MOST_BYTES, and more than DEEPEST
    levels.
    """
    known = constants or {}

    def constant(word: str) -> float:
        if word not in known:
            raise ValueError(f"holds {word}, which is not a JSON number")
        return known[word]

    if len(text) > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES // 2**20} MiB")
    try:
        value = json.loads(
            text.decode("utf-8-sig"),
            parse_constant=constant,
            parse_int=_whole,
            parse_float=_real,
            object_pairs_hook=_unique,
        )
        if b"\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise ValueError(f"not a text file in UTF-8{_what(text, '')}") from None
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, \\ud800 … \\udfff, which is no character") from None
    except json.JSONDecodeError as error:
        said = str(error)[:200]
        if not error.doc[: error.pos].strip() and error.pos < len(error.doc):
            said = f"begins with {error.doc[error.pos :][:SHOWN]!r}; {said}"
        raise ValueError(f"not JSON{_what(text, said)}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    check_depth(value)
    return value


def read(path: Path, constants: Mapping[str, float] | None = None) -> Any:
    """The value of a file. Raises ValueError as `loads` does, beginning with the path; OSError if it cannot be opened."""
    with path.open("rb") as file:
        text = file.read(MOST_BYTES + 1)
    try:
        return loads(text, constants)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def check_depth(value: Any) -> None:
    """Raises ValueError for mappings and lists in one another on more than DEEPEST levels."""
    level: list[Any] = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise ValueError(f"nested deeper than {DEEPEST} levels")


def _what(text: bytes, otherwise: str) -> str:
    """What the text is, or what else to say of it."""
    said = mistaken(text[:ENOUGH], "JSON") or otherwise
    return f": {said}" if said else ""


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, Mapping) else list(value) if isinstance(value, (list, tuple)) else []


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key[:SHOWN]!r} occurs twice; keep one")
    return result


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"holds a number of {len(digits):,} digits, {digits[:SHOWN]}…; expected at most {MOST_DIGITS}")
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"holds {digits[:SHOWN]}, which is beyond float64")
    return number
