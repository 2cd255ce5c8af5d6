"""Where tokens sit: every builder and view against plain lists, and the positions it must refuse."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils import _pytree

from posenc import Positions, shard_index
from posenc.encodings.learned import Learned
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.positions import may_attend, repeat_one_row

from .by_hand import close, each, sees


def rows(at: Positions) -> tuple[list, list, list]:
    return at.coords.tolist(), at.order.tolist(), at.document.tolist()


# Builders


def test_arange():
    at = Positions.arange(2, 3, 5)
    assert rows(at) == ([[5, 6, 7]] * 2, [[5, 6, 7]] * 2, [[0, 0, 0]] * 2)
    assert at.consecutive_in == "row"
    assert (at.batch, at.length) == (2, 3)
    assert Positions.arange(1, 2).coords.tolist() == [[0, 1]]
    assert Positions.arange(1, 2, -4).coords.tolist() == [[-4, -3]]


@pytest.mark.parametrize(("batch", "length"), [(2, 1), (3, 3), (2, 5)])
def test_arange_with_a_start_for_every_row_G6(batch, length):
    """One row per start, one column per token, also where the two counts are equal."""
    starts = [7, 0, 100][:batch]
    at = Positions.arange(batch, length, torch.tensor(starts, dtype=torch.int32))
    assert at.coords.tolist() == [list(range(start, start + length)) for start in starts]
    assert at.order.tolist() == at.coords.tolist()
    assert at.consecutive_in == "row"
    assert at.coords.dtype == torch.int64


def test_at():
    at = Positions.at(torch.tensor([[5, 9, 2, 2], [0, -1, 7, 1]]))
    assert rows(at) == ([[5, 9, 2, 2], [0, -1, 7, 1]], [[0, 1, 2, 3]] * 2, [[0] * 4] * 2)
    assert at.consecutive_in is None
    assert Positions.at(torch.tensor([[0, 1, 2]])).consecutive_in is None  # never inferred from values


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_from_mask_counts_real_tokens_F1_F2(dtype):
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 0, 1]]).to(dtype)
    at = Positions.from_mask(mask)
    real = [[t for t in range(5) if mask[b, t]] for b in range(3)]
    for b in range(3):
        assert at.coords[b, real[b]].tolist() == [0, 1, 2]
        assert at.order[b, real[b]].tolist() == [0, 1, 2]
        assert at.document[b].tolist() == [0 if t in real[b] else -1 for t in range(5)]
    assert at.coords.min() == 0
    assert at.consecutive_in == "document"


def test_a_mask_is_no_document_number_F4():
    """Numbers such as [1, 1, 2, 2, 2, 0] are refused; packed() makes 0, 1, 0, 1, 2 of their lengths."""
    with pytest.raises(ValueError, match="mask: expected 0 and 1 only; document numbers go to packed"):
        Positions.from_mask(torch.tensor([[1, 1, 2, 2, 2, 0]]))
    assert Positions.packed([0, 2, 5]).coords.tolist() == [[0, 1, 0, 1, 2]]


@pytest.mark.parametrize("make", [list, torch.tensor])
def test_packed_F3(make):
    at = Positions.packed(make([0, 1, 5, 7]))
    assert rows(at) == ([[0, 0, 1, 2, 3, 0, 1]], [[0, 1, 2, 3, 4, 5, 6]], [[0, 1, 1, 1, 1, 2, 2]])
    assert at.consecutive_in == "document"


@pytest.mark.parametrize("make", [list, torch.tensor])
def test_decode_is_the_length_so_far_F8(make):
    """After n tokens, at 0 … n-1, the next one is at n: a value of its own for every row."""
    assert rows(Positions.decode(make([4, 0, 9]))) == ([[4], [0], [9]], [[4], [0], [9]], [[0]] * 3)
    assert Positions.decode(torch.tensor([4], dtype=torch.int32)).coords.dtype == torch.int64


def test_grid_is_row_by_row_y_then_x():
    at = Positions.grid(2, 3, batch=2)
    assert at.coords.tolist() == [[[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]] * 2
    assert at.order.tolist() == [[0, 1, 2, 3, 4, 5]] * 2
    assert at.length == 6
    assert Positions.grid(3, 1).coords.tolist() == [[[0, 0], [1, 0], [2, 0]]]


@pytest.mark.parametrize(("batch", "tokens"), [(3, 5), (2, 3), (3, 3)])
def test_mrope_has_its_axes_first_F5_F11(batch, tokens):
    """[3, b, t] also where b or t is 3: the axis is said by the builder, not guessed from a size."""
    ids = torch.arange(3 * batch * tokens).view(3, batch, tokens)
    at = Positions.mrope(ids)
    assert at.coords.shape == (batch, tokens, 3)
    for axis, b, t in each(3, batch, tokens):
        assert at.coords[b, t, axis] == ids[axis, b, t]


# Views


def test_shift():
    at = Positions.arange(2, 3)
    assert at.shift(5).coords.tolist() == [[5, 6, 7]] * 2
    assert at.shift(torch.tensor([1, 10])).coords.tolist() == [[1, 2, 3], [10, 11, 12]]
    assert at.shift(0.5).coords.tolist() == [[0.5, 1.5, 2.5]] * 2
    assert at.shift(5).order.tolist() == at.order.tolist()
    assert at.shift(5).consecutive_in == "row"
    assert Positions.grid(1, 2, batch=2).shift(torch.tensor([1, 10])).coords.tolist() == [
        [[1, 1], [1, 2]],
        [[10, 10], [10, 11]],
    ]
    assert Positions.grid(1, 2).shift(3).coords.tolist() == [[[3, 3], [3, 4]]]


def test_shift_drops_tables_and_take_gathers_them():
    encoding = RoPE(4)
    at = encoding.prepare(Positions.arange(1, 5, 3))
    assert at.shift(1).tables == {}
    taken = at.take(torch.tensor([4, 0, 0]))
    assert taken.coords.tolist() == [[7, 3, 3]]
    assert taken.consecutive_in is None
    for mine, theirs in zip(taken.tables[encoding.identity], at.tables[encoding.identity], strict=True):
        assert torch.equal(mine, theirs[:, [4, 0, 0]])
    assert at.take(torch.arange(5)).consecutive_in is None


def test_cat_keeps_tables_that_all_have():
    rope, sine = RoPE(4), Sinusoidal(4)
    first = sine.prepare(rope.prepare(Positions.arange(1, 2)))
    second = rope.prepare(Positions.arange(1, 1, 2))
    both = Positions.cat([first, second])
    assert rows(both) == ([[0, 1, 2]], [[0, 1, 2]], [[0, 0, 0]])
    assert set(both.tables) == {rope.identity}
    assert torch.equal(both.tables[rope.identity][0], rope.tables(Positions.arange(1, 3), torch.float32)[0])
    assert both.consecutive_in == "row"
    assert Positions.cat([second, first]).consecutive_in is None
    assert Positions.cat([second, Positions.arange(1, 1)]).tables == {}


def test_cat_is_consecutive_only_where_everything_goes_on_in_every_row():
    """Coordinates that go on do not suffice: a fast path reads the causal order and the document off the first token."""
    first, start = Positions.arange(2, 3, torch.tensor([0, 4])), torch.tensor([3, 7])
    assert Positions.cat([first, Positions.arange(2, 2, start)]).consecutive_in == "row"
    assert (
        Positions.cat([first, Positions.arange(2, 2, torch.tensor([3, 9]))]).consecutive_in is None
    )  # the second row has a gap
    assert (
        Positions.cat([first, Positions.arange(2, 2, torch.tensor([2, 7]))]).consecutive_in is None
    )  # the first row overlaps
    moved = Positions.arange(2, 2).shift(start)  # coordinates go on, the causal order begins again
    both = Positions.cat([first, moved])
    assert rows(both)[:2] == ([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]], [[0, 1, 2, 0, 1], [4, 5, 6, 0, 1]])
    assert both.consecutive_in is None
    other = replace(Positions.arange(2, 2, start), document=torch.ones(2, 2, dtype=torch.int64))  # another document
    assert Positions.cat([first, other]).consecutive_in is None


def test_a_run_that_all_rows_share_is_kept_once():
    """Of decoded tokens too: a bias of positions is then computed once for a batch. A gap ends the run, not the values."""
    held = Positions.arange(3, 5, 2)
    longer = Positions.cat([held, Positions.decode([7, 7, 7]), Positions.arange(3, 2, 8)])
    assert rows(longer) == ([[2, 3, 4, 5, 6, 7, 8, 9]] * 3, [[2, 3, 4, 5, 6, 7, 8, 9]] * 3, [[0] * 8] * 3)
    assert longer.consecutive_in == "row"
    assert repeat_one_row(longer)
    gap = Positions.cat([held, Positions.decode([8, 8, 8])])
    assert rows(gap)[0] == [[2, 3, 4, 5, 6, 8]] * 3
    assert gap.consecutive_in is None
    apart = Positions.cat([held, Positions.decode([7, 8, 7])])
    assert rows(apart)[0] == [[2, 3, 4, 5, 6, n] for n in (7, 8, 7)]
    assert not repeat_one_row(apart)
    carried = held.replaced(states={"it": (torch.rand(3, 5),)})  # what was read of a row is its own
    assert torch.equal(Positions.cat([carried, carried.replaced()]).states["it"][0][:, :5], carried.states["it"][0])


def test_cat_of_two_precisions_does_not_pass_fp32_tables_for_fp64():
    """Promoted to fp64 they would still be wrong by an fp32 rounding."""
    encoding, x = Sinusoidal(4), torch.zeros(1, 4, 4, dtype=torch.float64)
    parts = [encoding.prepare(Positions.arange(1, 2, 1000)), encoding.prepare(Positions.arange(1, 2, 1002), torch.float64)]
    for both in (Positions.cat(parts), Positions.cat(parts[::-1]).take(torch.tensor([2, 3, 0, 1]))):
        try:
            got = encoding.embed(x, both)
        except ValueError:
            continue  # saying so is as good
        close(got, encoding.embed(x, Positions.arange(1, 4, 1000)))


def test_expand_to():
    at = RoPE(4).prepare(Positions.arange(1, 3))
    assert at.expand(1) is at
    wide = at.expand(4)
    assert rows(wide) == ([[0, 1, 2]] * 4, [[0, 1, 2]] * 4, [[0, 0, 0]] * 4)
    assert all(table.shape[0] == 4 for tables in wide.tables.values() for table in tables)
    assert wide.consecutive_in == "row"
    with pytest.raises(ValueError, match="have 4 rows, cannot serve a batch of 2"):
        wide.expand(2)
    moved = at.to("meta")
    assert {moved.coords.device.type, moved.order.device.type, moved.document.device.type} == {"meta"}
    assert {table.device.type for tables in moved.tables.values() for table in tables} == {"meta"}


def test_is_a_pytree_and_survives_copies():
    at = Sinusoidal(4).prepare(RoPE(4).prepare(Positions.arange(2, 3, 1)))
    leaves, spec = _pytree.tree_flatten(at)
    assert len(leaves) == 3 + 2 + 1
    for other in (_pytree.tree_unflatten(leaves, spec), copy.deepcopy(at), pickle.loads(pickle.dumps(at))):
        assert rows(other) == rows(at)
        assert other.consecutive_in == "row"
        assert list(other.tables) == list(at.tables)
        for owner in at.tables:
            assert all(map(torch.equal, other.tables[owner], at.tables[owner]))
    assert _pytree.treespec_loads(_pytree.treespec_dumps(spec)) == spec  # as torch.export writes it
    doubled = _pytree.tree_map(lambda leaf: leaf * 2, at)
    assert doubled.coords.tolist() == [[2, 4, 6]] * 2


@pytest.mark.parametrize("at", [Positions.arange(2, 3), Positions.from_mask(torch.ones(2, 3)), Positions.decode([3, 5])])
def test_coords_and_order_are_two_inputs_of_an_exported_graph(at):
    """Coordinates that move later, while the order stays, are read where they moved."""

    class Coordinates(torch.nn.Module):
        def forward(self, at):
            return at.coords * 1

    exported = torch.export.export(Coordinates(), (at,)).module()
    assert torch.equal(exported(at.shift(5)), at.coords + 5)


def test_builders_put_everything_on_the_device_asked_for_C6():
    meta = torch.device("meta")
    for at in (
        Positions.arange(2, 3, device=meta),
        Positions.grid(2, 2, device=meta),
        Positions.from_mask(torch.ones(2, 3, device=meta)),
        Positions.at(torch.zeros(2, 3, device=meta)),
        Positions.randomized(2, 3, 9, device=meta),
        Positions.arange(2, 3, torch.zeros(2, dtype=torch.int64, device=meta)),
    ):
        assert {at.coords.device.type, at.order.device.type, at.document.device.type} == {"meta"}


# Context parallelism


def test_zigzag_with_documents_F10():
    """Megatron's case: ends [0, 4, 8], rank 0 of 2 holds [0, 3, 4, 7]."""
    assert shard_index(8, 0, 2, zigzag=True, cu_seqlens=[0, 4, 8]).tolist() == [0, 3, 4, 7]
    assert shard_index(8, 1, 2, zigzag=True, cu_seqlens=[0, 4, 8]).tolist() == [1, 2, 5, 6]
    assert shard_index(8, 0, 2, cu_seqlens=[0, 4, 8]).tolist() == [0, 1, 4, 5]
    assert shard_index(8, 1, 2, cu_seqlens=[0, 4, 8]).tolist() == [2, 3, 6, 7]


