"""The bias of few tokens that `prepare` leaves with their positions: the bits of a call without it, never a stale one."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import posenc
from posenc import PositionalEncoding, Positions, attend
from posenc.encodings.alibi import ALiBi
from posenc.encodings.distance_table import DistanceTable
from posenc.encodings.sandwich import Sandwich
from posenc.encodings.t5 import T5
from posenc.support.tensors import FEW, carried_by_few

HEADS = 4
MADE: dict[str, Callable[[], PositionalEncoding]] = {
    "alibi": lambda: ALiBi(HEADS),
    "sandwich": lambda: Sandwich(HEADS, width=64),
    "t5": lambda: T5(HEADS, n_buckets=8, max_distance=16),
    "t5, both ways": lambda: T5(HEADS, n_buckets=8, max_distance=16, bidirectional=True),
    "distance_table": lambda: DistanceTable(HEADS, max_distance=5),
}
prepared = torch.no_grad()(lambda encoding, *given: encoding.prepare(*given))  # with gradients, tokens carry no bias
every = pytest.mark.parametrize("name", MADE)


def drawn(length: int, batch: int = 2, dtype: torch.dtype = torch.float32, d: int = 32) -> list[Tensor]:
    source = torch.Generator().manual_seed(length)
    return [torch.randn(batch, HEADS, length, d, generator=source).to(dtype) for _ in range(3)]


def carried(encoding: PositionalEncoding, at: Positions) -> Tensor:
    table = carried_by_few(encoding, at)
    assert table is not None
    return table


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_prepared_tokens_give_the_bits_of_others(name: str, dtype: torch.dtype) -> None:
    encoding = MADE[name]()
    for length in (2, 3, 7, 16, 31, 33, 63, FEW):
        q, k, v = drawn(length, dtype=dtype)
        at = Positions.arange(2, length)
        ready = prepared(encoding, at, torch.float64 if dtype == torch.float64 else torch.float32)
        carried(encoding, ready)
        for causal in {True, "causal_only" in encoding.traits}:
            with torch.no_grad():
                found, expected = (attend(q, k, v, encoding, one, causal=causal) for one in (ready, at))
            assert torch.equal(found, expected)


@every
def test_what_is_carried_is_read(name: str) -> None:
    encoding = MADE[name]()
    q, k, v = drawn(16)
    ready = prepared(encoding, Positions.arange(1, 16))
    with torch.no_grad():
        expected = attend(q, k, v, encoding, ready)
        table = ready.tables[encoding.identity][0]
        other = ready.replaced(tables={encoding.identity: (table.roll(1, dims=1).contiguous(),)})
        assert not torch.equal(attend(q, k, v, encoding, other), expected)


@every
def test_gradients_have_the_bits_of_others(name: str) -> None:
    encoding = MADE[name]()
    at = Positions.arange(2, 24)
    found = []
    for one in (at, prepared(encoding, at)):
        given = [x.requires_grad_() for x in drawn(24)]
        encoding.zero_grad()
        attend(*given, encoding, one).square().sum().backward()  # type: ignore[arg-type]
        found.append([x.grad for x in (*given, *encoding.parameters())])
    assert all(map(torch.equal, *found))


@every
def test_parts_of_prepared_tokens(name: str) -> None:
    """Cut, joined, repeated: a row of the table is right for its token wherever that goes."""
    encoding = MADE[name]()
    at = prepared(encoding, Positions.arange(1, 16))
    first, last = at.narrow(0, 8), at.narrow(8, 16)
    longer = Positions.cat([first, prepared(encoding, Positions.arange(1, 8, start=8))])
    other = Positions.cat([at, prepared(encoding, Positions.arange(1, 4, start=16))])
    again = Positions.cat([first, last])
    carried(encoding, again)
    mixed = Positions.cat(
        [prepared(encoding, Positions.arange(1, 8)), prepared(encoding, Positions.arange(1, 16)).narrow(8, 16)]
    )
    for tokens in (first, last, longer, other, again, mixed, at.expand(3), at.rows(0, 1), at.take(torch.tensor([3, 1, 2]))):
        q, k, v = drawn(tokens.length, batch=3)
        plain = tokens.replaced(tables={})
        with torch.no_grad():
            assert torch.equal(attend(q, k, v, encoding, tokens), attend(q, k, v, encoding, plain))


def test_few_tokens_from_zero_carry_a_bias_and_others_none() -> None:
    encoding = ALiBi(HEADS)
    for at in (
        Positions.arange(1, FEW + 1),
        Positions.arange(1, 1),
        Positions.arange(1, 0),
        Positions.arange(0, 8),
        Positions.arange(1, 8, start=1),
        Positions.arange(2, 8, start=torch.tensor([0, 3])),
        Positions.packed([0, 3, 8]),
        Positions.from_mask(torch.ones(1, 8)),
        Positions.at(torch.arange(8.0)[None]),
    ):
        assert not prepared(encoding, at).tables


@pytest.mark.parametrize("name", ["t5", "distance_table"])
def test_a_table_that_changes_is_read_anew(name: str) -> None:
    encoding = MADE[name]()
    q, k, v = drawn(16)
    plain = Positions.arange(1, 16)
    at = prepared(encoding, plain)
    before = attend(q, k, v, encoding, at)
    for change in (
        lambda: encoding.table.data.add_(torch.arange(encoding.table.shape[0])[:, None]),
        lambda: setattr(encoding, "table", torch.nn.Parameter(torch.randn_like(encoding.table))),
        lambda: encoding.bfloat16(),
        lambda: encoding.double(),
    ):
        change()
        with torch.no_grad():
            after = attend(q, k, v, encoding, at)
            assert torch.equal(after, attend(q, k, v, encoding, plain))
        assert not torch.equal(after, before)


@every
def test_tables_of_another_encoding_are_not_read(name: str) -> None:
    encoding = MADE[name]()
    at = prepared(encoding, Positions.arange(1, 16))
    part = encoding.heads(0, 2)
    q, k, v = (x[:, :2] for x in drawn(16))
    with torch.no_grad():
        assert torch.equal(attend(q, k, v, part, at), attend(q, k, v, part, Positions.arange(1, 16)))
    copied = copy.deepcopy(encoding)
    assert carried_by_few(copied, at) is not None  # of the same configuration; parameters are read where they are


def test_the_number_of_heads_is_checked_where_a_bias_is_carried() -> None:
    class Falling(posenc.DistanceBias):
        def at_distance(self, delta: Tensor) -> Tensor:
            return -torch.outer(torch.ones(2, dtype=torch.float64), delta.abs())

    encoding = Falling()
    q, k, v = drawn(16)
    with pytest.raises(ValueError, match="bias for 2 heads, q has 4"):
        attend(q, k, v, encoding, prepared(encoding, Positions.arange(1, 16)))


def test_buffers_may_change_and_are_not_kept() -> None:
    class Falling(posenc.DistanceBias):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("slope", torch.ones(HEADS))

        def at_distance(self, delta: Tensor) -> Tensor:
            return -torch.outer(self.slope, delta.abs().float())

    assert not prepared(Falling(), Positions.arange(1, 16)).tables


def test_prepared_in_inference_mode_and_trained() -> None:
    encoding = ALiBi(HEADS)
    with torch.inference_mode():
        at = prepared(encoding, Positions.arange(1, 16))
    q, k, v = (x.requires_grad_() for x in drawn(16))
    attend(q, k, v, encoding, at).sum().backward()
    expected = [q.grad, k.grad, v.grad]
    q, k, v = (x.requires_grad_() for x in drawn(16))
    attend(q, k, v, encoding, Positions.arange(1, 16)).sum().backward()
    assert all(map(torch.equal, expected, [q.grad, k.grad, v.grad]))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_beside_a_rotation(order: tuple[int, int]) -> None:
    """Positions with tables have those of all parts that read them, whatever the order."""
    parts = [posenc.create("rope", d_head=32), ALiBi(HEADS)]
    stack = posenc.Stack(*(parts[n] for n in order))
    q, k, v = drawn(16)
    with torch.no_grad():
        assert torch.equal(
            attend(q, k, v, stack, prepared(stack, Positions.arange(1, 16))),
            attend(q, k, v, stack, Positions.arange(1, 16)),
        )


def test_several_terms_are_summed_in_fp64() -> None:
    stack = posenc.Stack(ALiBi(HEADS), Sandwich(HEADS, width=64))
    q, k, v = drawn(16)
    with torch.no_grad():
        assert torch.equal(
            attend(q, k, v, stack, prepared(stack, Positions.arange(1, 16))),
            attend(q, k, v, stack, Positions.arange(1, 16)),
        )


@every
def test_a_compiled_call_reads_prepared_positions(name: str) -> None:
    encoding = MADE[name]()
    q, k, v = drawn(16)
    at = prepared(encoding, Positions.arange(1, 16))
    run = torch.compile(lambda q, k, v, at: attend(q, k, v, encoding, at), backend="eager", fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(run(q, k, v, at), attend(q, k, v, encoding, at))


@every
def test_under_vmap(name: str) -> None:
    encoding = MADE[name]()
    q, k, v = (torch.stack([x, x + 1]) for x in drawn(16))
    at = prepared(encoding, Positions.arange(2, 16))
    with torch.no_grad():
        found = torch.vmap(lambda q, k, v: attend(q, k, v, encoding, at))(q, k, v)
        expected = torch.stack([attend(a, b, c, encoding, at) for a, b, c in zip(q, k, v, strict=True)])
    torch.testing.assert_close(found, expected)


@every
def test_a_bias_of_another_dtype_is_not_read(name: str) -> None:
    encoding = MADE[name]()
    at = Positions.arange(2, 16)
    for given, dtype in ((torch.float64, torch.float32), (torch.float32, torch.float64)):
        q, k, v = drawn(16, dtype=given)
        with torch.no_grad():
            assert torch.equal(attend(q, k, v, encoding, prepared(encoding, at, dtype)), attend(q, k, v, encoding, at))


def test_where_gradients_are_recorded_tokens_carry_no_bias() -> None:
    """The inputs of a graph are then the same wherever its tokens are."""
    assert not ALiBi(HEADS).prepare(Positions.arange(1, 16)).tables
