"""Headers of safetensors files: names, shapes and metadata, never the weights.

8 bytes: length of the header, little endian | header: JSON | data of all tensors
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.support import strict_json
from posenc.support.file_kinds import ENOUGH, mistaken

LONGEST = 32 * 2**20  # bytes of one header; a shard of the largest published models has less than one
MOST = 4096  # files of a folder
SAID = 3  # of which it is said what is wrong
DIMENSIONS = 64  # of a tensor; what NumPy and torch have
SIZES = {  # bytes of one number, by its dtype; narrower and newer ones are not here
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E5M2FNUZ", "F8_E4M3FNUZ", "F8_E8M0"), 1),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 2),
    **dict.fromkeys(("I32", "U32", "F32"), 4),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 8),
}


@dataclass(frozen=True)
class Header:
    """shapes: of every tensor by its name; metadata: the file's own words."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)


def read_header(path: Path) -> Header:
    """The header of one file. Raises ConfigError in one line for a file that is cut short, too large or no safetensors."""
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(ENOUGH)
        length = int.from_bytes(first[:8], "little")
        wrong = ""
        if len(first) < 8 or length < 2:
            wrong = "expected the length of a header in its first 8 bytes"
        elif length > LONGEST:
            wrong = f"a header of {length:,} bytes; expected at most {LONGEST:,}"
        if wrong:
            raise ConfigError(f"{path}: not a safetensors file: {mistaken(first, 'safetensors') or wrong}")
        if 8 + length > size:
            raise ConfigError(
                f"{path}: cut short: a header of {length:,} bytes in a file of {size:,}; download or save it again"
            )
        file.seek(8)
        text = file.read(length)
    try:
        header = strict_json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path}: not a safetensors file: {str(error)[:120]}") from None
    if not isinstance(header, dict):
        raise ConfigError(f"{path}: not a safetensors file: its header is no JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ConfigError(f"{path}: not a safetensors file: __metadata__ must map names to words")
    return Header({name: _shape(path, name, about, 8 + length, size) for name, about in header.items()}, metadata)


def _shape(path: Path, name: str, about: Any, start: int, size: int) -> tuple[int, ...]:
    """The shape of a tensor, whose data lie within the file; `start` is where the data of all begin."""
    shape, offsets = (_wholes(path, name, about, key) for key in ("shape", "data_offsets"))
    if len(shape) > DIMENSIONS:
        raise ConfigError(f"{path}: {name[:60]}: {len(shape):,} dimensions; expected at most {DIMENSIONS}")
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ConfigError(
            f"{path}: {name[:60]}: expected the begin and the end of its data in data_offsets, got {list(offsets)[:4]}"
        )
    if start + offsets[1] > size:
        raise ConfigError(
            f"{path}: cut short: {name[:60]} ends at byte {start + offsets[1]:,}, the file has {size:,} bytes; "
            "download or save it again"
        )
    dtype = about.get("dtype")
    each = SIZES.get(dtype) if isinstance(dtype, str) else None
    if each is not None and math.prod(shape) * each != offsets[1] - offsets[0]:
        raise ConfigError(
            f"{path}: {name[:60]}: {dtype} {list(shape)} has {math.prod(shape) * each:,} bytes, its data_offsets hold "
            f"{offsets[1] - offsets[0]:,}"
        )
    return shape


def _wholes(path: Path, name: str, about: Any, key: str) -> tuple[int, ...]:
    numbers = about.get(key) if isinstance(about, dict) else None
    if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < 2**48 for n in numbers):
        raise ConfigError(f"{path}: {name[:60]}: expected whole numbers in {key}")
    return tuple(numbers)


def of_folder(folder: Path) -> dict[str, Header]:
    """The header of every safetensors file of a folder, by name; {} if there is none.

    Raises ConfigError, one line, with what is wrong with each file that cannot be read.
    """
    paths = sorted(folder.glob("*.safetensors"))
    if len(paths) > MOST:
        raise ConfigError(f"{folder}: {len(paths):,} safetensors files; expected at most {MOST:,}")
    headers, unreadable = dict[str, Header](), list[str]()
    for path in filter(Path.is_file, paths):
        try:
            headers[path.name] = read_header(path)
        except ConfigError as error:
            unreadable.append(str(error))
    if unreadable:
        raise ConfigError(in_one_line(unreadable))
    return headers


def in_one_line(unreadable: list[str]) -> str:
    """What is wrong with some files."""
    more = f"; and {len(unreadable) - SAID} more files" if len(unreadable) > SAID else ""
    return "; ".join(unreadable[:SAID]) + more
