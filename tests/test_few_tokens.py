"""Few tokens turned in one call that computes cos and sin within: the same bits, and other calls do not reach it."""

import itertools

import pytest
import torch

from posenc import Positions, kernels
from posenc.encodings.rope import RoPE
from posenc.frequencies import rotary
from posenc.kernels.rotation import few_tokens

built = pytest.mark.skipif(kernels.why_not() is not None, reason="the C++ kernels are not built")
LAYOUTS = ("half", "interleaved")


@pytest.fixture
def calls(monkeypatch) -> list[bytes]:
    """The calls that reach the kernel, as they are packed."""
    found: list[bytes] = []
    kernel = few_tokens.kernel()
    monkeypatch.setattr(few_tokens, "kernel", lambda: lambda packed: (found.append(packed), kernel and kernel(packed)))
    return found


@built
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_bits_and_strides_are_those_of_tables_made_first(dtype, calls):
    positions = (Positions.decode([5, 70000, 0]), Positions.arange(3, 1, 99), Positions.arange(1, 1, 99))
    long = (Positions.arange(3, 3, 9), Positions.arange(3, 3, torch.tensor([0, 1, 2**40])), Positions.arange(1, 3))
    forms = itertools.product(LAYOUTS, LAYOUTS, (12, 16), (False, True))
    for layout, returns, rotary_dim, trailing in forms:
        encoding = RoPE(16, layout=layout, returns=returns, rotary_dim=rotary_dim, trailing=trailing)
        for at in positions + long:
            q, k = (torch.randn(3, at.length, h, 16).to(dtype).transpose(1, 2) for h in (4, 2))
            calls.clear()
            got = encoding._rotate_both(q, k, at, at)
            assert len(calls) == 1
            prepared = encoding.prepare(at, torch.float64 if dtype == torch.float64 else torch.float32)
            expected = encoding._rotate_both(q, k, prepared, prepared)
            assert len(calls) == 1
            for mine, true in zip(got, expected, strict=True):
                assert torch.equal(mine, true), (layout, returns, rotary_dim, trailing, at)
                assert mine.stride() == true.stride()


@built
def test_inputs_of_any_strides_are_turned(calls):
    encoding, at = RoPE(16), Positions.decode([3, 8])
    q = torch.randn(2, 1, 1, 16).expand(2, 4, 1, 16)
    k = torch.randn(2, 2, 1, 32)[..., ::2]
    got = encoding._rotate_both(q, k, at, at)
    assert len(calls) == 1
    for mine, x in zip(got, (q, k), strict=True):
        assert torch.equal(mine, encoding.rotate(x.contiguous(), at, "query"))


@built
@pytest.mark.parametrize("sides", [("query",), ("query", "key", "value", "output")], ids=str)
def test_one_side_is_turned_so_too(sides, calls):
    encoding, at = RoPE(16, sides=sides, layout="half"), Positions.arange(2, 3, 7)
    x = torch.randn(2, 4, 3, 16)
    for side in ("query", "key", "value"):
        calls.clear()
        got = encoding.rotate(x, at, side)
        assert len(calls) == (side in sides)
        assert torch.equal(got, encoding.rotate(x, encoding.prepare(at), side))
    assert torch.equal(encoding.rotate(got, at, "output"), encoding.rotate(got, encoding.prepare(at), "output"))


@built
def test_positions_of_few_tokens_are_prepared_by_nothing(calls):
    encoding, at = RoPE(16), Positions.arange(2, 3, 7)
    with torch.no_grad():
        assert encoding.prepare(at) is at
        assert encoding.prepare(Positions.arange(2, few_tokens.FEW)).tables
        assert encoding.prepare(at.shift(0.5)).tables
        assert OfOwnTables(16).prepare(at).tables
        with pytest.raises((TypeError, ValueError), match="dtype"):
            encoding.prepare(at, "x")
        with pytest.raises(ValueError, match="1 coordinate"):
            encoding.prepare(at.replaced(coords=at.coords[..., None]))
    assert encoding.prepare(at).tables  # a gradient is made with tables, which all layers share


def rotated(encoding, dtype=torch.float32, at=None, length=1):
    q, k = torch.randn(2, 4, length, 16, dtype=dtype), torch.randn(2, 2, length, 16, dtype=dtype)
    at = Positions.arange(2, length, 7) if at is None else at
    return encoding._rotate_both(q, k, at, at)


class OfOwnTables(RoPE):
    def tables(self, at, dtype):
        return super().tables(at, dtype)


@pytest.mark.parametrize(
    "encoding",
    [
        OfOwnTables(16),
        RoPE(16, reverse=True),
        RoPE(16, frequencies=rotary(16).__class__(rotary(16).values, arithmetic="float32")),
        RoPE(16, frequencies=rotary(16).__class__(rotary(16).values, cos_sin_scale=1.1)),
    ],
    ids=["own tables", "reverse", "fp32", "scaled"],
)
def test_other_encodings_do_not_reach_it(encoding, calls):
    rotated(encoding)
    assert not calls


def test_other_calls_do_not_reach_it(calls):
    encoding, at = RoPE(16), Positions.arange(2, 1, 7)
    rotated(encoding, at=encoding.prepare(at))
    rotated(encoding, at=Positions.at(torch.tensor([[0.5], [2.5]])))
    rotated(encoding, at=at.shift(0.5))
    rotated(encoding, at=Positions.at(torch.tensor([[5, 0, 2], [1, 1, 7]])), length=3)
    encoding._rotate_both(torch.randn(2, 4, 1, 16), torch.randn(2, 4, 1, 16).bfloat16(), at, at)
    rotated(encoding, length=few_tokens.FEW)
    q = torch.randn(2, 4, 1, 16, requires_grad=True)
    encoding._rotate_both(q, q, at, at)
    torch.func.vmap(lambda x: encoding._rotate_both(x, x, at, at)[0])(torch.randn(3, 2, 4, 1, 16))
    assert not calls
    for wrong, message in ((torch.randn(2, 4, 2, 16), "tokens"), (torch.randn(2, 4, 1, 8), "d_head=16")):
        with pytest.raises(ValueError, match=message):
            encoding._rotate_both(wrong, wrong, at, at)
    assert not calls


def test_no_tokens_are_not_served(calls):
    none = torch.empty(2, 0, dtype=torch.int64)
    at, x = Positions(none, none, none, consecutive_in="row"), torch.empty(2, 4, 0, 16)
    assert few_tokens.turned_at((x, x), at, rotary(16), 0, True, True) is None
    assert not calls


def test_a_compiled_call_keeps_the_operators(calls, monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    at, x = Positions.arange(2, 1, 7), torch.randn(2, 4, 1, 16)
    assert few_tokens.turned_at((x, x), at, rotary(16), 0, True, True) is None
    assert not calls
