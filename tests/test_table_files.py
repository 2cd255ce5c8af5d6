"""Files of tables: what is none is refused with its reason, whatever its bytes; nothing in a file is executed."""

from __future__ import annotations

import io
import json
import pickle
import random
import re
import struct
from typing import Any

import numpy as np
import pytest

from posenc.checking.errors import NoTable
from posenc.checking.table_files import read_table


def files() -> list[bytes]:
    """A small table in every supported file format, and some unsupported files."""
    table = np.sin(np.arange(12)[:, None] * 10.0 ** -np.arange(8))
    made = []
    for array in (
        table,
        table.astype(np.float32),
        table.astype(">f2"),
        np.asfortranarray(table),
        (table * 9).astype(int),
        table[0],
    ):
        np.save(stream := io.BytesIO(), array)
        made.append(stream.getvalue())
    head = json.dumps({"table": {"dtype": "F64", "shape": [12, 8], "data_offsets": [0, 768]}}).encode()
    made += [struct.pack("<Q", len(head)) + head + table.tobytes(), json.dumps(table.tolist()).encode()]
    made += ["\n".join(mark.join(map(str, row)) for row in table).encode() for mark in (",", ";", "\t", " ")]
    np.savez(stream := io.BytesIO(), table)
    return [*made, stream.getvalue(), pickle.dumps(table)]


def test_broken_files_are_refused_or_read():
    draw = random.Random(7)
    read, refused = 0, list[str]()
    for index in range(210):
        contents = bytearray(files()[index % 14])
        for _ in range(draw.choice([0, 1, 1, 2, 5, 30])):
            at = draw.randrange(len(contents))
            how = draw.randrange(4)
            if how == 0:
                contents[at] = draw.randrange(256)
            elif how == 1:
                del contents[at : at + draw.choice([1, 7, 100])]
            elif how == 2:
                contents[at:at] = draw.choice(
                    [b"9" * 30, b"[" * 2000, b"nan", b"inf", b"1e999", b"-", b"\x00", b'"', b"\n", b","]
                )
            else:
                contents[at:at] = contents[: draw.randrange(40)]
            if not contents:
                break
        try:
            read_table(bytes(contents))
            read += 1
        except NoTable as error:
            refused.append(error.words.en)
    assert min(read, len(refused)) > 20
    assert all(10 < len(said) < 200 for said in refused)


def npy(array: Any) -> bytes:
    np.save(stream := io.BytesIO(), array, allow_pickle=True)
    return stream.getvalue()


def npy_header(shape: str, descr: str = "'<f8'", body: bytes = b"", rest: str = "") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}{rest}, }}".encode()
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text + body


def one_tensor(shape: Any, dtype: Any = "F32", offsets: Any = (0, 16), body: bytes = bytes(16)) -> bytes:
    head = json.dumps({"table": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}).encode()
    return struct.pack("<Q", len(head)) + head + body


