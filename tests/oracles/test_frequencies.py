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


@pytest.mark.parametrize(
    ("spacing", "name"), [(frequencies.rotary, "d"), (frequencies.to_the_end, "d"), (wavelengths, "d_model")]
)
@pytest.mark.parametrize("d", [0, -2, 4.0, True, "8"])
def test_a_width_that_is_no_count_is_refused(spacing, name, d):
    with pytest.raises(ValueError, match=f"^{name}: expected a whole number from 1"):
        spacing(d)


@pytest.mark.parametrize("base", [0, -1.0, math.nan, math.inf, "10000", None])
def test_a_base_that_is_not_positive_is_refused(base):
    with pytest.raises(ValueError, match="base: expected a positive number"):
        frequencies.rotary(8, base)
    with pytest.raises(ValueError, match="base: expected a positive number"):
        frequencies.to_the_end(8, base)


# Some of the channels only ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d_head", "fraction", "width"), [(128, 0.25, 32), (80, 0.5, 40), (64, 1.0, 64), (192, 0.334, 64)])
def test_partial_is_rotary_of_the_channels_that_turn(d_head, fraction, width):
    got = frequencies.partial(d_head, 5e5, fraction)
    assert got.values == frequencies.rotary(width, 5e5).values
    assert (got.base, got.width, len(got)) == (5e5, width, width // 2)
    assert "partial(" in got.values_from


def test_partial_refuses_odd_widths_unless_told_to_keep_them():
    """100 · 0.25 = 25: transformers turns 26 channels with 25 in the exponent."""
    with pytest.raises(ValueError, match="odd=True turns 26 channels"):
        frequencies.partial(100, 1e4, 0.25)
    got = frequencies.partial(100, 1e4, 0.25, odd=True)
    assert len(got) == 13
    assert got.values == pytest.approx([1e4 ** (-2 * i / 25) for i in range(13)], rel=1e-14)
    with pytest.raises(ValueError, match="is 0 channels"):
        frequencies.partial(16, 1e4, 0.01, odd=True)


def test_proportional_keeps_the_whole_width_in_the_exponent():
    """Gemma 4: a quarter of 256 is 32 pairs, down to 0.035 where `partial` falls to 1.5e-6, and 96 that stand still."""
    whole, part = frequencies.proportional(256, 1e6, 0.25), frequencies.partial(256, 1e6, 0.25)
    assert len(whole) == 128
    assert whole[:32] == pytest.approx([1e6 ** (-i / 128) for i in range(32)], rel=1e-14)
    assert whole[32:] == (0.0,) * 96
    assert (round(whole[31], 3), round(part[31] * 1e6, 1)) == (0.035, 1.5)
    assert frequencies.proportional(256, 1e6, 0.25, 8.0)[:32] == pytest.approx([w / 8 for w in whole[:32]], rel=1e-14)
    assert frequencies.proportional(256, 1e6, 1.0).values == frequencies.rotary(256, 1e6).values
    assert "32 pairs turn" in whole.values_from
    assert frequencies.proportional(100, 1e4, 0.77)[38:] == (0.0,) * 12  # 38.5 pairs are 38


@pytest.mark.parametrize("bad", [0, -0.5, 1.1, math.nan, "0.5", None])
def test_fractions_outside_0_to_1_are_refused(bad):
    for make in (frequencies.partial, frequencies.proportional):
        with pytest.raises(ValueError, match="fraction: expected"):
            make(64, 1e4, bad)


def test_proportional_refuses_odd_heads_and_bad_factors():
    with pytest.raises(ValueError, match="d_head: expected an even number"):
        frequencies.proportional(65, 1e4, 0.5)
    with pytest.raises(ValueError, match="factor: expected a positive number"):
        frequencies.proportional(64, 1e4, 0.5, 0.0)


# The value ------------------------------------------------------------------------------------------------------------


def test_frequencies_refuse_what_cannot_be_turned_by():
    make = frequencies.Frequencies
    for words, arguments in (
        ("values: expected one finite number", {"values": ()}),
        ("values: expected a sequence, each a finite number", {"values": (1.0, math.nan)}),
        ("cos_sin_scale: expected a positive number", {"values": (1.0,), "cos_sin_scale": 0.0}),
        ("softmax_scale: expected a positive number", {"values": (1.0,), "softmax_scale": -1.0}),
        ("axes: expected an axis from 0 for each of 2 pairs", {"values": (1.0, 0.5), "axes": (0,)}),
        ("axes: expected an axis from 0 for each of 2 pairs", {"values": (1.0, 0.5), "axes": (0, -1)}),
        ("arithmetic: expected one of 'float64', 'float32'", {"values": (1.0,), "arithmetic": "bfloat16"}),
    ):
        with pytest.raises(ValueError, match=words):
            make(**arguments)


def test_frequencies_print_what_they_are():
    f = frequencies.Frequencies((1.0, 0.5), cos_sin_scale=1.25, softmax_scale=3.0, axes=(0, 2), arithmetic="float32")
    assert (f.n_axes, len(f), f[1], f[:1]) == (3, 2, 0.5, (1.0,))
    assert frequencies.rotary(4).n_axes == 1
    for words in ("2 pairs", "cos_sin_scale=1.25", "softmax_scale=3", "float32"):
        assert words in repr(f)
    for words in ("2 pairs", "1.25", "3/√d_head"):
        assert words in str(f)
    nearly = frequencies.Frequencies(
        (1.0, math.nextafter(0.5, 1)), cos_sin_scale=1.25, softmax_scale=3.0, axes=(0, 2), arithmetic="float32"
    )
    assert repr(nearly) != repr(f)  # the owner of tables is told by what is printed