def test_shards_of_one_document_F10():
    assert [shard_index(8, rank, 4).tolist() for rank in range(4)] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [shard_index(8, rank, 4, zigzag=True).tolist() for rank in range(4)] == [[0, 7], [1, 6], [2, 5], [3, 4]]
    assert shard_index(12, 1, 2, zigzag=True).tolist() == [3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("zigzag", [False, True])
@pytest.mark.parametrize("ends", [None, [0, 12, 36, 48]])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_token_is_held_once_by_equal_shards_F10(size, ends, zigzag):
    shards = [shard_index(48, rank, size, zigzag=zigzag, cu_seqlens=ends).tolist() for rank in range(size)]
    assert sorted(index for shard in shards for index in shard) == list(range(48))
    assert {len(shard) for shard in shards} == {48 // size}
    at = Positions.packed(ends or [0, 48])
    for rank, shard in enumerate(shards):
        part = at.shard(rank, size, zigzag=zigzag, cu_seqlens=ends)
        assert part.coords.tolist() == [at.coords[0, shard].tolist()]
        assert part.order.tolist() == [shard]
        assert part.document.tolist() == [at.document[0, shard].tolist()]


def test_zigzag_gives_every_rank_the_same_causal_work_F10():
    work = {sum(index + 1 for index in shard_index(32, rank, 4, zigzag=True).tolist()) for rank in range(4)}
    assert len(work) == 1


# Who sees whom


@pytest.mark.parametrize("causal", [True, False])
def test_may_attend_by_loops(causal):
    order_q, order_k = [[3, 0, 5], [2, 2, 1]], [[0, 3, 4, 5], [1, 2, 9, 0]]
    document_q, document_k = [[0, 0, -1], [1, 0, 0]], [[0, 1, 0, -1], [1, 0, 0, -1]]

    def at(order, document):
        return Positions(torch.zeros(2, len(order[0])), torch.tensor(order), torch.tensor(document))

    got = may_attend(at(order_q, document_q), at(order_k, document_k), causal)
    may = sees(order_q, order_k, document_q, document_k, causal)
    assert got.shape == (2, 1, 3, 4)
    for b, i, j in each(2, 3, 4):
        assert got[b, 0, i, j].item() == may(b, i, j), (b, i, j)


@pytest.mark.parametrize(("queries", "keys"), [(1, 5), (2, 5), (5, 2)])
def test_causal_alignment_where_the_counts_differ_F13(queries, keys):
    """The last queries of a longer sequence see all before them; a mask aligned to the top left would not."""
    start = max(keys - queries, 0)
    got = may_attend(Positions.arange(1, queries, start), Positions.arange(1, keys), causal=True)
    assert got[0, 0].tolist() == [[j <= start + i for j in range(keys)] for i in range(queries)]


# Random histories: whatever is done to positions, the plain lists have it done too.

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("shift"), st.integers(-50, 50)),
        st.tuples(st.just("take"), st.lists(st.integers(0, 10**6), min_size=1, max_size=7)),
        st.tuples(st.just("cat"), st.integers(0, 20)),
        st.tuples(st.just("prepare"), st.integers(0, 1)),
        st.tuples(st.just("shard"), st.integers(0, 3)),
    ),
    max_size=7,
)
BUILDERS = st.sampled_from(["arange", "at", "packed", "from_mask"])