TABLE = np.sin(np.arange(60.0).reshape(10, 6))
REFUSED = {  # the words of the answer
    "0-d": (npy(np.array(1.0)), "the shape [] is none of a table"),
    "0-d whole number": (npy(np.array(3)), "the shape [] is none of a table"),
    "0-d truth": (npy(np.array(True)), "the shape [] is none of a table"),
    "0-d complex": (npy(np.array(1j)), "complex128"),
    "0-d object": (npy(np.array(None, dtype=object)), "pickle"),
    "0-d tensor": (one_tensor([], offsets=(0, 4), body=bytes(4)), "the shape [] is none of a table"),
    "1-d": (npy(np.arange(5.0)), "the shape [5] is none of a table"),
    "1-d tensor": (one_tensor([4]), "the shape [4] is none of a table"),
    "3-d": (npy(np.ones((2, 3, 4))), "the shape [2, 3, 4] is none of a table"),
    "9-d": (npy(np.ones((1,) * 9)), "is none of a table"),
    "only axes of length 1": (npy(np.ones((1, 1, 1))), "the shape [1, 1, 1] is none of a table"),
    "one row": (npy(np.ones((1, 5))), "one row"),
    "one number": (b"1", "one row"),
    "no rows": (npy(np.ones((0, 3))), "the shape (0, 3) is none of a table"),
    "no columns": (npy(np.ones((3, 0))), "the shape (3, 0) is none of a table"),
    "no numbers": (npy(np.ones(0)), "the shape (0,) is none of a table"),
    "objects": (npy(np.full((2, 2), None)), "pickle"),
    "records": (npy(np.zeros((2, 2), [("a", "f4")])), "no real numbers"),
    "complex": (npy(np.ones((2, 2), complex)), "complex128"),
    "texts": (npy(np.array([["a", "b"]] * 2)), "no real numbers"),
    "bytes": (npy(np.zeros((2, 2), "V4")), "no real numbers"),
    "dates": (npy(np.zeros((2, 2), "m8[s]")), "no real numbers"),
    "cut off": (npy(TABLE)[:-1], "announces 480 bytes, the file has 479"),
    "cut off in the header": (npy(TABLE)[:40], "header"),
    "too long": (npy(TABLE) + b"x", "announces 480 bytes, the file has 481"),
    "magic": (b"\x93NUMPX" + npy(TABLE)[6:], "neither .npy"),
    "huge header": (npy_header("(2, 4)", body=bytes(64), rest=" " * 10**6), "header"),
    "huge": (npy_header("(10**9, 10**9)"), "header"),
    "huge, little data": (npy_header("(1000000000, 1000000000)", body=bytes(64)), "too large"),
    "huge and empty": (npy_header("(0, 10000000000000000000000)"), "is none of a table"),
    "endless digits": (npy_header(f"({'9' * 5000},)"), "header"),
    "negative": (npy_header("(-1, 4)", body=bytes(64)), "is none of a table"),
    "truths for sizes": (npy_header("(True, 4)", body=bytes(64)), "is none of a table"),
    "half a row": (npy_header("(2.5, 4)", body=bytes(64)), "header"),
    "no tuple": (npy_header("3", body=bytes(64)), "header"),
    "unknown dtype": (npy_header("(2, 4)", "'zz'", bytes(64)), "header"),
    "dtype within a dtype": (npy_header("(2, 2)", "'(2,2)f8'", bytes(128)), "no real numbers"),
    "tensor with a negative axis": (one_tensor([-2, -2]), "is none of a table"),
    "tensor with words for axes": (one_tensor(["a", 2]), "is none of a table"),
    "tensor without a shape": (one_tensor(None), "header"),
    "tensor elsewhere": (one_tensor([2, 2], offsets=(16, 0)), "cut off"),
    "tensor of integers": (one_tensor([2, 2], "I32"), "dtype is not"),
    "tensor of a dtype that is a list": (one_tensor([2, 2], ["F32"]), "header"),
    "JSON number": (b"3", "one row"),
    "JSON object": (b'{"a": 1}', "list of rows"),
    "JSON words": (b'[["a", 1], [2, 3]]', "no number"),
    "JSON half a pair": (b'[["\\ud800", 1], [2, 3]]', "surrogate pair"),
    "JSON cut off": (b"[[1, 2], [3", "not JSON"),
    "nothing": (b"", "empty"),
    "zeros": (bytes(16), "no number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_is_refused_in_both_languages(name):
    contents, said = REFUSED[name]
    with pytest.raises(NoTable) as refused:
        read_table(contents)
    en, zh = refused.value.words.both()
    assert said in en
    assert re.search("[\u4e00-\u9fff]", zh)
    assert len(en) < 200


READ = {
    "a column": (npy(np.arange(5.0)[:, None]), [5, 1]),
    "a column of text": (b"1\n2\n3\n", [3, 1]),
    "a column with its rows": (b"position,value\n0,0.5\n1,0.25\n", [2, 1]),
    "a column as a batch": (npy(np.arange(5.0)[None, :, None]), None),
    "a batch of one": (npy(TABLE[None]), [10, 6]),
    "Fortran": (npy(np.asfortranarray(TABLE)), [10, 6]),
    "big-endian": (npy(TABLE.astype(">f2")), [10, 6]),
    "truths": (npy(TABLE > 0), [10, 6]),
    "NaN": (npy(np.where(TABLE > 0.5, np.nan, TABLE)), [10, 6]),
    "all NaN": (npy(np.full((3, 2), np.nan)), [3, 2]),
    "infinity": (npy(np.where(TABLE > 0.5, -np.inf, TABLE)), [10, 6]),
    "the largest": (npy(np.full((3, 2), 1.7e308)), [3, 2]),
    "the smallest": (npy(np.full((3, 2), 5e-324)), [3, 2]),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_a_table_is_read_whatever_it_holds(name):
    contents, shape = READ[name]
    if shape is None:
        with pytest.raises(NoTable):
            read_table(contents)
    else:
        assert [n for n in read_table(contents).shape if n > 1 or len(shape) == 2][-2:] == shape


def test_a_file_runs_nothing(tmp_path):
    class Runs:
        def __reduce__(self) -> Any:
            return open, (str(tmp_path / "ran"), "w")

    np.save(stream := io.BytesIO(), np.array([Runs()], dtype=object), allow_pickle=True)
    for contents in (pickle.dumps(Runs()), stream.getvalue(), b"\x93NUMPY\x01\x00\x10\x00open('x', 'w')  \n"):
        with pytest.raises(NoTable):
            read_table(contents)
    assert list(tmp_path.iterdir()) == []
