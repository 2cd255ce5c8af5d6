"""A file's bytes as a table: .npy, .safetensors with one tensor, .json, .csv or plain text. Nothing in it is executed.

What a header announces is checked against the bytes that are there before anything is made from it. Pickles are refused:
to read one is to run it.
"""

from __future__ import annotations

import io
import math
import struct
from tokenize import TokenError
from typing import Any, NoReturn

import numpy as np

from posenc.checking.recognition.recogniser import MOST_CHANNELS, MOST_NUMBERS, MOST_ROWS
from posenc.explorer.parameters import Refused
from posenc.support import strict_json

MOST_HEADER = 10_000
TENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read_table(contents: bytes) -> np.ndarray:
    """[rows, channels], with axes of length 1 besides. Raises Refused, in both languages, for what cannot be read."""
    table = _array(contents)
    sizes = table.shape if table.ndim == 2 else [n for n in table.shape if n > 1]  # as recogniser.matrix reads it
    if len(sizes) != 2 or table.ndim < 2:
        _refuse(
            f"the shape {list(table.shape)} is none of a table; save an array of [rows, channels]",
            f"形状 {list(table.shape)} 不是一张表；请保存形状为 [行, 通道] 的数组",
        )
    if sizes[0] == 1:
        _refuse(
            "one row does not tell how the next differs; give at least two", "只有一行，看不出下一行怎样变化；至少需要两行"
        )
    return table


def _array(contents: bytes) -> np.ndarray:
    if not contents:
        _refuse("the file is empty", "文件是空的")
    if contents.startswith(b"\x93NUMPY"):
        return _npy(contents)
    if contents.startswith(b"PK"):
        _refuse(
            "an archive (.npz, .pt or .zip) is not unpacked; save one array with numpy.save",
            "不解压 .npz、.pt、.zip 等归档文件；请用 numpy.save 保存一个数组",
        )
    if contents.startswith(b"\x80"):
        _refuse(
            "a pickle is not read, because to read one is to run it; save the array with numpy.save",
            "不读取 pickle：读取它就等于运行它；请用 numpy.save 保存数组",
        )
    if len(contents) > 9 and contents[8:9] == b"{" and 0 < struct.unpack("<Q", contents[:8])[0] <= len(contents) - 8:
        return _safetensors(contents)
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError:
        _refuse(
            "the file is neither .npy, .safetensors, JSON nor text in UTF-8",
            "文件不是 .npy、.safetensors、JSON，也不是 UTF-8 文本",
        )
    return _json(contents) if text.lstrip()[:1] in ("[", "{") else _text(text)


def _refuse(en: str, zh: str) -> NoReturn:
    raise Refused(f"{en} · {zh}") from None


def _npy(contents: bytes) -> np.ndarray:
    stream = io.BytesIO(contents)
    try:
        version = np.lib.format.read_magic(stream)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, _, dtype = header(stream, max_header_size=MOST_HEADER)
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError, SyntaxError, OverflowError, TokenError):
        _refuse("the header of this .npy file cannot be read", "无法读取这个 .npy 文件的文件头")
    if dtype.hasobject:
        _refuse(
            "an array of Python objects holds a pickle, which is not read; save numbers",
            "Python 对象数组里含有 pickle，不予读取；请保存数值数组",
        )
    if dtype.kind not in "fiub":
        _refuse(
            f"the array holds {_short(dtype)}, no real numbers that numpy knows; save it as float32",
            f"数组的类型是 {_short(dtype)}，不是 numpy 的实数类型；请存成 float32",
        )
    _check(shape, dtype.itemsize, len(contents) - stream.tell())
    try:
        return np.asarray(np.load(io.BytesIO(contents), allow_pickle=False, max_header_size=MOST_HEADER))
    except (ValueError, OSError, EOFError):
        _refuse("this .npy file cannot be read", "无法读取这个 .npy 文件")


def _safetensors(contents: bytes) -> np.ndarray:
    length = struct.unpack("<Q", contents[:8])[0]
    try:
        header = strict_json.loads(contents[8 : 8 + length])
        tensors = [one for name, one in header.items() if name != "__metadata__"]
        kinds, shapes = [TENSORS[one["dtype"]] for one in tensors], [tuple(one["shape"]) for one in tensors]
        places = [tuple(one["data_offsets"]) for one in tensors]
    except (ValueError, KeyError, TypeError, AttributeError):
        _refuse(
            "the header of this .safetensors file cannot be read, or its dtype is not F64, F32, F16 or BF16",
            "无法读取这个 .safetensors 的文件头，或其类型不是 F64、F32、F16、BF16",
        )
    if len(tensors) != 1:
        _refuse(
            f"the .safetensors file holds {len(tensors)} tensors; save the table alone",
            f"这个 .safetensors 文件含有 {len(tensors)} 个张量；请单独保存这张表",
        )
    body = contents[8 + length :]
    dtype = np.dtype(kinds[0])
    _check(shapes[0], dtype.itemsize, len(body))
    if places[0] != (0, len(body)):
        _refuse("the .safetensors file is cut off", "这个 .safetensors 文件不完整")
    values = np.frombuffer(body, dtype)
    if dtype.kind == "u":  # bfloat16: the upper half of a float32
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(shapes[0])


def _check(shape: Any, itemsize: int, there: int) -> None:
    if not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape) or len(shape) > 8:
        _refuse(f"the shape {_short(shape)} is none of a table", f"形状 {_short(shape)} 不是一张表")
    count = math.prod(shape)
    second, longest = sorted((1, 1, *shape))[-2:]
    if count > MOST_NUMBERS or longest > MOST_ROWS or second > MOST_CHANNELS:
        _refuse(
            f"{_short(shape)} is too large: up to {MOST_ROWS} rows, {MOST_CHANNELS} channels, {MOST_NUMBERS} numbers",
            f"{_short(shape)} 太大：最多 {MOST_ROWS} 行、{MOST_CHANNELS} 个通道、{MOST_NUMBERS} 个数",
        )
    if count * itemsize != there:
        _refuse(
            f"the header announces {count * itemsize} bytes, the file has {there}",
            f"文件头说有 {count * itemsize} 个字节，实际有 {there} 个",
        )


def _json(contents: bytes) -> np.ndarray:
    try:
        given = strict_json.loads(contents)
    except ValueError as error:
        said = _short(str(error).removeprefix("not JSON: "))
        _refuse(f"not JSON: {said}", f"不是 JSON：{said}")
    if not isinstance(given, list) or not all(isinstance(row, list) for row in given):
        _refuse("JSON should be a list of rows, each a list of numbers", "JSON 应当是若干行组成的列表，每行是数的列表")
    return _rows(given)


def _text(text: str) -> np.ndarray:
    """Numbers with commas, semicolons, tabs or spaces between them; names of columns and rows may stand beside them."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        _refuse("the file holds no numbers", "文件里没有数")
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
    widths = {len(row) for row in rows}
    if len(widths) != 1 or 0 in widths:
        _refuse(
            "the rows are not equally long" if rows else "the file holds no numbers",
            "各行长度不一" if rows else "文件里没有数",
        )
    _check((len(rows), widths.pop()), 1, sum(map(len, rows)))
    table = np.empty((len(rows), len(rows[0])))
    for number, row in enumerate(rows):
        try:
            table[number] = [float(value) for value in row]
        except (ValueError, TypeError, OverflowError):
            _refuse(f"row {number} holds something that is no number", f"第 {number} 行里有不是数的内容")
    return table


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
