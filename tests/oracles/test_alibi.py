"""ALiBi's slopes against the paper's construction, and its bias by loops. Press et al. 2021, section 3."""

import pytest
import torch

from cases import cases
from posenc import Positions, alibi_slopes, attend
from posenc.encodings.alibi import ALiBi

from . import papers


@cases("n", range(1, 129))
def test_slopes_of_the_paper_H1(n):
    assert alibi_slopes(n) == pytest.approx(papers.alibi(n), rel=1e-12)
    assert len(alibi_slopes(n)) == n


@cases("n", range(1, 129))
def test_slopes_from_the_power_above_H1(n):
    """MPT takes the power above, every second slope first and the ones between after: the same for a maximum of 8."""
    above = 1
    while above < n:
        above *= 2
    all_of_them = [2.0 ** (-8.0 * h / above) for h in range(1, above + 1)]
    mpt = all_of_them if above == n else (all_of_them[1::2] + all_of_them[0::2])[:n]
    assert alibi_slopes(n) == pytest.approx(mpt, rel=1e-12)


def test_published_slopes_H1():
    assert alibi_slopes(1) == (2.0**-8,)
    assert alibi_slopes(2) == (2.0**-4, 2.0**-8)
    assert alibi_slopes(6) == (0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125)  # not sorted, and right so
    assert alibi_slopes(8) == tuple(2.0**-h for h in range(1, 9))
    assert alibi_slopes(16)[:3] == pytest.approx((2**-0.5, 2**-1, 2**-1.5), rel=1e-15)
    assert alibi_slopes(12)[8:] == pytest.approx((2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5), rel=1e-15)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "8", None])
def test_a_number_of_heads_that_is_no_count_is_refused(n):
    with pytest.raises(ValueError, match="n_heads: expected a whole number from 1"):
        alibi_slopes(n)
    with pytest.raises(ValueError, match="n_heads: expected a whole number from 1"):
        ALiBi(n)


def test_slopes_of_ones_own():
    with pytest.raises(ValueError, match="slopes: expected a finite number for each of 3 heads"):
        ALiBi(3, slopes=(0.3, 0.1))
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        attend(*[torch.zeros(1, 2, 4, 3)] * 3, ALiBi(2), Positions.grid(2, 2))
