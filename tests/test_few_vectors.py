"""The kernel for relative vectors on few tokens: the formula in fp64, on every processor, and what does not go to it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from posenc import Positions, attend, create, kernels
from posenc.attention.backends.relative import few
from posenc.attention.call import Call
from posenc.structure import Relative

pytestmark = pytest.mark.skipif(few._kernel() is None, reason="without C++ kernels, few tokens are taken by blocks")


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def exact(q, k, v, position, keys, values, first, scale):
    """The formula, a vector for every pair."""
    q, k, v, position, keys = (x.double() for x in (q, k, v, position, keys))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    at = torch.arange(q.shape[2])
    row = (at - at[:, None] - first).clamp(0, keys.shape[2] - 1)
    of_keys = keys.expand(*q.shape[:2], -1, -1)[:, :, row]  # [b, h, i, j, c]
    logits = (torch.einsum("bhid,bhjd->bhij", q, k) + torch.einsum("bhic,bhijc->bhij", position, of_keys)) * scale
    probs = logits.masked_fill(at > at[:, None], -torch.inf).softmax(-1)
    out = probs @ v
    if values is None:
        return out
    return out + torch.einsum("bhij,bhijd->bhid", probs, values.double().expand(*q.shape[:2], -1, -1)[:, :, row])


@pytest.mark.parametrize(
    ("length", "heads", "key_heads", "widths", "tables", "rows", "first", "values"),
    [
        (2, 1, 1, (64, 64, 64), (1, 1), 5, -2, True),
        (16, 4, 2, (64, 64, 64), (1, 1), 33, -16, True),
        (17, 4, 4, (64, 64, 64), (1, 1), 5, -2, True),  # rows on both sides count for all beyond
        (64, 6, 2, (80, 32, 48), (2, 6), 70, -63, True),  # a table for every row and head, widths of their own
        (40, 2, 2, (128, 64, 128), (1, 2), 3, 4, False),  # the table begins after the query: its first row for all
        (33, 2, 1, (64, 64, 64), (2, 1), 8, -40, False),  # and one that ends before most of them
    ],
)
def test_it_is_the_formula(length, heads, key_heads, widths, tables, rows, first, values):
    width, of_position, of_values = widths
    q, position = drawn(2, heads, length, width), drawn(2, heads, length, of_position, seed=1)
    k, v = drawn(2, key_heads, length, width, seed=2), drawn(2, key_heads, length, of_values, seed=3)
    keys, added = drawn(*tables, rows, of_position, seed=4), drawn(*tables, rows, of_values, seed=5) if values else None
    at = Positions.arange(2, length)
    call = Call.of(q, k, v, create("nope"), at, at)
    given = Relative(q, position, keys, added, torch.tensor([first]))
    assert few.can_serve(call, given)
    true = exact(q, k, v, position, keys, added, first, 0.1)
    allowed = 8 * 2**-23 * max(1.0, true.abs().max().item())
    torch.testing.assert_close(few.attend(call, given, 0.1).double(), true, rtol=0, atol=allowed)


def test_any_strides():
    q, k, v = (drawn(2, 9, 4, 64, seed=n).transpose(1, 2) for n in range(3))
    keys = drawn(1, 1, 2 * 5, 64, seed=4)[:, :, ::2]
    at = Positions.arange(2, 9)
    given = Relative(q, q, keys, keys, torch.tensor([-3]))
    found = few.attend(Call.of(q, k, v, create("nope"), at, at), given, 0.125)
    torch.testing.assert_close(found.double(), exact(q, k, v, q, keys, keys, -3, 0.125), rtol=0, atol=2e-6)


def test_large_logits():
    q, k, v = (drawn(1, 1, 32, 64, seed=n) for n in range(3))
    at, keys = Positions.arange(1, 32), drawn(1, 1, 5, 64, seed=3)
    given = Relative(50 * q, 50 * q, keys, None, torch.tensor([-2]))
    found = few.attend(Call.of(50 * q, k, v, create("nope"), at, at), given, 1.0)
    true = exact(50 * q, k, v, 50 * q, keys, None, -2, 1.0)
    assert (found - true).abs().max() < 1e-3  # logits of 2 000 round to 2^-13
    assert not attended_to_nan(v, keys).isfinite().any()


def attended_to_nan(v, keys):
    q = torch.full_like(v, torch.nan)
    at = Positions.arange(1, v.shape[2])
    return few.attend(Call.of(q, v, v, create("nope"), at, at), Relative(q, q, keys, None, torch.tensor([-2])), 1.0)


ENCODINGS = {
    "shaw": {},
    "shaw, keys only": {"values": False},
    "shaw, zero": {"outside": "zero", "max_distance": 4, "right": 1},
    "nezha": {},
    "transformer_xl": {},
    "wavelet": {},
}


def made(name, **sizes):
    return create(name.partition(",")[0], **sizes, **ENCODINGS[name])


@pytest.mark.parametrize("name", ENCODINGS)
@torch.no_grad()
def test_attend_gives_few_tokens_to_it(name, monkeypatch):
    calls, attended = [], few.attend
    monkeypatch.setattr(few, "attend", lambda *given: (calls.append(given[0].q.shape[2]), attended(*given))[1])
    encoding = made(name, d_model=256, n_heads=4)
    for length, options in ((2, {}), (16, {}), (64, {"scale": 0.3})):
        q, k, v = (drawn(2, 4, length, 64, seed=n) for n in range(3))
        at = Positions.arange(2, length, start=3)
        found = attend(q, k, v, encoding, encoding.prepare(at), **options)
        given = (x.double() for x in (q, k, v))
        exactly = encoding.double()
        true = attend(*given, exactly, exactly.prepare(at, torch.float64), impl="reference", **options)
        encoding.float()
        assert calls.pop() == length
        torch.testing.assert_close(found.double(), true, rtol=0, atol=4e-5 if "scale" in options else 4e-6)


@torch.no_grad()
def test_what_it_does_not_serve(monkeypatch):
    monkeypatch.setattr(few, "attend", lambda *given: pytest.fail("it was called"))
    encoding = create("shaw", d_head=64)
    q, k, v = (drawn(2, 4, 16, 64, seed=n) for n in range(3))
    at, longer = Positions.arange(2, 16), Positions.arange(2, 65)
    attend(q, k, v, encoding, at, causal=False)
    attend(q, k, v, encoding, at, Positions.arange(2, 16))
    attend(*(x.bfloat16() for x in (q, k, v)), encoding, at)
    attend(*(drawn(2, 4, 65, 64) for _ in "qkv"), encoding, longer)
    attend(*(drawn(2, 4, 16, 24) for _ in "qkv"), create("shaw", d_head=24), at)
    attend(*(x.mT.contiguous().mT for x in (q, k, v)), encoding, at)
    with torch.enable_grad():
        attend(q, k, v, encoding, at)
    torch.vmap(lambda q, k, v: attend(q, k, v, encoding, at))(*(x[None] for x in (q, k, v)))


PROGRAM = """
import hashlib, torch
from posenc import Positions, attend, create, kernels
source = torch.Generator().manual_seed(0)
shaw = create("shaw", d_head=64)
for x in shaw.parameters(): x.data.copy_(torch.randn(x.shape, generator=source))
q, k, v = (torch.randn(3, 8, 21, 64, generator=source) for _ in range(3))
for threads in (1, 3):
    torch.set_num_threads(threads)
    with torch.no_grad(): out = attend(q, k, v, shaw, Positions.arange(3, 21))
    print(kernels.instructions(), torch.get_num_threads(), hashlib.sha256(out.contiguous().numpy().tobytes()).hexdigest())
"""


@pytest.mark.acceptance
def test_every_processor_and_number_of_threads_gives_the_same_bits():
    found = {}
    for named in ("avx2", "avx512"):
        settings = {**os.environ, "POSENC_KERNELS": named}
        run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=settings, check=True)
        for line in run.stdout.splitlines():
            instructions, threads, digest = line.split()
            found[instructions, threads] = digest
    assert len(found) >= (4 if kernels.instructions() in ("avx512", "avx512_bf16") else 2)
    assert len(set(found.values())) == 1
