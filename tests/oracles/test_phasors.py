"""Tables of sin and cos: blocks of consecutive positions and positions one by one, against the formula."""

import math

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from posenc import Positions
from posenc.phasors import anywhere, phasors

from .by_hand import close

consecutive = torch.ops.posenc.consecutive_phasors.default
FREQUENCIES = [1.0, 0.37, 0.01]


def expected(rows, frequencies=FREQUENCIES) -> np.ndarray:
    return np.array([[[(math.sin(p * f), math.cos(p * f)) for f in frequencies] for p in row] for row in rows])


WIDE = [10000.0 ** (-i / 512) for i in range(512)]  # so many frequencies that a block holds few positions


@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 63, 64, 65, 133])
@pytest.mark.parametrize("start", [0, -70, 4000])
def test_every_block_goes_on_where_the_last_one_ends(length, start):
    got = consecutive(torch.tensor([start, 5]), length, WIDE, torch.float64)
    angle = np.array([range(start, start + length), range(5, 5 + length)])[..., None] * np.array(WIDE)
    close(got, np.stack([np.sin(angle), np.cos(angle)], axis=-1), atol=4e-12)


def test_every_row_starts_where_it_says():
    starts = [5, 0, 1000]
    rows = [range(start, start + 70) for start in starts]
    close(consecutive(torch.tensor(starts), 70, FREQUENCIES, torch.float64), expected(rows))
    close(phasors(Positions.arange(3, 70, torch.tensor(starts)), [FREQUENCIES], torch.float64), expected(rows))
    close(phasors(Positions.arange(3, 70, 9), [FREQUENCIES], torch.float64), expected([range(9, 79)] * 3))
    shifted = Positions.arange(3, 70, torch.tensor(starts)).shift(torch.tensor([1, 20, -3]))
    moved = [range(start + by, start + by + 70) for start, by in zip(starts, (1, 20, -3), strict=True)]
    close(phasors(shifted, [FREQUENCIES], torch.float64), expected(moved))


def test_real_shift_of_consecutive_positions():
    """Still counting up by one, but from 0.5: not the blocks of whole positions."""
    at = Positions.arange(1, 5).shift(0.5)
    close(phasors(at, [FREQUENCIES], torch.float64), expected([[0.5, 1.5, 2.5, 3.5, 4.5]]))


def test_positions_one_by_one():
    rows = [[3, -8, 3, 700.5], [0, 1, 2, 3]]
    close(anywhere(torch.tensor(rows, dtype=torch.float64), FREQUENCIES, torch.float64), expected(rows))
    close(phasors(Positions.at(torch.tensor(rows)), [FREQUENCIES], torch.float64), expected(rows))


def test_positions_in_16_bits_are_not_rounded_again():
    """Integers of any width are exact; reals are what they are."""
    for dtype in (torch.int16, torch.int32):
        got = phasors(Positions.at(torch.tensor([[30_001, 257]], dtype=dtype)), [FREQUENCIES], torch.float64)
        close(got, expected([[30_001, 257]]))
    got = phasors(Positions.at(torch.tensor([[0.1]], dtype=torch.float16)), [FREQUENCIES], torch.float64)
    close(got, expected([[float(np.float16(0.1))]]))


def test_axes_stand_one_after_the_other():
    coords = [[[3, 10], [0, 7]]]
    got = phasors(Positions.at(torch.tensor(coords)), [[1.0, 0.5], [0.1]], torch.float64)
    both = np.concatenate([expected([[3, 0]], [1.0, 0.5]), expected([[10, 7]], [0.1])], axis=2)
    close(got, both)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_asked_dtype_comes_back(dtype):
    assert consecutive(torch.tensor([2]), 3, FREQUENCIES, dtype).dtype == dtype
    assert anywhere(torch.tensor([[2, 9]]), FREQUENCIES, dtype).dtype == dtype


def test_shapes_known_without_values():
    """The operator's fake: what a compiler reads must be what eager code makes."""
    operator = torch.ops.posenc.consecutive_phasors
    for dtype in (torch.float32, torch.float64):
        real = operator(torch.tensor([1, 2, 3]), 70, FREQUENCIES, dtype)
        with FakeTensorMode():
            fake = operator(torch.empty(3, dtype=torch.int64), 70, FREQUENCIES, dtype)
        assert (fake.shape, fake.dtype, fake.stride()) == (real.shape, real.dtype, real.stride())
        assert torch.equal(real, consecutive(torch.tensor([1, 2, 3]), 70, FREQUENCIES, dtype))


def test_fp32_is_one_rounding_away():
    rows = [range(999_000, 999_200)]
    for at in (Positions.arange(1, 200, 999_000), Positions.at(torch.arange(999_000, 999_200)[None])):
        got = phasors(at, [FREQUENCIES], torch.float32)
        assert np.abs(got.double().numpy() - expected(rows)).max() <= 3.1e-8
