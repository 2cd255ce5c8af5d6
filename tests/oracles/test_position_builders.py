"""Positions own their memory, keep whole numbers in int64 and reals in float64, and refuse what would come out wrong."""

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.alibi import ALiBi
from posenc.encodings.shaw import Shaw
from posenc.encodings.t5 import T5
from posenc.support.sharding import shard_index

NARROW = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def test_changing_what_was_given_moves_no_position():
    lengths, coords = torch.tensor([3, 5]), torch.tensor([[0.5, 2.0]], dtype=torch.float64)
    start, places = torch.tensor([3, 5]), torch.tensor([[[0, 1]], [[2, 3]]])
    order, document = torch.tensor([[0, 1]]), torch.tensor([[0, 0]])
    made = [
        Positions.decode(lengths),
        Positions.at(coords),
        Positions(coords, order, document),
        Positions.arange(2, 2, start),
        Positions.mrope(places),
    ]
    before = [[tensor.clone() for tensor in (at.coords, at.order, at.document)] for at in made]
    for given in (lengths, coords, start, places, order, document):
        given += 1
    for at, parts in zip(made, before, strict=True):
        for now, then in zip((at.coords, at.order, at.document), parts, strict=True):
            assert torch.equal(now, then)


def test_a_cache_keeps_its_positions_while_lengths_are_counted_up():
    encoding, lengths = ALiBi(2), torch.tensor([4, 7])
    q, k = torch.randn(2, 2, 1, 8), torch.randn(2, 2, 2, 8)
    first = Positions.decode(lengths)
    lengths += 1
    both = Positions.cat([first, Positions.decode(lengths)])
    expected = Positions.at(torch.tensor([[4, 5], [7, 8]]))
    got = attend(q, k, k, encoding, Positions.decode(lengths), both, causal=False)
    assert torch.equal(got, attend(q, k, k, encoding, Positions.at(torch.tensor([[5], [8]])), expected, causal=False))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_narrow_integers_are_widened_and_do_not_wrap(dtype):
    largest = min(torch.iinfo(dtype).max, 1000)
    coords = torch.tensor([[0, largest // 2, largest]])
    narrow, wide = Positions.at(coords.to(dtype)), Positions.at(coords)
    assert narrow.coords.dtype == torch.int64
    assert narrow.shift(50).coords.tolist() == (coords + 50).tolist()
    assert narrow.shift(torch.tensor([100], dtype=torch.int8)).coords.tolist() == (coords + 100).tolist()
    x = torch.randn(1, 2, 3, 8)
    for encoding in (ALiBi(2), T5(2, bidirectional=True), Shaw(8)):
        assert torch.equal(attend(x, x, x, encoding, narrow), attend(x, x, x, encoding, wide))
    whole = Positions(coords.to(dtype), torch.tensor([[0, 1, 2]], dtype=dtype), torch.zeros(1, 3, dtype=dtype))
    assert {whole.coords.dtype, whole.order.dtype, whole.document.dtype} == {torch.int64}


def test_reals_are_kept_in_float64():
    at = Positions.at(torch.tensor([[0.1, 2.0**24]]))
    assert at.coords.dtype == torch.float64
    assert at.coords[0, 0] == torch.tensor(0.1).double()
    assert at.shift(1).coords[0, 1] == 2**24 + 1
    far = Positions.arange(1, 2, 2**40)
    assert far.shift(0.5).coords.tolist() == [[2**40 + 0.5, 2**40 + 1.5]]
    assert far.shift(torch.tensor([0.5])).coords.tolist() == [[2**40 + 0.5, 2**40 + 1.5]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.bool, torch.complex64, torch.uint64], ids=str)
def test_numbers_that_cannot_hold_positions_are_refused(dtype):
    coords = torch.zeros(1, 3).to(dtype)
    for build in (Positions.at, lambda c: Positions(c, torch.zeros(1, 3).long(), torch.zeros(1, 3).long())):
        with pytest.raises(TypeError, match="coords: expected integers or reals, got torch"):
            build(coords)
    with pytest.raises(TypeError, match="by: expected integers or reals, got torch"):
        Positions.arange(1, 3).shift(torch.zeros(1).to(dtype))


def test_positions_that_int64_cannot_hold_are_refused():
    with pytest.raises(ValueError, match=r"start, length: positions .* do not fit in int64"):
        Positions.arange(1, 3, 2**63 - 2)
    assert Positions.arange(1, 2, 2**63 - 2).coords.tolist() == [[2**63 - 2, 2**63 - 1]]
    with pytest.raises(ValueError, match="do not fit in int64"):
        Positions.arange(1, 3, torch.tensor([2**63 - 2]))
    with pytest.raises(ValueError, match="do not fit in int64"):
        Positions.arange(1, 3, 2**64)
    for start, by in ((2**63 - 3, 1), (-(2**63), -1), (2**62, 2**62), (0, 2**63), (0, -(2**64))):
        with pytest.raises(ValueError, match="int64"):
            Positions.arange(1, 3, start).shift(by)
    with pytest.raises(ValueError, match="do not fit in int64"):
        Positions.arange(2, 3, 5).shift(torch.tensor([0, 2**63 - 1]))
    assert Positions.arange(1, 1, -5).shift(-(2**63) + 5).coords.item() == -(2**63)


def test_wrong_shifts():
    at = Positions.arange(2, 3)
    for by in ("a", None, True, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="by: expected a finite number, got"):
            at.shift(by)
    for by in (torch.zeros(3).long(), torch.zeros(2, 1)):
        with pytest.raises(ValueError, match="by: expected a number, or one for each of 2 rows, got Tensor"):
            at.shift(by)


NO_ENDS = [[0, 2.9, 5], "012", None, 3, [0, True, 5], ["0", "2"], torch.tensor([0.0, 2.0]), torch.tensor([[0, 2]])]


@pytest.mark.parametrize("ends", NO_ENDS, ids=repr)
def test_ends_that_are_no_integers_are_refused(ends):
    with pytest.raises(ValueError, match="cu_seqlens: expected integers"):
        Positions.packed(ends)
    if ends is not None:
        with pytest.raises(ValueError, match="cu_seqlens: expected integers"):
            shard_index(8, 0, 2, cu_seqlens=ends)


@pytest.mark.parametrize("ends", [[0, 6, 2, 8], [0, 4, 4, 8], [0, 6], [2, 8], [], [0]], ids=repr)
def test_shards_of_ends_that_do_not_grow_to_the_length_are_refused(ends):
    with pytest.raises(ValueError, match="cu_seqlens: expected ends from 0 to 8 that grow"):
        shard_index(8, 0, 2, cu_seqlens=ends)


def test_integers_may_come_as_tensors_arrays_and_ranges():
    for ends in (torch.tensor([0, 1, 3], dtype=torch.int32), np.array([0, 1, 3]), (0, 1, 3)):
        assert Positions.packed(ends).coords.tolist() == [[0, 0, 1]]
        assert Positions.decode(ends).coords.tolist() == [[0], [1], [3]]
    assert Positions.decode(range(2)).coords.tolist() == [[0], [1]]


def test_take_wants_integers_that_are_there():
    at = Positions.arange(1, 5)
    for index in (torch.tensor([0.0, 1.0]), [0.5], torch.tensor([True, False, True, False, True]), "01", torch.tensor(3)):
        with pytest.raises(ValueError, match=r"index: expected integers \[n\]"):
            at.take(index)
    for index in ([5], [-6], torch.tensor([0, 9])):
        with pytest.raises(IndexError, match=r"index: there are tokens 0 … 4, got"):
            at.take(index)
    assert at.take([4, -1, 0]).coords.tolist() == [[4, 4, 0]]
    assert at.take(torch.tensor([1, 1], dtype=torch.uint8)).coords.tolist() == [[1, 1]]  # an index, not a mask


def test_parts_that_do_not_fit_together_are_refused():
    one = Positions.arange(1, 2)
    with pytest.raises(TypeError, match="parts: expected Positions, got 1"):
        Positions.cat([1, 2])
    for other in (Positions.arange(2, 2), Positions.grid(1, 2)):
        with pytest.raises(ValueError, match="parts: expected coords of one batch and the same axes"):
            Positions.cat([one, other])
