"""Headers of safetensors files: names, shapes and metadata, never the weights.

8 bytes: length of the header, little endian | header: JSON | data of all tensors
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posenc import strict_json
from posenc.dialects.errors import ConfigError

LONGEST = 32 * 2**20  # bytes of one header; a shard of the largest published models has less than one
MOST = 4096  # files of a folder


@dataclass(frozen=True)
class Header:
    """shapes: of every tensor by its name; metadata: the file's own words."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)


def read_header(path: Path) -> Header:
    """The header of one file. Raises ConfigError in one line for a file that is cut short, too large or no safetensors."""
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if len(first) < 8 or length < 2:
            raise ConfigError(f"{path}: not a safetensors file: expected the length of a header in its first 8 bytes")
        if length > LONGEST:
            raise ConfigError(f"{path}: not a safetensors file: a header of {length:,} bytes; expected at most {LONGEST:,}")
        if 8 + length > size:
            raise ConfigError(f"{path}: cut short: a header of {length:,} bytes in a file of {size:,}")
        text = file.read(length)
    try:
        found = strict_json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path}: not a safetensors file: {str(error)[:120]}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: not a safetensors file: its header is no JSON object")
    metadata = found.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ConfigError(f"{path}: not a safetensors file: __metadata__ must map names to words")
    return Header({name: _shape(path, name, about, size - 8 - length) for name, about in found.items()}, metadata)


def _shape(path: Path, name: str, about: Any, size: int) -> tuple[int, ...]:
    shape, offsets = (_wholes(path, name, about, key) for key in ("shape", "data_offsets"))
    if len(offsets) != 2 or not offsets[0] <= offsets[1] <= size:
        raise ConfigError(f"{path}: cut short: {name[:60]} ends at byte {offsets[-1] if offsets else 0:,} of {size:,}")
    return shape


def _wholes(path: Path, name: str, about: Any, key: str) -> tuple[int, ...]:
    numbers = about.get(key) if isinstance(about, dict) else None
    if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < 2**48 for n in numbers):
        raise ConfigError(f"{path}: {name[:60]}: expected whole numbers in {key}")
    return tuple(numbers)


def of_folder(folder: Path) -> dict[str, Header]:
    """The header of every safetensors file of a folder, by name; {} if there is none. Raises ConfigError as `read` does."""
    paths = sorted(folder.glob("*.safetensors"))
    if len(paths) > MOST:
        raise ConfigError(f"{folder}: {len(paths):,} safetensors files; expected at most {MOST:,}")
    return {path.name: read_header(path) for path in paths if path.is_file()}
