"""The metadata of a GGUF file (llama.cpp), and the few small tensors that scale rotary frequencies; never other weights.

"GGUF" | version | number of tensors, of keys | keys: name, type, value | tensors: name, dimensions, type, offset | data

Every count is checked against the bytes that are left before anything is read, so that a bad file ends at once. The PyPI
package gguf has a reader too, and the tests read what its writer writes; but it keeps an array for every word of the
vocabulary, and its loops follow counts that nothing checks. A file with Llama 3's vocabulary took it 8.6 s and 609 MiB, and
0.16 s and less than 1 MiB here; a walk that checks a file before the package reads it would be this reader.
Source: ggml's docs/gguf.md, versions 2 and 3, either byte order.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.support.file_kinds import ENOUGH, mistaken

SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
DEEPEST, KEPT, FACTORS = 4, 4096, 4096  # nesting of arrays, values of an array that are kept, numbers of a tensor
F32 = 0
# Numbers of a block and its bytes, by the type of a tensor (ggml's ggml-common.h). A type that is not here is newer than
# this list: its tensors need only begin within the file. Where the versions of ggml differ (9), the smaller size stands.
BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    9: (32, 36),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    15: (256, 292),
    16: (256, 66),
    17: (256, 74),
    18: (256, 98),
    19: (256, 50),
    20: (32, 18),
    21: (256, 110),
    22: (256, 82),
    23: (256, 136),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    29: (256, 56),
    30: (1, 2),
    34: (256, 54),
    35: (256, 66),
    39: (32, 17),
    40: (64, 36),
    41: (128, 18),
}
MOST = 1_000_000  # values in all: words and merges of a vocabulary of 250 000 are half of it


Tensor = tuple[str, tuple[int, ...], int, int]  # name, dimensions, type, offset


@dataclass(frozen=True)
class GGUF:
    """The keys of a file with their values (of long arrays None), and rope_freqs and rope_factors_* by their names."""

    keys: Mapping[str, Any]
    factors: Mapping[str, tuple[float, ...]]


def read_gguf(path: Path) -> GGUF:
    """Raises ConfigError in one line for a file that is not GGUF, is cut short, or whose counts cannot be true."""
    with path.open("rb") as file:
        first = file.read(ENOUGH)
    if len(first) < 24:
        wrong = mistaken(first, "GGUF") or f"{len(first)} bytes; expected 24 or more"
        wrong = mistaken(first, "GGUF") or f"{len(first)} bytes; expected 24 or more"
        raise ConfigError(f"{path}: not a GGUF file: {wrong}")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _Reader(data).whole()
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from None


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at, self.size, self.left, self.order = data, 0, len(data), MOST, "<"

    def whole(self) -> GGUF:
        if self.data[:4] != b"GGUF":
            found = mistaken(self.data[:ENOUGH], "GGUF") or f"begins with {bytes(self.data[:4])!r}"
            raise ValueError(f"not a GGUF file: {found}")
        self.at = 4
        version = self.scalar("I")
        if version and version % 2**16 == 0:  # a small number in the other byte order
            self.order, version = ">", version >> 24
        if version not in (2, 3):
            raise ValueError(f"GGUF version {version}; expected 2 or 3")
        n_tensors, n_keys = self.scalar("Q"), self.scalar("Q")
        self.check(n_keys, 13, "keys")
        keys: dict[str, Any] = {}
        for _ in range(n_keys):
            name = self.string()
            if name in keys:
                raise ValueError(f"the key {name[:60]!r} occurs twice")
            keys[name] = self.value(self.scalar("I"))
        self.check(n_tensors, 24, "tensors")
        tensors = [self.tensor() for _ in range(n_tensors)]
        wanted = [tensor for tensor in tensors if tensor[0].startswith(("rope_freqs", "rope_factors"))]
        alignment = keys.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"general.alignment: expected a power of two, got {alignment!r}")
        start = -(-self.at // alignment) * alignment
        self.check_data(start, tensors)
        factors = {tensor[0].removesuffix(".weight"): self.numbers(start, *tensor) for tensor in wanted}
        return GGUF(keys, factors)

    def check(self, count: int, size: int, what: str) -> None:
        """Raises ValueError unless `count` things of at least `size` bytes fit into the rest of the file."""
        if count * size > self.size - self.at:
            raise ValueError(f"cut short, or no GGUF: {count:,} {what} in {self.size - self.at:,} bytes")

    def check_data(self, start: int, tensors: list[Tensor]) -> None:
        """Raises ValueError unless the data of every tensor lie within the file; they begin at `start`."""
        ends = [(start + offset + _bytes(shape, kind), name) for name, shape, kind, offset in tensors]
        end, name = max(ends, default=(0, ""))
        if end > self.size:
            raise ValueError(
                f"cut short: its tensors end at byte {end:,} ({name[:60]}), the file has {self.size:,} bytes; "
                "download or convert it again"
            )

    def scalar(self, form: str) -> Any:
        size = struct.calcsize(self.order + form)
        self.check(1, size, "value")
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"more than {MOST:,} values in its metadata, more than in any model")
        (value,) = struct.unpack_from(self.order + form, self.data, self.at)
        self.at += size
        return value

    def string(self) -> str:
        length = self.scalar("Q")
        self.check(length, 1, "bytes of a string")
        self.at += length
        return self.data[self.at - length : self.at].decode("utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind in SCALARS:
            return self.scalar(SCALARS[kind])
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            raise ValueError(f"a value of type {kind}; GGUF has the types 0 to 12")
        if depth == DEEPEST:
            raise ValueError(f"arrays nested deeper than {DEEPEST} levels")
        inner, count = self.scalar("I"), self.scalar("Q")
        if inner in SCALARS:
            return self.scalars(SCALARS[inner], count)
        self.check(count, 8 if inner == STRING else 12, "values of an array")
        if count > KEPT:
            self.skip(inner, count, depth)
            return None
        return [self.value(inner, depth + 1) for _ in range(count)]

    def scalars(self, form: str, count: int) -> list[Any] | None:
        size = struct.calcsize(self.order + form)
        self.check(count, size, "values of an array")
        at, self.at = self.at, self.at + count * size
        return list(struct.unpack_from(f"{self.order}{count}{form}", self.data, at)) if count <= KEPT else None

    def skip(self, kind: int, count: int, depth: int) -> None:
        """Passes over a long array, such as the vocabulary."""
        for _ in range(count):
            if kind == STRING:
                length = self.scalar("Q")
                self.check(length, 1, "bytes of a string")
                self.at += length
            else:
                self.value(kind, depth + 1)

    def tensor(self) -> Tensor:
        name, count = self.string(), self.scalar("I")
        if count > 8:
            raise ValueError(f"{name[:60]}: {count:,} dimensions; expected at most 8")
        return name, tuple(self.scalar("Q") for _ in range(count)), self.scalar("I"), self.scalar("Q")

    def numbers(self, start: int, name: str, shape: tuple[int, ...], kind: int, offset: int) -> tuple[float, ...]:
        if len(shape) != 1 or shape[0] > FACTORS or kind != F32:
            raise ValueError(f"{name}: expected at most {FACTORS} fp32 numbers, got {list(shape)} of type {kind}")
        return struct.unpack_from(f"{self.order}{shape[0]}f", self.data, start + offset)


def _bytes(shape: tuple[int, ...], kind: int) -> int:
    """Bytes of a tensor; 0 for an unknown type."""
    numbers, size = BLOCKS.get(kind, (1, 0))
    return -(-math.prod(shape) // numbers) * size
