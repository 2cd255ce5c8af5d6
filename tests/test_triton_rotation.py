"""The rotation for CUDA, run in triton's interpreter against loops in fp64, and compiled for GPUs that are not at hand.

The interpreter must be on before triton is imported, and another test may have imported it: every batch of cases runs in
a process of its own, this file with the name of the batch. What is compared there:

    values      within one rounding of fp64, and the bits of plain torch
    outputs     filled with NaN before, with guards around: nothing left unwritten, nothing written beside
    inputs      unchanged, with NaN around them

What the interpreter cannot show is read from the code compiled for a GPU: words of 16 bytes, no fused multiply-add, no
new kernel for a new length.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from bench.gpu.compiled_kernels import NoGPU

import posenc
from posenc.kernels.rotation.triton_rotation import TILE_PAIRS, available, rotate, tile, why_not
from sampling import first_only

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="triton is made for Linux only")

WHERE = Path(posenc.__file__).parents[1]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "fp64": torch.float64}
ROUNDING = {"fp32": 2.0**-24, "bf16": 2.0**-8, "fp16": 2.0**-11, "fp64": 2.0**-53}
VIEWS = ("plain", "heads", "qkv", "channels", "odd")
TABLES = ("rows", "one", "expanded", "pairs")
GUARD = 20011  # entries before and after a tensor's memory


@dataclass(frozen=True)
class Case:
    dtype: str
    b: int
    t: int
    h: int
    d: int
    half_in: bool
    half_out: bool
    n: int
    start: int
    back: bool = False
    in_place: bool = False
    view: str = "plain"
    view_out: str = "plain"
    table: str = "rows"
    programs: int = 1024  # above how many programs a program takes more heads


def lattice() -> list[Case]:
    """Every size with every pair of layouts and every dtype; the rest is drawn."""
    draw, cases = random.Random(0), []
    sizes = itertools.product((1, 2, 3), (1, 2, 5, 257), (1, 3), (2, 6, 64, 72, 96, 128))
    for (b, t, h, d), half_in, half_out, dtype in itertools.product(sizes, (False, True), (False, True), DTYPES):
        n = draw.choice([d // 2, d // 2, max(d // 4, 1), 1])
        start = draw.choice([0, d - 2 * n, (d - 2 * n) // 2])
        cases.append(
            Case(
                dtype,
                b,
                t,
                h,
                d,
                half_in,
                half_out,
                n,
                start,
                draw.random() < 0.5,
                draw.random() < 0.3,
                draw.choice(VIEWS),
                draw.choice(VIEWS),
                draw.choice(TABLES),
                draw.choice([1, 1024]),
            )
        )
    return cases


def sample() -> list[Case]:
    """A sixtieth of the lattice, and more heads than the tiles of a program take at once."""
    drawn = random.Random(1).sample(lattice(), 38)
    layouts = itertools.product((False, True), (False, True))
    return drawn + [Case("fp32", 2, 33, 11, 128, half_in, half_out, 32, 64, programs=1) for half_in, half_out in layouts]


# In the process of a batch ------------------------------------------------------------------------------------------


def placed(
    shape: tuple[int, int, int, int], view: str, dtype: torch.dtype, fill: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """A [b, h, t, d] tensor somewhere in a buffer full of `fill`, and that buffer."""
    b, h, t, d = shape
    inner, take = {
        "plain": ((b, h, t, d), lambda m: m),
        "heads": ((b, t, h, d), lambda m: m.transpose(1, 2)),
        "qkv": ((b, t, 3, h, d), lambda m: m[:, :, 1].transpose(1, 2)),
        "channels": ((b, h, d, t), lambda m: m.transpose(2, 3)),
        "odd": ((b, h, t, d + 5), lambda m: m[..., 3 : 3 + d]),
    }[view]
    buffer = torch.full((2 * GUARD + int(np.prod(inner)),), fill, dtype=dtype)
    return take(buffer[GUARD:-GUARD].view(inner)), buffer


def outside(tensor: torch.Tensor, buffer: torch.Tensor) -> torch.Tensor:
    """The entries of the buffer that are none of the tensor's."""
    free = torch.ones(buffer.shape, dtype=torch.bool)
    free.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())[:] = False
    return buffer[free]


