"""What kind of positional table an array is: planted ones are recognised, others are not forced into a formula.

Every table here is written from its formula, or as the mistaken code that makes it; nothing comes from the library.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import pickle
import struct
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import posenc
from cases import cases
from posenc.checking.errors import NoTable
from posenc.checking.recognition import recognise
from posenc.checking.table_files import read_table

DTYPES = ("float64", "float32", "bfloat16", "float16")
ROUNDING = {"float64": 1e-10, "float32": 1.2e-7, "bfloat16": 2**-8, "float16": 2**-11}


def made(layout, rows, width, base=10000.0, offset=0, denominator="d/2", odd="drop", dtype="float64", amplitude=1.0):
    """A sinusoidal table, cell by cell."""
    turning = width - 1 if odd == "zero" else width
    pairs = math.ceil(turning / 2)
    by = turning / 2 if denominator == "d/2" else max(pairs - 1, 1)
    sines = [[math.sin((p + offset) * base ** (-i / by)) for i in range(pairs)] for p in range(rows)]
    cosines = [[math.cos((p + offset) * base ** (-i / by)) for i in range(turning // 2)] for p in range(rows)]
    table = []
    for sin, cos in zip(sines, cosines, strict=True):
        if layout == "sin_cos":
            row = [*sin, *cos]
        elif layout == "cos_sin":
            row = [*cos, *sin]
        else:
            row = [(sin, cos)[c % 2][c // 2] for c in range(turning)]
        table.append([amplitude * value for value in row] + [0.0] * (width - turning))
    return torch.tensor(table, dtype=torch.float64).to(getattr(torch, dtype))


def checked(table, **wanted):
    """Recognised as that, and the lines that it gives make the table."""
    found = recognise(table)
    assert found.formula is not None, [finding.words.en for finding in found.findings]
    for name, value in wanted.items():
        there = getattr(found.formula, name) if hasattr(found.formula, name) else getattr(found, name)
        assert there == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), name
    namespace = {"posenc": posenc, "torch": torch}
    exec(found.python, namespace)
    np.testing.assert_allclose(np.asarray(namespace["recognised"].double()), found.table, atol=ROUNDING[found.dtype])
    assert all(finding.words.en and finding.words.zh for finding in found.findings)
    return found


@cases("dtype", DTYPES)
@cases("layout", ["interleaved", "sin_cos", "cos_sin"])
@cases("base, offset", [(10000.0, 0), (100.0, 2), (500000.0, 1000)])
def test_layouts_bases_offsets_and_dtypes(layout, dtype, base, offset):
    table = made(layout, 60, 64, base, offset, dtype=dtype)
    found = checked(table, layout=layout, base=base, offset=offset, dtype=dtype, denominator="d/2", arithmetic="exact")
    assert found.residual <= ROUNDING[dtype]
    assert not any(finding.level == "wrong" for finding in found.findings)


@cases("dtype", DTYPES)
@cases("odd", ["drop", "zero"])
@cases("layout", ["interleaved", "sin_cos", "cos_sin"])
def test_odd_widths(layout, odd, dtype):
    checked(
        made(layout, 50, 33, odd=odd, dtype=dtype), layout=layout, odd=odd, base=10000.0, denominator="d/2", dtype=dtype
    )


@pytest.mark.parametrize("layout", ["interleaved", "sin_cos"])
def test_the_exponent_of_tensor2tensor(layout):
    table = made(layout, 50, 64, denominator="d/2-1", dtype="float32")
    checked(table, layout=layout, denominator="d/2-1", base=10000.0)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(6, 300),
    pairs=st.integers(2, 40),
    offset=st.integers(-20, 5000),
    base=st.sampled_from([50.0, 1000.0, 10000.0, 12345.0, 1e6]),
    layout=st.sampled_from(["interleaved", "sin_cos", "cos_sin"]),
    dtype=st.sampled_from(DTYPES),
)
def test_any_table_is_remade_to_its_rounding(rows, pairs, offset, base, layout, dtype):
    """Whatever is said of it, the formula found makes the same numbers."""
    table = made(layout, rows, 2 * pairs, base, offset, dtype=dtype)
    found = recognise(table)
    assert found.formula is not None
    assert found.residual <= 2 * ROUNDING[dtype]


@pytest.mark.parametrize(
    ("amplitude", "said"), [(8.0, "√d"), (1 / 8, "1/√d"), (math.sqrt(2 / 64), "length 1"), (0.3, "0.3")]
)
def test_amplitudes(amplitude, said):
    found = checked(made("interleaved", 40, 64, amplitude=amplitude), amplitude=amplitude, base=10000.0)
    assert any(said in finding.words.en for finding in found.findings)


def test_transposed():
    table = made("sin_cos", 70, 16, base=100.0)
    found = checked(table.T, transposed=True, layout="sin_cos", base=100.0)
    assert found.table.shape == (16, 70)
    assert checked(made("interleaved", 64, 64).T, transposed=True)
    assert checked(made("interleaved", 64, 64), transposed=False)


def test_axes_of_length_one_do_not_count():
    table = made("interleaved", 20, 8)
    assert checked(table[None], base=10000.0).table.shape == checked(table[:, None], base=10000.0).table.shape == (20, 8)


def cosines(dtype="float64"):
    return torch.tensor(
        [[math.cos(p * 500000 ** (-2 * i / 32)) for i in range(16)] for p in range(60)], dtype=torch.float64
    ).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rope_caches(dtype):
    cos = cosines(dtype)
    checked(torch.cat([cos, cos], 1), layout="rope_cos_half", base=500000.0, width=32)
    checked(torch.stack([cos, cos], 2).flatten(1), layout="rope_cos_interleaved", base=500000.0, width=32)
    checked(cos, layout="rope_cos", base=500000.0, width=16)
    sin = made("sin_cos", 60, 32, 500000.0, dtype=dtype)[:, :16]
    checked(torch.cat([sin, sin], 1), layout="rope_sin_half", base=500000.0, silent=())
    checked(torch.stack([sin, sin], 2).flatten(1), layout="rope_sin_interleaved", base=500000.0)
    checked(sin, layout="rope_sin", base=500000.0)


def test_complex_numbers_seen_as_reals():
    angle = torch.arange(40).double()[:, None] * 10000.0 ** (-torch.arange(16).double() / 16)
    table = torch.view_as_real(torch.polar(torch.ones_like(angle), angle)).flatten(1)
    checked(table, layout="interleaved_cos", base=10000.0)


@pytest.mark.parametrize(("name", "limit", "rows"), [("bfloat16", 257, 600), ("float16", 2049, 2300)])
@pytest.mark.parametrize("stored", ["float32", "same"])
def test_positions_that_were_cast_first(name, limit, rows, stored):
    dtype = getattr(torch, name)
    position = torch.arange(rows).to(dtype).double()
    angle = position[:, None] * 10000.0 ** (-torch.arange(8).double() / 8)
    table = torch.stack([angle.sin(), angle.cos()], 2).flatten(1).to(torch.float32 if stored == "float32" else dtype)
    found = checked(table, arithmetic=f"{name}_positions", base=10000.0, offset=0)
    assert found.unexplained <= 1e-6
    assert found.residual > 0.5
    assert found.findings[0].level == "wrong"
    assert f"row {limit} is the first that repeats another, row {limit - 1}" in found.findings[-1].words.en


def test_all_in_bfloat16():
    omega = (10000.0 ** (-torch.arange(16).double() / 16)).bfloat16()
    angle = (torch.arange(400).bfloat16()[:, None] * omega).double()
    checked(torch.cat([angle.sin(), angle.cos()], 1), arithmetic="bfloat16", layout="sin_cos", base=10000.0)


@pytest.mark.parametrize(("rows", "width", "error"), [(100, 512, 6.6e-6), (8192, 512, 4.7e-4), (64, 32, 2e-6)])
def test_the_float32_tutorial(rows, width, error):
    table = torch.zeros(rows, width)
    position = torch.arange(rows).unsqueeze(1).float()
    frequency = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
    table[:, 0::2], table[:, 1::2] = torch.sin(position * frequency), torch.cos(position * frequency)
    found = checked(table, arithmetic="exp_log", base=10000.0, dtype="float32")
    assert found.residual == pytest.approx(error, rel=0.2)
    assert found.unexplained < 2e-7


def test_the_float32_rope_of_other_libraries():
    inv_freq = 1.0 / (500000 ** (torch.arange(0, 64, 2).float() / 64))
    angle = torch.arange(2000).float()[:, None] * inv_freq
    found = checked(torch.cat([angle, angle], 1).cos(), arithmetic="power", layout="rope_cos_half", base=500000.0)
    assert not any(finding.level == "wrong" for finding in found.findings)


@pytest.mark.parametrize(("times", "denominator"), [(2, "d/2"), (1, "d")])
def test_the_slip_in_the_exponent(times, denominator):
    """10000^(times·c/d) with the channel c in the place of its pair."""
    table = [[(math.sin, math.cos)[c % 2](p / 10000 ** (times * c / 32)) for c in range(32)] for p in range(80)]
    found = checked(table, layout="per_channel", base=10000.0, denominator=denominator)
    assert found.findings[0].level == "wrong"


@pytest.mark.parametrize(("offset", "row"), [(1, 0), (2, 1), (0, 30)])
def test_a_row_of_zeros_for_padding(offset, row):
    table = made("sin_cos", 60, 32, offset=offset, dtype="float32")
    table[row] = 0
    checked(table, silent=(row,), offset=offset, base=10000.0, residual=0.0)


def test_spoilt_cells_do_not_hide_the_formula():
    table = made("interleaved", 60, 32)
    table[20, 7] += 0.5
    found = checked(table, base=10000.0, at=(20, 7), arithmetic="exact")
    assert found.residual == pytest.approx(0.5)
    assert "1 of 1920 numbers differ" in " ".join(finding.words.en for finding in found.findings)


def test_noise_is_blamed_on_no_mistake():
    noise = 1e-3 * torch.randn(400, 32, generator=torch.Generator().manual_seed(1))
    found = checked(made("interleaved", 400, 32) + noise, arithmetic="exact", base=10000.0)
    assert found.residual == found.unexplained == pytest.approx(float(noise.abs().max()), rel=0.1)


def test_one_pair_hides_its_base():
    found = checked(made("interleaved", 20, 2, base=77.0), base_seen=False)
    assert found.residual < 1e-14


def test_a_base_that_is_not_round_and_steps_that_are_not_whole():
    checked(made("interleaved", 100, 64, base=12345.678), base=12345.678)
    angle = (torch.arange(60).double()[:, None] + 0.5) * 0.25 * 10000.0 ** (-torch.arange(16).double() / 16)
    half = torch.stack([angle.sin(), angle.cos()], 2).flatten(1)
    checked(half, offset=0.5, scale=0.25, base=10000.0)


generator = torch.Generator().manual_seed(0)
OTHERS = {
    "random": torch.randn(60, 32, generator=generator),
    "uniform": torch.rand(60, 32, generator=generator) * 2 - 1,
    "learned": torch.randn(60, 32, generator=generator).cumsum(0) * 0.02,
    "small": torch.randn(512, 64, generator=generator) * 0.02,
    "bits": ((torch.arange(64)[:, None] >> torch.arange(6)) & 1).float(),
    "alternating": torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).repeat(20, 8),
    "ramp": torch.arange(640).reshape(40, 16) / 640,
    "cumsum": torch.ones(30, 8).cumsum(0),
    "diagonal": torch.eye(32),
    "odd": torch.randn(30, 7, generator=generator),
    "odd zero": torch.nn.functional.pad(torch.randn(30, 6, generator=generator), (0, 1)),
    "three": torch.randn(3, 3, generator=generator),
    "shuffled": made("interleaved", 30, 9)[:, [3, 8, 0, 5, 1, 7, 2, 6, 4]],
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_sinusoid_is_not_called_one(name):
    found = recognise(OTHERS[name])
    assert (found.formula, found.table, found.residual) == (None, None, None)
    assert "not a known sinusoidal table" in found.findings[0].words.en
    namespace = {"table": OTHERS[name], "torch": torch}
    exec(found.python, namespace)


def test_what_is_said_of_a_learned_table():
    said = " ".join(finding.words.en for finding in recognise(OTHERS["learned"]).findings)
    assert "Neighbouring rows are similar" in said
    assert f"{float(OTHERS['learned'].norm(dim=1).max()):.4g}" in said
    assert "not more similar than distant ones" in " ".join(
        finding.words.en for finding in recognise(OTHERS["random"]).findings
    )


def test_scaled_frequencies_turn_evenly_without_a_base():
    omega = torch.tensor([10000 ** (-i / 32) / (8 if i > 16 else 1) for i in range(32)], dtype=torch.float64)
    angle = torch.arange(200)[:, None] * omega
    said = recognise(torch.cat([angle.cos(), angle.sin()], 1))
    assert said.formula is None
    assert "rotate uniformly" in said.findings[1].words.en
    assert "all cosines, then all sines" in said.findings[1].words.en


def test_constants_and_numbers_that_are_none():
    assert "positions are not distinguished" in recognise(torch.ones(5, 4)).findings[0].words.en
    assert "Every number is 0" in recognise(np.zeros((5, 4))).findings[0].words.en
    assert "largest absolute value is 1e+300" in recognise([[1.0, 1e300], [0.0, 2.0]]).findings[0].words.en
    table = made("interleaved", 20, 8)
    table[3, 5] = math.nan
    table[9, 1] = math.inf
    found = recognise(table)
    assert found.formula is None
    assert "2 of 160 numbers are not finite; the first is nan at row 3, column 5" in found.findings[0].words.en


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ([], "no numbers"),
        ([1.0, 2.0], "rows, channels"),
        (np.zeros((2, 2, 2)), "rows, channels"),
        ([["a", "b"]], "real numbers"),
        (np.ones((2, 2), complex), "real numbers"),
        ([[1.0, 2.0]], "one row"),
        (np.broadcast_to(1.0, (5000, 5000)), "too large"),
        (np.broadcast_to(1.0, (70000, 2)), "too large"),
    ],
)
def test_what_cannot_be_a_table_is_refused(table, why):
    with pytest.raises(ValueError, match=why):
        recognise(table)


# Files.


def npy(array, **options) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def header(text: str, body: bytes = b"") -> bytes:
    padded = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + body


def safetensors(tensors: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    start, about, body = 0, {}, b""
    for name, (dtype, shape, values) in tensors.items():
        about[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, start + len(values)]}
        start, body = start + len(values), body + values
    text = json.dumps(about).encode()
    return struct.pack("<Q", len(text)) + text + body


TABLE = np.array([[0.0, 1.0, 0.0], [0.5, -0.25, 1e-3], [2.0, 3.0, 4.0]])


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<f2", "<i4", "|u1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_is_read(dtype, order):
    array = np.asarray(np.abs(TABLE).astype(dtype), order=order)
    np.testing.assert_array_equal(read_table(npy(array)), array)


@pytest.mark.parametrize(
    "text",
    [
        "0,1,0\n0.5,-0.25,1e-3\n2,3,4\n",
        "0 1 0\n0.5  -0.25 1e-3\r\n\n2 3 4",
        "# made by hand\n0;1;0\n0.5;-0.25;0.001\n2;3;4",
        "\ufeffa,b,c\n0,1,0\n0.5,-0.25,1e-3\n2,3,4",
        ",0,1,2\n0,0,1,0\n1,0.5,-0.25,1e-3\n2,2,3,4",
        "0\t1\t0\n0.5\t-0.25\t1e-3\n2\t3\t4",
        "[[0, 1, 0], [0.5, -0.25, 1e-3], [2, 3, 4]]",
    ],
)
def test_text_and_json_are_read(text):
    np.testing.assert_array_equal(read_table(text.encode()), TABLE)


def test_safetensors_are_read():
    np.testing.assert_array_equal(read_table(safetensors({"pe": ("F64", [3, 3], TABLE.tobytes())})), TABLE)
    half = torch.from_numpy(TABLE).bfloat16()
    bits = half.view(torch.int16).numpy().tobytes()
    np.testing.assert_array_equal(read_table(safetensors({"pe": ("BF16", [3, 3], bits)})), half.double().numpy())


class Harm:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


HARM = pickle.dumps(Harm())
BAD = {
    "empty": (b"", "empty"),
    "pickle": (HARM, "pickle"),
    "objects": (npy(np.array([[Harm()]], dtype=object), allow_pickle=True), "pickle"),
    "npz": (b"PK\x03\x04" + b"\0" * 40, "archive"),
    "structured": (npy(np.zeros((3, 3), dtype=[("a", "f8")])), "no real numbers"),
    "complex": (npy(np.zeros((3, 3), complex)), "complex128"),
    "strings": (npy(np.array([["a", "b"]])), "no real numbers"),
    "dates": (npy(np.zeros((3, 3), "M8[s]")), "no real numbers"),
    "cut off": (npy(TABLE)[:-8], "announces 72 bytes, the file has 64"),
    "too much": (npy(TABLE) + b"\0", "announces 72 bytes, the file has 73"),
    "huge": (header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000)}"), "too large"),
    "large": (header("{'descr': '<f8', 'fortran_order': False, 'shape': (65536, 4096)}"), "too large"),
    "negative": (header("{'descr': '<f8', 'fortran_order': False, 'shape': (-3, -3)}", b"\0" * 72), "shape"),
    "truths": (header("{'descr': '<f8', 'fortran_order': False, 'shape': (True, 3)}", b"\0" * 24), "shape"),
    "no header": (b"\x93NUMPY\x01\x00\xff\xff", "header"),
    "version": (b"\x93NUMPY\x09\x00" + b"\0" * 80, "header"),
    "code": (header("__import__('os').system('false')"), "header"),
    "deep": (header("(" * 110), "header"),
    "long header": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**20) + b" " * 2**20, "header"),
    "two tensors": (
        safetensors({"a": ("F64", [3, 3], TABLE.tobytes()), "b": ("F64", [3, 3], TABLE.tobytes())}),
        "2 tensors",
    ),
    "integers": (safetensors({"a": ("I64", [3, 3], TABLE.tobytes())}), "dtype is not"),
    "short tensor": (safetensors({"a": ("F64", [3, 4], TABLE.tobytes())}), "announces 96"),
    "noise": (bytes(range(129, 256)), "neither"),
    "no numbers": (b"# nothing\n", "no numbers"),
    "words": (b"a,b\nc,d\n", "no number"),
    "ragged": (b"1,2\n3\n", "equally long"),
    "deep json": (b"[" * 200_000, "JSON"),
    "object": (b'{"table": [[1]]}', "list of rows"),
    "ragged json": (b"[[1, 2], [3]]", "equally long"),
    "nulls": (b"[[null, 1]]", "no number"),
    "nested": (b"[[[1]], [[2]]]", "no number"),
    "digits": (b"[[" + b"9" * 5000 + b"]]", "JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_every_bad_file_is_refused_in_both_languages(name):
    contents, why = BAD[name]
    tracemalloc.start()
    with pytest.raises(NoTable) as refused:
        read_table(contents)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    en, zh = refused.value.words.both()
    assert why in en
    assert any("一" <= letter <= "鿿" for letter in zh)
    assert most < 30 * len(contents) + 2**20  # nothing is made from what a header merely announces


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=300)
    | st.binary(max_size=100).map(lambda tail: npy(TABLE)[:90] + tail)
    | st.text("0123456789.,;-e[]{} \n", max_size=80).map(str.encode)
)
def test_no_bytes_end_in_anything_but_a_table_or_a_refusal(contents):
    try:
        table = read_table(contents)
    except NoTable:
        return
    assert table.dtype.kind in "fiub"
    with contextlib.suppress(ValueError):  # too few rows, say
        recognise(table)