def built(name: str) -> Positions:
    return {
        "arange": lambda: Positions.arange(1, 6, 4),
        "at": lambda: Positions.at(torch.tensor([[7, 3, 3, -2, 90]])),
        "packed": lambda: Positions.packed([0, 2, 6]),
        "from_mask": lambda: Positions.from_mask(torch.tensor([[0, 1, 1, 0, 1]])),
    }[name]()


@settings(max_examples=150)
@given(builder=BUILDERS, steps=STEPS)
def test_any_history_equals_plain_lists_C1_C2(builder, steps):
    """And tables carried along equal tables computed anew from the coordinates alone."""
    encodings = [RoPE(6), Sinusoidal(5)]
    at = built(builder)
    coords, order, document = (one[0] for one in rows(at))
    for step, value in steps:
        if step == "shift":
            at, coords = at.shift(value), [c + value for c in coords]
        elif step == "take":
            index = [i % len(coords) for i in value]
            at = at.take(torch.tensor(index))
            coords, order, document = ([one[i] for i in index] for one in (coords, order, document))
        elif step == "cat":
            more = Positions.arange(1, 2, value)
            at = Positions.cat([at, more])
            new = [value, value + 1]
            coords, order, document = [*coords, *new], [*order, *new], [*document, 0, 0]
        elif step == "shard" and len(coords) % 2 == 0:
            at = at.shard(value % 2, 2)
            half = slice(len(coords) // 2) if value % 2 == 0 else slice(len(coords) // 2, None)
            coords, order, document = coords[half], order[half], document[half]
        elif step == "prepare":
            at = encodings[value].prepare(at)
    wide = at.expand(3)
    assert rows(wide) == ([coords] * 3, [order] * 3, [document] * 3)
    if at.consecutive_in == "row":
        assert coords == list(range(coords[0], coords[0] + len(coords)))
        assert set(document) == {0}
    plain = Positions.at(torch.tensor([coords]))
    for encoding in encodings:
        if encoding.identity in at.tables:
            for carried, fresh in zip(at.tables[encoding.identity], encoding.tables(plain, torch.float32), strict=True):
                np.testing.assert_allclose(carried.numpy(), fresh.numpy(), atol=6.1e-8, rtol=0)


# What is refused


def test_wrong_builders_arguments():
    with pytest.raises(ValueError, match="batch: expected a whole number from 0, got -1"):
        Positions.arange(-1, 3)
    with pytest.raises(ValueError, match="length: expected a whole number from 0, got -1"):
        Positions.arange(1, -1)
    for wrong in (2.0, True, "2", torch.tensor(2)):
        with pytest.raises(ValueError, match="length: expected a whole number from 0"):
            Positions.arange(1, wrong)
    with pytest.raises(TypeError, match=r"start: expected an integer, got 0\.5.*Positions\.at"):
        Positions.arange(1, 2, 0.5)
    for start in (torch.tensor([1, 2]), torch.tensor([1.0]), torch.tensor(3)):
        with pytest.raises(ValueError, match=r"start: expected an integer or integers \[b=1\]"):
            Positions.arange(1, 2, start)
    for coords in (torch.arange(3), [[0, 1]], torch.tensor(3)):
        with pytest.raises(ValueError, match="coords: expected a tensor"):
            Positions.at(coords)
    for mask in (torch.ones(3), [[1, 1]], torch.ones(1, 2, 3)):
        with pytest.raises(ValueError, match="mask: expected a tensor"):
            Positions.from_mask(mask)
    for ends in ([], [0], [1, 3], [0, 3, 3], [0, 4, 2]):
        with pytest.raises(ValueError, match="cu_seqlens: expected 0 and then growing ends"):
            Positions.packed(ends)
    for lengths in ([1.5], torch.tensor([[1]]), 3):
        with pytest.raises(ValueError, match=r"lengths: expected integers \[b\]"):
            Positions.decode(lengths)
    for size in ((0, 3), (3, 0)):
        with pytest.raises(ValueError, match="expected a whole number from 1, got 0"):
            Positions.grid(*size)
    for ids in (torch.zeros(2, 3), [[[1]]], torch.zeros(1, 2, 3, 4)):
        with pytest.raises(ValueError, match="position_ids: expected a tensor"):
            Positions.mrope(ids)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_positions_that_are_no_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="coords: expected finite positions, got NaN or infinity"):
        Positions.at(torch.tensor([[0.0, bad]]))


