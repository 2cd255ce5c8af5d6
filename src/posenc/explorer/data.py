"""Named arrays for the page, and their binary format.

    "posenc" 1 0 | length of the header, uint32 | header, JSON | zeros up to a multiple of 8 | arrays, one after another

header   {"facts": …, "python": …, "arrays": [{"name", "dtype", "shape", "start", "bytes"}]}

start counts from the end of the zeros. Every array starts at a multiple of 8, little-endian, float64 or int32; rows first.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MAGIC = b"posenc\x01\x00"
MOST_NUMBERS = 2**21


@dataclass(frozen=True)
class Data:
    """The data of a view.

    arrays   arrays by name
    python   code that computes them, with the same names; it runs as printed
    facts    texts and single numbers, plain JSON
    """

    arrays: Mapping[str, Any]
    python: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def computed(python: str, names: Iterable[str], facts: Mapping[str, Any] | None = None) -> Data:
    """The data of a view whose arrays are variables of the program that it prints."""
    variables = run(python)
    return Data({name: variables[name] for name in names}, python, facts or {})


def run(python: str) -> dict[str, Any]:
    """The variables of a program that a view prints."""
    variables: dict[str, Any] = {}
    exec(python, variables)
    return variables


def pack(data: Data) -> bytes:
    """The packed bytes. Raises ValueError for more than two million numbers, or facts that JSON cannot represent."""
    arrays = {name: plain(values) for name, values in data.arrays.items()}
    if (numbers := sum(array.size for array in arrays.values())) > MOST_NUMBERS:
        raise ValueError(f"arrays: {numbers} numbers are more than the {MOST_NUMBERS} that one answer holds; ask for less")
    start, about, body = 0, [], []
    for name, array in arrays.items():
        padded = -array.nbytes % 8
        about.append({"name": name, "dtype": array.dtype.name, "shape": array.shape, "start": start, "bytes": array.nbytes})
        body += [array.tobytes(), bytes(padded)]
        start += array.nbytes + padded
    header = json.dumps({"facts": data.facts, "python": data.python, "arrays": about}, allow_nan=False).encode()
    head = MAGIC + struct.pack("<I", len(header)) + header
    return b"".join([head, bytes(-len(head) % 8), *body])


def plain(values: Any) -> np.ndarray:
    """Converts tensors to float64, other numbers to float64, or to int32 if they are integers or booleans that fit.

    Raises TypeError for anything but real numbers, and for integers that neither type represents exactly.
    """
    array = np.asarray(values.detach().cpu().double() if hasattr(values, "detach") else values)
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, dtype="<f8")
    if array.dtype.kind in "biu":
        largest = max(abs(int(array.min())), abs(int(array.max()))) if array.size else 0
        if largest <= 2**53:
            return np.ascontiguousarray(array, dtype="<i4" if largest < 2**31 else "<f8")
    raise TypeError(f"arrays: numbers of {array.dtype} cannot be sent as float64 or int32")
