"""Frequencies and wavelengths against the formulas and the figures of the papers."""

import math

import pytest

from posenc import frequencies, wavelengths

from .by_hand import power


@pytest.mark.parametrize("base", [100, 10000, 500000])
@pytest.mark.parametrize("d", range(1, 10))
def test_rotary_frequencies_fall_by_base_to_the_two_over_d(d, base):
    got = frequencies.rotary(d, float(base))
    assert len(got) == math.ceil(d / 2)
    for i, frequency in enumerate(got):
        assert math.isclose(frequency, float(power(base, 2 * i, d)), rel_tol=1e-14)


@pytest.mark.parametrize("base", [100, 10000])
@pytest.mark.parametrize("d", range(1, 10))
def test_the_other_denominator_ends_at_one_over_base(d, base):
    got = frequencies.to_the_end(d, float(base))
    n = math.ceil(d / 2)
    assert len(got) == n
    assert got[0] == 1.0
    for i, frequency in enumerate(got):
        assert math.isclose(frequency, float(power(base, i, max(n - 1, 1))), rel_tol=1e-14)
    if n > 1:
        assert math.isclose(got[-1], 1 / base, rel_tol=1e-14)


def test_published_figures_S12():
    """d=8: denominators 1, 10, 100, 1000; d=512: wavelengths from 6.28 to 60 611, which is 0.965 · 20000π."""
    assert [round(1 / f, 9) for f in frequencies.rotary(8)] == [1, 10, 100, 1000]
    waves = wavelengths(512)
    assert len(waves) == 256
    assert waves[0] == 2 * math.pi
    assert round(waves[-1]) == 60611
    assert round(waves[-1] / (20000 * math.pi), 3) == 0.965
    assert wavelengths(4, base=100.0) == pytest.approx([2 * math.pi, 20 * math.pi], rel=1e-14)


def test_base_is_10000_unless_said_and_may_be_below_one():
    assert frequencies.rotary(4) == pytest.approx((1.0, 0.01), rel=1e-14)
    assert frequencies.to_the_end(4) == pytest.approx((1.0, 0.0001), rel=1e-14)
    assert wavelengths(4)[1] == pytest.approx(200 * math.pi, rel=1e-14)
    assert frequencies.rotary(4, 0.25) == pytest.approx((1.0, 2.0), rel=1e-14)  # slow pairs first: odd, but well defined


def test_the_two_denominators_are_not_interchangeable():
    """d=512, pair 1, position 1000: the angles are 0.136 rad apart."""
    apart = 1000 * (frequencies.rotary(512)[1] - frequencies.to_the_end(512)[1])
    assert round(apart, 3) == 0.136


def test_frequencies_are_python_numbers():
    for spacing in (frequencies.rotary, frequencies.to_the_end, wavelengths):
        assert all(type(value) is float for value in spacing(6))
        assert isinstance(hash(spacing(6)), int)


@pytest.mark.parametrize("spacing", [frequencies.rotary, frequencies.to_the_end, wavelengths])
@pytest.mark.parametrize("d", [0, -2, 4.0, True, "8"])
def test_a_width_that_is_no_count_is_refused(spacing, d):
    with pytest.raises(ValueError, match="d: expected a whole number of channels"):
        spacing(d)


@pytest.mark.parametrize("base", [0, -1.0, math.nan, math.inf, "10000", None])
def test_a_base_that_is_not_positive_is_refused(base):
    with pytest.raises(ValueError, match="base: expected a positive number"):
        frequencies.rotary(8, base)
    with pytest.raises(ValueError, match="base: expected a positive number"):
        frequencies.to_the_end(8, base)
