"""Positions by name: the numbers of the papers, by hand; random ones by their ranges, order, gaps and distribution."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

import posenc
from oracles.by_hand import close
from posenc import Positions
from posenc.catalogue.description import describe, written


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbers(at: Positions) -> np.ndarray:
    return at.coords.numpy()


def test_shape_shifts_every_row_by_its_own_number():
    got = numbers(posenc.positions_by("shape", batch=4000, length=3, max_shift=4, generator=generator()))
    assert (np.diff(got, axis=1) == 1).all()
    share = np.bincount(got[:, 0], minlength=5) / 4000
    assert len(share) == 5  # 0 and max_shift are both drawn, and nothing beyond
    assert np.abs(share - 1 / 5).max() < 0.03
    again = posenc.positions_by("shape", batch=4000, length=3, max_shift=4, generator=generator())
    assert torch.equal(again.coords, torch.from_numpy(got))
    assert numbers(posenc.positions_by("shape", batch=2, length=3, max_shift=0)).tolist() == [[0, 1, 2]] * 2


def test_randomized_positions_are_a_sorted_subset():
    got = numbers(posenc.positions_by("randomized", batch=4000, length=3, max_positions=6, generator=generator()))
    assert (np.diff(got, axis=1) > 0).all()
    share = np.bincount(got.ravel(), minlength=6) / 4000
    assert len(share) == 6
    assert np.abs(share - 1 / 2).max() < 0.03  # three of six


def test_pose_skips_once_and_covers_the_range():
    length, most = 8, 20
    got = numbers(posenc.positions_by("pose", batch=6000, length=length, max_positions=most, generator=generator()))
    assert got.min() == 0
    assert got.max() == most - 1
    steps = np.diff(got, axis=1)
    assert (steps >= 1).all()
    assert ((steps > 1).sum(axis=1) <= 1).all()
    assert (got[:, 0] == 0).all()
    skips = got[:, -1] - (length - 1)
    share = np.bincount(skips, minlength=most - length + 1) / 6000
    assert len(share) == 13
    assert np.abs(share - 1 / 13).max() < 0.02
    cuts = steps.argmax(axis=1)[skips > 0] + 1
    assert set(cuts) == {1, 2, 3, 4}  # within the first half, as the authors' code cuts
    assert np.abs(np.bincount(cuts)[1:] / len(cuts) - 1 / 4).max() < 0.03
    for wrong in (1, 21):
        with pytest.raises(ValueError, match="length: expected a whole number from 2 to max_positions=20"):
            posenc.positions_by("pose", batch=1, length=wrong, max_positions=20)


def test_pose_of_the_whole_range_is_consecutive():
    assert numbers(posenc.positions_by("pose", batch=3, length=5, max_positions=5)).tolist() == [[0, 1, 2, 3, 4]] * 3


def test_cape_shifts_and_stretches_rows_and_moves_tokens():
    sizes = {"batch": 5000, "length": 9, "generator": generator()}
    shifted = numbers(posenc.positions_by("cape", **sizes, max_shift=2.0, max_jitter=0.0, max_stretch=1.0))
    close(np.diff(shifted, axis=1), np.ones((5000, 8)))
    assert -2 <= shifted[:, 0].min() < -1.99
    assert 1.99 < shifted[:, 0].max() <= 2
    assert abs(shifted[:, 0].mean()) < 0.06
    moved = numbers(posenc.positions_by("cape", **sizes, max_shift=0.0, max_jitter=0.5, max_stretch=1.0)) - np.arange(9)
    assert 0.499 < np.abs(moved).max() <= 0.5
    assert abs(np.corrcoef(moved[:, 0], moved[:, 1])[0, 1]) < 0.05  # each token by itself
    stretched = numbers(posenc.positions_by("cape", **sizes, max_shift=0.0, max_jitter=0.0, max_stretch=1.5))
    factor = stretched[:, 1:] / np.arange(1, 9)
    close(factor, np.repeat(factor[:, :1], 8, axis=1))
    logarithm = np.log(factor[:, 0])
    assert -math.log(1.5) <= logarithm.min() < -0.4
    assert abs(logarithm.mean()) < 0.02  # even in the logarithm, not in the factor
    every = posenc.positions_by("cape", **sizes)
    assert (np.diff(numbers(every), axis=1) > 0).all()
    assert every.order[0].tolist() == list(range(9))
    assert posenc.positions_by(
        "cape", batch=1, length=4, max_shift=0.0, max_jitter=0.0, max_stretch=1.0
    ).coords.tolist() == [[0.0, 1.0, 2.0, 3.0]]
    for wrong in ({"max_jitter": 0.6}, {"max_shift": -1.0}, {"max_stretch": 0.9}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}: expected a number from"):
            posenc.positions_by("cape", batch=1, length=4, **wrong)


@pytest.mark.parametrize(("length", "expected"), [(3, [0, 1, 2]), (6, [0, 1, 2, 3, 4, 5]), (50, [0, 1, 2, 3, 4, 5])])
def test_streaming_llm_counts_within_the_cache(length, expected):
    got = posenc.positions_by("streaming_llm", length=length, sinks=2, window=4)
    assert got.coords.tolist() == [expected]


def test_streaming_llm_serves_keys_that_moved():
    """A token attends to sinks and to the last tokens as if the text between had never been."""
    rope = posenc.create("rope", d_head=8)
    keys = torch.randn(1, 2, 20, 8, dtype=torch.float64, generator=generator(1))
    cached = rope.rotate(keys, Positions.arange(1, 20), "key")
    kept = torch.cat([cached[:, :, :2], posenc.rerotate(cached[:, :, -4:], by=-14.0, encoding=rope)], dim=2)
    at = posenc.positions_by("streaming_llm", length=20, sinks=2, window=4)
    fresh = rope.rotate(torch.cat([keys[:, :, :2], keys[:, :, -4:]], dim=2), at, "key")
    close(kept, fresh.numpy(), atol=1e-12)


def test_grid_runs_row_by_row():
    got = posenc.positions_by("grid", height=2, width=3, batch=2, prefix=1)
    assert got.coords.tolist() == [[[-1, 0], [0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]] * 2


def test_pixels_end_at_two_pi():
    got = numbers(posenc.positions_by("pixels", height=2, width=4))[0]
    expected = [[y / (2 + 1e-6) * 2 * math.pi, x / (4 + 1e-6) * 2 * math.pi] for y in (1, 2) for x in (1, 2, 3, 4)]
    close(got, np.array(expected))


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 1.0)])
def test_patch_centres_lie_in_the_middle_of_their_share(low, high):
    got = numbers(posenc.positions_by("patch_centres", height=3, width=5, low=low, high=high))[0]
    span = Fraction(high) - Fraction(low)
    expected = [
        [float(Fraction(low) + span * (2 * n + 1) / (2 * size)) for n, size in ((y, 3), (x, 5))]
        for y in range(3)
        for x in range(5)
    ]
    close(got, np.array(expected))
    with pytest.raises(ValueError, match="low: expected less than high=0, got 0"):
        posenc.positions_by("patch_centres", height=1, width=1, low=0.0, high=0.0)


@pytest.mark.parametrize(("frames", "following"), [(1, 5), (4, 6)])
def test_mrope_ids_go_on_after_the_largest_number(frames, following):
    """Two words, frames of 3 rows and 2 columns, two words; transformers 5 would go on at 5 after four frames."""
    got = posenc.positions_by("mrope_ids", text=2, height=3, width=2, frames=frames, after=2).coords[0].tolist()
    image = [[2 + t, 2 + y, 2 + x] for t in range(frames) for y in range(3) for x in range(2)]
    largest = max(max(one) for one in image)
    assert largest + 1 == following
    assert got == [[0, 0, 0], [1, 1, 1], *image, [following] * 3, [following + 1] * 3]


@pytest.mark.parametrize("shift", [0, 1])
def test_windows_are_documents(shift):
    got = posenc.positions_by("windows", height=4, width=4, side=2, shift=shift)
    patches = [(y, x) for y in range(4) for x in range(4)]
    assert [tuple(one) for one in got.coords[0].tolist()] == patches
    window = [((y - shift) // 2, (x - shift) // 2) for y, x in patches]
    document = got.document[0].tolist()
    for i in range(16):
        for j in range(16):
            assert (document[i] == document[j]) == (window[i] == window[j])


def test_packed_documents_count_from_zero():
    got = posenc.positions_by("packed", lengths=[3, 1, 2])
    assert got.coords.tolist() == [[0, 1, 2, 0, 0, 1]]
    assert got.document.tolist() == [[0, 0, 0, 1, 2, 2]]
    with pytest.raises(ValueError, match="lengths: expected a whole number from 1, got 0"):
        posenc.positions_by("packed", lengths=[3, 0])


@pytest.mark.parametrize("name", posenc.catalogue.position_names())
def test_positions_suit_encodings(name):
    """Each gives a token an order, a document and coordinates that attention accepts."""
    given = {"batch": 2, "length": 9, "lengths": [4, 5], "height": 14, "width": 14, "text": 3}
    given |= {argument: written(python, length=9) for argument, python in posenc.catalogue.BY_NAME[name].arguments.items()}
    needed = describe(posenc.catalogue.BY_NAME[name])["sizes"]
    at = posenc.positions_by(name, **{one: given[one] for one in needed})
    axes = posenc.catalogue.BY_NAME[name].axes
    assert at.coords.ndim == (2 if axes == 1 else 3)
    assert axes == 1 or at.coords.shape[2] == axes
    width = 12 if axes <= 3 else 2 * axes
    encoding = posenc.create("rope", d_head=width, axes=axes)
    q, k, v = (torch.randn(at.batch, 2, at.length, width, generator=generator(n)) for n in range(3))
    assert posenc.attend(q, k, v, encoding, at).isfinite().all()
