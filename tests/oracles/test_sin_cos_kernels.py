"""The C++ kernels for tables of sin and cos: what they write and what not, on any strides and threads."""

import ctypes
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from posenc import kernels
from posenc.kernels.sin_cos import native as module
from posenc.kernels.sin_cos.torch_operator import in_torch, table_in_torch

from .test_sin_cos import WIDE, anywhere, consecutive, formula, spread

if kernels.library() is None:
    pytest.skip(f"no kernels: {kernels.why_not()}", allow_module_level=True)


def test_ways_agree():
    """Bit for bit, except where the two fp64 values lie on either side of a rounding to fp32."""
    starts, coords = torch.tensor([0, 999_000]), torch.arange(990_000, 990_300)[None]
    for dtype, bound in ((torch.float64, 3e-10), (torch.float32, 6e-8)):
        for apart in (False, True):
            for plain, native in (
                (
                    in_plain_torch(starts[:, None] + torch.arange(300), dtype, True, apart),
                    consecutive(starts, 300, WIDE, dtype, apart),
                ),
                (in_plain_torch(coords, dtype, False, apart), anywhere(coords, WIDE, dtype, apart)),
            ):
                assert plain.stride() == native.stride()
                assert (plain - native).abs().max() <= bound
                if dtype == torch.float32:
                    assert (plain != native).float().mean() <= 1e-3


def in_plain_torch(coords, dtype, in_a_row, apart):
    arguments = coords, WIDE, (), dtype, in_a_row
    return torch.stack(in_torch(*arguments), -1) if apart else table_in_torch(*arguments)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("strides", ["neighbours", "planes", "scattered", "wide"])
@pytest.mark.parametrize(("rows", "length", "n"), [(1, 1, 1), (2, 33, 3), (3, 5, 64), (1, 300, 257), (2, 2048, 256)])
def test_kernels_fill_the_table_and_nothing_else(rows, length, n, strides, kind):
    """NaN before, NaN in every gap after; the last size is written past the caches."""
    pair = {"neighbours": 2, "planes": 1, "scattered": 3, "wide": 2}[strides]
    token = n * pair + (0 if strides in ("neighbours", "planes") else 64)
    row = length * token + (0 if strides != "wide" else 128)
    span, guard = rows * row, 64
    other = {"neighbours": 1, "planes": span + guard, "scattered": 1, "wide": 1}[strides]
    memory = torch.full((guard + span + (span + guard if strides == "planes" else 0) + guard,), math.nan, dtype=kind)
    table = memory.as_strided((rows, length, n, 2), (row, token, pair, other), guard)
    gaps = torch.ones_like(memory, dtype=torch.bool)
    gaps.as_strided(table.shape, table.stride(), guard).fill_(False)
    native, starts = module.functions(), torch.tensor([4, 900, -7])[:rows]
    omega = (ctypes.c_double * n)(*spread(n))
    for fill in ("consecutive", "anywhere"):
        memory.fill_(math.nan)
        if fill == "consecutive":
            native[0](starts.data_ptr(), rows, length, omega, n, *module.side_by_side(table), 1)
        else:
            coords = starts[:, None] + torch.arange(length)
            of_coords = (ctypes.c_int64 * 3)(*coords.stride(), 0)
            native[1](coords.data_ptr(), False, of_coords, rows, length, omega, None, n, *module.side_by_side(table), 1)
        assert memory[gaps].isnan().all()
        expected = formula([range(int(s), int(s) + length) for s in starts], spread(n))
        assert np.abs(table.double().numpy() - expected).max() <= (3.0e-8 if kind == torch.float32 else 2e-12)


def test_threads_give_the_same_bits():
    starts, coords = torch.tensor([0, 3]), torch.arange(5000)[None] * 7
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = consecutive(starts, 1000, WIDE, torch.float32), anywhere(coords, WIDE[:40], torch.float32)
        torch.set_num_threads(2)
        two = consecutive(starts, 1000, WIDE, torch.float32), anywhere(coords, WIDE[:40], torch.float32)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.acceptance
def test_one_result_without_kernels():
    """Another process, told to do without: fp32 tables of RoPE and Sinusoidal to one place."""
    code = (
        "import torch, posenc; from posenc import Positions; from posenc.encodings.rope import RoPE\n"
        "at = Positions.arange(1, 40, 7)\n"
        "tables = [posenc.sinusoidal_table(40, 12, start=5), *RoPE(16).tables(at, torch.float32)]\n"
        "print(torch.cat([table.flatten() for table in tables]).tolist())"
    )
    runs = []
    for changes in ({}, {"POSENC_WITHOUT_KERNELS": "1"}):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **changes}, check=True
        )
        runs.append(np.array(json.loads(done.stdout)))
    assert runs[0].shape == runs[1].shape == (40 * 12 + 2 * 40 * 8,)
    assert np.abs(runs[0] - runs[1]).max() <= 6e-8
