"""A file's bytes as a table: .npy, .safetensors with one tensor, .json, .csv or plain text. Nothing in it is executed.

What a header announces is checked against the bytes that are there before anything is made from it. Pickles are refused:
to read one is to run it.
"""

from __future__ import annotations

import io
import math
import struct
from pathlib import Path
from tokenize import TokenError
from typing import Any, NoReturn

import numpy as np

from posenc.checking.errors import NoTable
from posenc.checking.recognition.recogniser import MOST_CHANNELS, MOST_NUMBERS, MOST_ROWS
from posenc.checking.say import say
from posenc.support import strict_json
from posenc.support.languages import Words

MOST_BYTES = 2**26
MOST_HEADER = 10_000
TENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read_file(path: Path) -> np.ndarray:
    """The table in a file of at most `MOST_BYTES`. Raises NoTable, and OSError where there is no such file."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        _refuse(say("the file has {size} bytes; up to {most} are read", size=size, most=MOST_BYTES))
    return read_table(path.read_bytes())


def read_table(contents: bytes) -> np.ndarray:
    """[rows, channels], with axes of length 1 besides. Raises NoTable for what holds none."""
    table = _array(contents)
    sizes = table.shape if table.ndim == 2 else [n for n in table.shape if n > 1]  # as recogniser.matrix reads it
    if len(sizes) != 2 or table.ndim < 2:
        _refuse(say("the shape {shape} is none of a table; save an array of [rows, channels]", shape=list(table.shape)))
    if sizes[0] == 1:
        _refuse(say("one row does not tell how the next differs; give at least two"))
    return table


def _array(contents: bytes) -> np.ndarray:
    if not contents:
        _refuse(say("the file is empty"))
    if contents.startswith(b"\x93NUMPY"):
        return _npy(contents)
    if contents.startswith(b"PK"):
        _refuse(say("an archive (.npz, .pt or .zip) is not unpacked; save one array with numpy.save"))
    if contents.startswith(b"\x80"):
        _refuse(say("a pickle is not read, because to read one is to run it; save the array with numpy.save"))
    if len(contents) > 9 and contents[8:9] == b"{" and 0 < struct.unpack("<Q", contents[:8])[0] <= len(contents) - 8:
        return _safetensors(contents)
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError:
        start = contents[:8]
        _refuse(
            say("the file is neither .npy, .safetensors, JSON nor text in UTF-8; it begins with {start!r}", start=start)
        )
    return _json(contents) if text.lstrip()[:1] in ("[", "{") else _text(text)


def _refuse(words: Words) -> NoReturn:
    raise NoTable(words) from None


def _npy(contents: bytes) -> np.ndarray:
    stream = io.BytesIO(contents)
    try:
        version = np.lib.format.read_magic(stream)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, _, dtype = header(stream, max_header_size=MOST_HEADER)
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError, SyntaxError, OverflowError, TokenError):
        _refuse(say("the header of this .npy file cannot be read"))
    if dtype.hasobject:
        _refuse(say("an array of Python objects holds a pickle, which is not read; save numbers"))
    if dtype.kind not in "fiub":
        _refuse(say("the array holds {dtype}, no real numbers that numpy knows; save it as float32", dtype=_short(dtype)))
    _check(shape, dtype.itemsize, len(contents) - stream.tell())
    try:
        return np.asarray(np.load(io.BytesIO(contents), allow_pickle=False, max_header_size=MOST_HEADER))
    except (ValueError, OSError, EOFError):
        _refuse(say("this .npy file cannot be read"))


def _safetensors(contents: bytes) -> np.ndarray:
    length = struct.unpack("<Q", contents[:8])[0]
    try:
        header = strict_json.loads(contents[8 : 8 + length])
        tensors = [tensor for name, tensor in header.items() if name != "__metadata__"]
        kinds, shapes = [TENSORS[tensor["dtype"]] for tensor in tensors], [tuple(tensor["shape"]) for tensor in tensors]
        places = [tuple(tensor["data_offsets"]) for tensor in tensors]
    except (ValueError, KeyError, TypeError, AttributeError):
        _refuse(say("the header of this .safetensors file cannot be read, or its dtype is not F64, F32, F16 or BF16"))
    if len(tensors) != 1:
        _refuse(say("the .safetensors file holds {n_tensors} tensors; save the table alone", n_tensors=len(tensors)))
    body = contents[8 + length :]
    dtype = np.dtype(kinds[0])
    _check(shapes[0], dtype.itemsize, len(body))
    if places[0] != (0, len(body)):
        _refuse(say("the .safetensors file is cut off"))
    values = np.frombuffer(body, dtype)
    if dtype.kind == "u":  # bfloat16: the upper half of a float32
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(shapes[0])


def _check(shape: Any, itemsize: int, there: int) -> None:
    if not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape) or len(shape) > 8:
        _refuse(say("the shape {shape} is none of a table", shape=_short(shape)))
    count = math.prod(shape)
    second, longest = sorted((1, 1, *shape))[-2:]
    if count > MOST_NUMBERS or longest > MOST_ROWS or second > MOST_CHANNELS:
        _refuse(
            say(
                "{shape} is too large: up to {most_rows} rows, {most_channels} channels, {most_numbers} numbers",
                shape=_short(shape),
                most_rows=MOST_ROWS,
                most_channels=MOST_CHANNELS,
                most_numbers=MOST_NUMBERS,
            )
        )
    if count * itemsize != there:
        _refuse(say("the header announces {count} bytes, the file has {there}", count=count * itemsize, there=there))


def _json(contents: bytes) -> np.ndarray:
    try:
        rows = strict_json.loads(contents)
    except ValueError as error:
        reason = _short(str(error).removeprefix("not JSON: "))
        _refuse(say("not JSON: {reason}", reason=reason))
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        _refuse(say("JSON should be a list of rows, each a list of numbers; got {got}", got=_short(rows)))
    return _rows(rows)


def _text(text: str) -> np.ndarray:
    """Numbers with commas, semicolons, tabs or spaces between them; names of columns and rows may stand beside them."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        _refuse(say("the file holds no numbers"))
    mark = next((mark for mark in (",", ";", "\t") if mark in lines[0]), None)
    rows = [line.strip().split(mark) if mark is None else line.strip("\r\n").split(mark) for line in lines]
    named = not _is_number(rows[0][0]) or not _is_number(rows[0][-1])
    table = _rows(rows[1:] if named else rows)
    if named and table.shape[1] > 1 and np.array_equal(table[:, 0], np.arange(len(table))):
        table = table[:, 1:]
    return table


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rows(rows: list[list[Any]]) -> np.ndarray:
    if not rows or not rows[0]:
        _refuse(say("the file holds no numbers"))
    first = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != first:
            _refuse(
                say(
                    "row {number} has {count} numbers, the first row {first}; all rows must be equally long",
                    number=number,
                    count=len(row),
                    first=first,
                )
            )
    _check((len(rows), first), 1, len(rows) * first)
    table = np.empty((len(rows), first))
    for number, row in enumerate(rows):
        for column, value in enumerate(row):
            try:
                table[number, column] = float(value)
            except (ValueError, TypeError, OverflowError):
                _refuse(say("row {number} holds {value!r}, which is no number", number=number, value=_short(value)))
    return table


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