def test_wrong_parts():
    whole, order = torch.zeros(1, 3, dtype=torch.int64), torch.zeros(1, 3, dtype=torch.int64)
    with pytest.raises(TypeError, match=r"coords: expected integers or reals, got torch\.bool; a mask goes to from_mask"):
        Positions(whole.bool(), order, order)
    with pytest.raises(TypeError, match="coords: expected integers or reals"):
        Positions(whole.to(torch.complex64), order, order)
    with pytest.raises(TypeError, match="order: expected a tensor, got list"):
        Positions(whole, [[0, 1, 2]], order)
    with pytest.raises(TypeError, match=r"document: expected integers, got torch\.float32"):
        Positions(whole, order, order.float())
    with pytest.raises(ValueError, match=r"document: expected the \[b, t\] of coords, \[1, 3\], got \[1, 2\]"):
        Positions(whole, order, order[:, :2])
    with pytest.raises(ValueError, match=r"coords: expected \[b, t\] or \[b, t, axes\], got \[3\]"):
        Positions(whole[0], order, order)


def test_wrong_shards():
    for rank, size in ((2, 2), (-1, 2)):
        with pytest.raises(ValueError, match="rank: expected 0"):
            shard_index(8, rank, size)
    for wrong in (0, -1, True, 2.0):
        with pytest.raises(ValueError, match="size: expected a whole number from 1"):
            shard_index(8, 0, wrong)
    with pytest.raises(ValueError, match="6 tokens cannot be cut into 4 equal chunks"):
        shard_index(6, 0, 2, zigzag=True)
    with pytest.raises(ValueError, match="length: 3 tokens cannot be cut into 2"):
        shard_index(8, 0, 2, cu_seqlens=[0, 3, 8])
    for ends in ([0, 4], [1, 8], [0, 12]):
        with pytest.raises(ValueError, match="cu_seqlens: expected ends from 0 to 8"):
            shard_index(8, 0, 2, cu_seqlens=ends)


def test_learned_positions_after_a_history_are_checked_all_the_same_J2():
    at = Positions.arange(1, 3).shift(8)
    with pytest.raises(ValueError, match="position 10 is outside 0 … 9"):
        Learned(4, 10).embed(torch.zeros(1, 3, 4), at)
