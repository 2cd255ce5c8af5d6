"""safetensors files, one tensor at a time: read by the safetensors library, written here, since the library cannot stream.

8 bytes: length of the header, little endian | header: JSON, padded with spaces to a multiple of 8 | data of all tensors
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.configs.convert.plan import About
from posenc.configs.headers import SIZES, in_one_line, read_header

PICKLES = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"})
LONGEST_HEAD = 100_000_000  # bytes; what the library refuses to read
PIECE, WINDOW = 16 << 20, 128 << 20

Advance = Callable[[int], None]


class TensorFile:
    """The header of a file and its tensors, in the order of the data; each tensor is read on access.

    The library maps files into memory; a map is dropped after WINDOW bytes, or by `release`, which frees what was read.
    Raises ValueError for a pickle, for anything but a safetensors file, and for numbers narrower than a byte.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix in PICKLES:
            raise ValueError(f"{path}: a pickle may run code when read and is not opened; save it as safetensors first")
        self.path, self.tensors, self.metadata = path, dict[str, About](), dict[str, str]()
        self._map: Any = None
        self._read = 0
        read_header(path)  # says where a file is cut short, which the library does not
        file = self._mapped()
        self.metadata |= file.metadata() or {}
        for name in file.offset_keys():
            part = file.get_slice(name)
            about = self.tensors[name] = About(part.get_dtype(), tuple(part.get_shape()))
            if about.dtype not in SIZES:
                raise ValueError(f"{path}: {name} is {about.dtype}, which is not known or narrower than a byte")
        self.release()

    def get(self, name: str) -> Tensor:
        if self._read > WINDOW:
            self.release()
        self._read += nbytes(self.tensors[name])
        tensor: Tensor = self._mapped().get_tensor(name)
        return tensor

    def release(self) -> None:
        self._map, self._read = None, 0

    def _mapped(self) -> Any:
        from safetensors import SafetensorError, safe_open

        try:
            self._map = self._map or safe_open(self.path, framework="pt")
        except SafetensorError as error:
            raise ValueError(f"{self.path}: not a safetensors file ({error})") from error
        return self._map


def opened(paths: Iterable[Path]) -> list[TensorFile]:
    """The files. Raises ValueError, one line, with what is wrong with each that cannot be read."""
    files, unreadable = list[TensorFile](), list[str]()
    for path in paths:
        try:
            files.append(TensorFile(path))
        except ValueError as error:
            unreadable.append(str(error))
    if unreadable:
        raise ValueError(in_one_line(unreadable))
    return files


def nbytes(about: About) -> int:
    return math.prod(about.shape) * SIZES[about.dtype]


def head(tensors: Mapping[str, About], metadata: Mapping[str, str]) -> bytes:
    """The header bytes of a file with these tensors in this order."""
    entries: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, about in tensors.items():
        begin, end = end, end + nbytes(about)
        entries[name] = {"dtype": about.dtype, "shape": list(about.shape), "data_offsets": [begin, end]}
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEAD:
        raise ValueError(f"head: {len(text):,} bytes, more than the {LONGEST_HEAD:,} that readers accept")
    return len(text).to_bytes(8, "little") + text


def write(path: Path, first: bytes, tensors: Iterable[tuple[About, Tensor]], advance: Advance) -> None:
    """Writes a new file, synced to disk. Raises ValueError for a tensor whose size differs from its header."""
    with path.open("xb") as file:
        file.write(first)
        for about, tensor in tensors:
            data = as_bytes(tensor)
            if data.numel() != nbytes(about):
                raise ValueError(f"{path.name}: a tensor has {data.numel()} bytes, expected {nbytes(about)} for {about}")
            for piece in data.split(PIECE):
                file.write(memoryview(piece.numpy()))
                advance(piece.numel())
        file.flush()
        os.fsync(file.fileno())


def as_bytes(tensor: Tensor) -> Tensor:
    """The bits of a tensor of any dtype, [n]."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def same_bits(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(as_bytes(a), as_bytes(b))
