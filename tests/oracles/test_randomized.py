"""Randomised positions: sorted subsets drawn without replacement. Ruoss et al. 2023, section 3."""

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.alibi import ALiBi

from .by_hand import add, attention, close, draw, products, sees


def test_sorted_subset_of_the_positions_allowed():
    at = Positions.randomized(50, 7, 20, generator=torch.Generator().manual_seed(1))
    assert at.coords.shape == (50, 7)
    assert (at.coords.diff(dim=1) > 0).all()
    assert at.coords.min() == 0
    assert at.coords.max() == 19
    assert at.order.tolist() == [list(range(7))] * 50
    assert not at.document.any()
    assert at.consecutive_in is None
    assert at.coords.dtype == torch.int64


def test_all_of_them_when_as_many_as_allowed():
    assert Positions.randomized(2, 5, 5).coords.tolist() == [[0, 1, 2, 3, 4]] * 2


def test_rows_and_calls_differ_and_a_seed_repeats():
    def drawn(seed):
        return Positions.randomized(3, 6, 1000, generator=torch.Generator().manual_seed(seed)).coords

    first = drawn(1)
    assert len({tuple(row) for row in first.tolist()}) == 3
    assert torch.equal(first, drawn(1))
    assert not torch.equal(first, drawn(2))


def test_every_position_is_as_likely_as_another():
    """3000 draws of 3 of 8: each position 1125 times, give or take five standard deviations of 26.5."""
    coords = Positions.randomized(3000, 3, 8, generator=torch.Generator().manual_seed(3)).coords
    counts = np.bincount(coords.flatten().numpy(), minlength=8)
    assert np.abs(counts - 3000 * 3 / 8).max() < 5 * np.sqrt(3000 * 3 / 8 * 5 / 8)


def test_encodings_read_the_positions_drawn():
    q, k, v = (draw(seed, 2, 2, 5, 4) for seed in (1, 2, 3))
    at = Positions.randomized(2, 5, 400, generator=torch.Generator().manual_seed(4))
    places, order = at.coords.tolist(), [range(5)] * 2
    logits = add(products(q, k), lambda b, h, i, j: -(2.0 ** (-4 * (h + 1))) * abs(places[b][i] - places[b][j]))
    got = attend(*map(torch.from_numpy, (q, k, v)), ALiBi(2), at)
    close(got, attention(logits, v, sees(order, order)))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="max_positions: expected at least length=5, got 4"):
        Positions.randomized(1, 5, 4)
    with pytest.raises(ValueError, match="length: expected a whole number from 1"):
        Positions.randomized(1, 0, 4)
