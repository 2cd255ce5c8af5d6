"""The optional operator for one decoded token: the same bits, and None for every call that it does not serve."""

import subprocess
import sys

import pytest
import torch

from posenc import Positions
from posenc.encodings.rope import RoPE
from posenc.frequencies import rotary
from posenc.kernels.rotation import door

# Builds the operator into a folder, then compares it with the way without it.
COMPARED = """
import itertools, sys, torch
from pathlib import Path
from posenc import Positions
from posenc.encodings.rope import RoPE
from posenc.kernels.rotation import build_door, door
door.LIBRARY = build_door.build(Path(sys.argv[1]) / "libdoor.so")
assert door.why_not() is None, door.why_not()
operator, count = door.operator(), 0
def without(call):
    door.operator = lambda: None
    try:
        return call()
    finally:
        door.operator = lambda: operator
torch.manual_seed(0)
layouts = ("half", "interleaved")
for dtype, layout, returns, rotary_dim, trailing, length in itertools.product(
    (torch.float32, torch.float64, torch.bfloat16, torch.float16), layouts, layouts, (12, 16), (False, True), (1, 3)
):
    encoding = RoPE(16, layout=layout, returns=returns, rotary_dim=rotary_dim, trailing=trailing)
    one = (Positions.decode([5, 70000, 0]), Positions.arange(3, 1, 99))
    for at in one if length == 1 else (Positions.arange(3, 3, 9),):
        halves = layout == "half", returns == "half"
        q, k = (torch.randn(3, length, h, 16).to(dtype).transpose(1, 2) for h in (4, 2))
        served = door.rotated_at(q, k, at, encoding.frequencies.values, encoding.start, *halves)
        got, expected = encoding.rotate_both(q, k, at, at), without(lambda: encoding.rotate_both(q, k, at, at))
        for one, mine, true in zip(served, got, expected, strict=True):
            assert torch.equal(mine, true) and torch.equal(one, true), (dtype, layout, returns, encoding, length)
            order = [[step for step, size in zip(x.stride(), x.shape) if size > 1] for x in (mine, true)]
            assert order[0] == order[1]
        count += 1
print(count)
"""


@pytest.mark.acceptance
@pytest.mark.skipif(sys.platform != "linux", reason="it is built on Linux only")
def test_it_compiles_and_gives_the_same_bits(tmp_path):
    ran = subprocess.run([sys.executable, "-c", COMPARED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) == 4 * 2 * 2 * 2 * 2 * 3


@pytest.fixture
def asked(monkeypatch) -> list[tuple]:
    """The calls that reach the operator."""
    calls: list[tuple] = []
    monkeypatch.setattr(door, "operator", lambda: lambda *given: calls.append(given) or ("q", "k"))
    return calls


def rotated(encoding, dtype=torch.float32, at=None, length=1):
    q, k = torch.randn(2, 4, length, 16, dtype=dtype), torch.randn(2, 2, length, 16, dtype=dtype)
    at = Positions.arange(2, length, 7) if at is None else at
    return encoding.rotate_both(q, k, at, at)


def test_a_decoded_token_is_one_call(asked):
    assert rotated(RoPE(16)) == ("q", "k")
    assert len(asked) == 1


class OfOwnTables(RoPE):
    def tables(self, at, dtype):
        return super().tables(at, dtype)


@pytest.mark.parametrize(
    "encoding",
    [
        OfOwnTables(16),
        RoPE(16, reverse=True),
        RoPE(16, sides=("query",)),
        RoPE(16, frequencies=rotary(16).__class__(rotary(16).values, arithmetic="float32")),
        RoPE(16, frequencies=rotary(16).__class__(rotary(16).values, cos_sin_scale=1.1)),
    ],
    ids=["own tables", "reverse", "one side", "fp32", "scaled"],
)
def test_other_encodings_do_not_reach_it(encoding, asked):
    rotated(encoding)
    assert not asked


def test_other_calls_do_not_reach_it(asked):
    encoding, at = RoPE(16), Positions.arange(2, 1, 7)
    rotated(encoding, at=encoding.prepare(at))
    rotated(encoding, at=Positions.at(torch.tensor([[0.5], [2.5]])))
    rotated(encoding, length=door.MOST)
    q = torch.randn(2, 4, 1, 16, requires_grad=True)
    encoding.rotate_both(q, q, at, at)
    torch.func.vmap(lambda x: encoding.rotate_both(x, x, at, at)[0])(torch.randn(3, 2, 4, 1, 16))
    assert not asked
    for wrong, message in ((torch.randn(2, 4, 2, 16), "tokens"), (torch.randn(2, 4, 1, 8), "d_head=16")):
        with pytest.raises(ValueError, match=message):
            encoding.rotate_both(wrong, wrong, at, at)
    assert not asked


def test_it_says_why_it_is_not_open(monkeypatch, tmp_path):
    door.why_not.cache_clear()
    monkeypatch.setattr(door, "LIBRARY", tmp_path / "libdoor.so")
    assert door.why_not() == "not built: python -m posenc.kernels.rotation.build_door builds it"
    (tmp_path / "libdoor.so").write_bytes(b"no library")
    door.why_not.cache_clear()
    assert door.why_not().startswith("does not load: ")
    door.why_not.cache_clear()