def tables(case: Case, draw: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin with NaN around them."""
    dtype = torch.float64 if case.dtype == "fp64" else torch.float32
    rows = 1 if case.table in ("one", "expanded") else case.b
    memory = torch.full((rows, case.t + 2, case.n + 3, 2), float("nan"), dtype=dtype)[:, 1:-1, 1:-2]
    angle = torch.rand(rows, case.t, case.n, generator=draw, dtype=torch.float64) * 20 - 10
    memory[..., 0], memory[..., 1] = angle.sin(), angle.cos()
    sin, cos = memory.unbind(-1)
    if case.table != "pairs":  # cos alone lies densely: the two may have different strides
        cos = cos.contiguous()
    return (cos.expand(case.b, -1, -1), sin.expand(case.b, -1, -1)) if case.table == "expanded" else (cos, sin)


def expected(case: Case, x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair by pair in fp64, and the sizes of the terms that were added."""
    out, size = x.copy(), np.zeros_like(x)
    cos, sin = (np.broadcast_to(table[:, None], (case.b, case.h, case.t, case.n)) for table in (cos, sin))
    for i in range(case.n):
        first, second = (i, i + case.n) if case.half_in else (2 * i, 2 * i + 1)
        to_first, to_second = (i, i + case.n) if case.half_out else (2 * i, 2 * i + 1)
        a, b = x[..., case.start + first], x[..., case.start + second]
        c, s = cos[..., i], -sin[..., i] if case.back else sin[..., i]
        out[..., case.start + to_first], out[..., case.start + to_second] = a * c - b * s, b * c + a * s
        size[..., case.start + to_first] = np.abs(a * c) + np.abs(b * s)
        size[..., case.start + to_second] = np.abs(b * c) + np.abs(a * s)
    return out, size


def plainly(case: Case, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The same in plain torch, each operation rounded by itself."""
    turning = x[..., case.start : case.start + 2 * case.n].to(cos.dtype)
    parts = turning.chunk(2, -1) if case.half_in else (turning[..., ::2], turning[..., 1::2])
    c, s = cos[:, None], -sin[:, None] if case.back else sin[:, None]
    turned = parts[0] * c - parts[1] * s, parts[1] * c + parts[0] * s
    out = x.clone(memory_format=torch.contiguous_format)
    joined = torch.cat(turned, -1) if case.half_out else torch.stack(turned, -1).flatten(-2)
    out[..., case.start : case.start + 2 * case.n] = joined.to(x.dtype)
    return out


def fault(case: Case) -> str | None:
    """What is wrong with the kernel in this case."""
    from posenc.kernels.rotation import triton_rotation

    triton_rotation.PROGRAMS = case.programs
    draw = torch.Generator().manual_seed(hash((case.b, case.t, case.h, case.d, case.n, case.start)))
    dtype, shape, nan = DTYPES[case.dtype], (case.b, case.h, case.t, case.d), float("nan")
    x, x_buffer = placed(shape, case.view, dtype, nan)
    x.copy_(torch.randn(shape, generator=draw, dtype=torch.float64))
    cos, sin = tables(case, draw)
    exact, size = expected(case, x.double().numpy(), cos.double().numpy(), sin.double().numpy())
    plain, before = plainly(case, x, cos, sin), x_buffer.clone()
    out, out_buffer = (x, x_buffer) if case.in_place else placed(shape, case.view_out, dtype, 7.0)
    if not case.in_place:
        out.fill_(nan)
    beside = outside(out, out_buffer).clone()

    triton_rotation.rotate(x, cos, sin, case.start, case.half_in, case.half_out, case.back, out)

    if not torch.equal(outside(out, out_buffer).nan_to_num(9.0), beside.nan_to_num(9.0)):
        return "wrote beside the output"
    if not case.in_place and not torch.equal(x_buffer.nan_to_num(9.0), before.nan_to_num(9.0)):
        return "wrote to the input"
    if out.isnan().any():
        return f"{int(out.isnan().sum())} entries not written"
    arithmetic = ROUNDING["fp64" if case.dtype == "fp64" else "fp32"]  # two products and a sum, each rounded once
    rounding = np.abs(exact) * ROUNDING[case.dtype] + (2.0**-25 if case.dtype == "fp16" else 0.0)
    error = np.abs(out.double().numpy() - exact)
    if (error > (1 + 2.0**-8) * (2 * arithmetic * size + rounding * (size > 0))).any():
        return f"largest error {error.max():.3g}"
    return None if torch.equal(out, plain) else "not the bits of plain torch"


def far_fault(axis: int) -> str | None:
    """The same for strides of which a multiple is beyond 2^31, in a file with holes: what lies elsewhere is zero."""
    from posenc.kernels.rotation import triton_rotation

    shape = [1, 1, 1, 4]
    shape[axis] = 4
    strides = [4, 4, 4, 1]
    strides[axis] = 2**30
    with tempfile.NamedTemporaryFile() as file:
        memory = torch.from_numpy(np.memmap(file.name, dtype=np.float16, mode="w+", shape=(3 * 2**30 + 8,)))
        x, near = memory.as_strided(shape, strides), torch.arange(1.0, 1 + np.prod(shape)).view(shape).half()
        x.copy_(near)
        angle = torch.arange(2.0 * shape[0] * shape[2]).view(shape[0], shape[2], 2)
        case = Case("fp16", shape[0], shape[2], shape[1], 4, True, True, 2, 0)
        triton_rotation.rotate(x, angle.cos(), angle.sin(), 0, True, True, False, x)
        return None if torch.equal(x, plainly(case, near, angle.cos(), angle.sin())) else f"wrong along axis {axis}"


def round_as_a_device_does() -> None:
    """The interpreter cuts fp32 to bf16 off; devices round to nearest even (test_compiled reads cvt.rn in their code)."""
    from triton.runtime import interpreter

    theirs = interpreter._convert_float

    def convert(data, source, target, mode):
        if str(source) == "fp32" and str(target) == "bf16":
            rounded = torch.from_numpy(np.ascontiguousarray(data)).view(torch.float32).bfloat16()
            return rounded.view(torch.int16).numpy().view(np.uint16)
        return theirs(data, source, target, mode)

    interpreter._convert_float = convert


def compiled(capability: int, calls: list[dict[str, object]]) -> list[str]:
    """The PTX of every kernel that these calls of rotate compile, in order."""
    from triton.runtime import driver

    from posenc.kernels.rotation import triton_rotation
    from posenc.kernels.rotation.triton_kernel import turn

    driver.set_active(gpu := NoGPU(capability))
    for call in calls:
        size = {"b": 1, "h": 32, "t": 2048, "d": 128, "n": 64, "start": 0, "half_in": True, "half_out": True, **call}
        x = torch.empty(size["b"], size["h"], size["t"], size["d"], dtype=DTYPES[size.get("dtype", "bf16")])
        table = torch.empty(size["b"], size["t"], size["n"])
        triton_rotation.rotate(
            x, table, table, size["start"], size["half_in"], size["half_out"], False, torch.empty_like(x)
        )
    assert len(gpu.programs) == len(calls)
    return [kernel.asm["ptx"] for kernel in turn.device_caches[0][0].values()]


def batch(name: str, argument: str) -> object:
    if name == "compiled":
        return compiled(*json.loads(argument))
    round_as_a_device_does()
    if name == "far":
        return [far_fault(axis) for axis in range(4)]
    cases = {"sample": sample, "lattice": lattice}[name]()
    return [f"{why}: {case}" for case in cases if argument in ("all", case.dtype) and (why := fault(case))]


# The tests ----------------------------------------------------------------------------------------------------------


def in_a_process(name: str, argument: str, interpret: str = "1") -> object:
    path = os.pathsep.join([str(WHERE), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TRITON_INTERPRET": interpret, "TRITON_CACHE_DIR": cache, "PYTHONPATH": path}
        command = [sys.executable, __file__, name, argument]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


def test_the_sample_holds_every_value_of_every_axis():
    for of in Case.__dataclass_fields__:
        if of not in ("n", "start"):
            assert {getattr(case, of) for case in sample()} >= {getattr(case, of) for case in lattice()}, of


@pytest.mark.acceptance
def test_sample_of_the_lattice():
    assert in_a_process("sample", "all") == []


@pytest.mark.acceptance
@pytest.mark.parametrize("dtype", DTYPES)
def test_lattice(dtype):
    assert in_a_process("lattice", dtype) == []


@pytest.mark.acceptance
def test_rows_further_apart_than_32_bits_count():
    assert in_a_process("far", "along every axis") == [None] * 4


def instructions(ptx: str, name: str) -> set[str]:
    return set(re.findall(rf"\b{name}\.[\w.]+", ptx))


@pytest.mark.parametrize(("capability", "dtype"), first_only([(90, "bf16"), (80, "fp16"), (90, "fp32")]))
def test_compiled_code_reads_and_writes_words_of_16_bytes_and_fuses_no_arithmetic(capability, dtype):
    calls = [
        {"half_in": half_in, "half_out": half_out, "dtype": dtype}
        for half_in, half_out in itertools.product((False, True), (False, True))
    ]
    kernels = in_a_process("compiled", json.dumps([capability, calls]), interpret="0")
    assert len(kernels) == len(calls)
    for ptx in kernels:
        for name in ("ld", "st"):
            assert {one[-6:] for one in instructions(ptx, f"{name}[.]global")} == {"v4.b32"}
        assert instructions(ptx, "mul") >= {"mul.rn.f32"}, "only with .rn does ptxas keep the product apart"
        assert not instructions(ptx, "fma")
        cast = {"bf16": "cvt.rn.bf16", "fp16": "cvt.rn.f16"}.get(dtype)
        assert cast is None or any(one.startswith(cast) for one in instructions(ptx, "cvt"))


@pytest.mark.acceptance
def test_lengths_batches_and_heads_compile_few_kernels():
    sizes = [{"b": b, "h": h, "t": t} for b in (1, 2, 3) for h in (8, 32) for t in (16, 17, 100, 257, 1000, 2048)]
    assert len(in_a_process("compiled", json.dumps([90, sizes]), interpret="0")) == 1


def test_a_tile_holds_as_many_pairs_as_said_and_at_least_one_head_and_token():
    assert tile(1, 1, 4 * TILE_PAIRS) == tile(8, 1000, 4 * TILE_PAIRS) == (1, 1)
    for heads, tokens, pairs in itertools.product((1, 3, 8, 40), (1, 5, 1000), (1, 20, 64)):
        some_heads, some_tokens = tile(heads, tokens, pairs)
        width = 1 << (pairs - 1).bit_length()
        assert width * some_heads * some_tokens <= TILE_PAIRS
        assert 2 * heads > some_heads
        assert 2 * tokens > some_tokens


def test_refusals_name_the_argument():
    x, table = torch.zeros(2, 3, 5, 8), torch.zeros(2, 5, 4)
    for message, changed in {
        "cos, sin: expected \\[2 or 1, 5": {"cos": torch.zeros(3, 5, 4), "sin": torch.zeros(3, 5, 4)},
        "cos, sin: expected torch.float32": {"cos": table.double(), "sin": table.double()},
        "start: expected 0 to 0": {"start": 1},
        "out: expected": {"out": torch.zeros(2, 3, 5, 9)},
        "one device": {"out": torch.zeros(2, 3, 5, 8, device="meta")},
    }.items():
        given = {"x": x, "cos": table, "sin": table, "start": 0, "half_in": True, "half_out": True, "back": False, "out": x}
        with pytest.raises(ValueError, match=message):
            rotate(**{**given, **changed})


def test_why_not_is_said(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert why_not() == "there is no CUDA device"
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert why_not() is None
    assert available()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert why_not() == "triton is not installed"


if __name__ == "__main__":
    print(json.dumps(batch(*sys.argv[1:])))
