"""RIFLEx and spectra of unequal axes, by hand. Zhao et al. 2025, section 4, and the authors' published pairs."""

import math

import pytest

from posenc import create, frequencies
from posenc.frequencies import wide


def test_axes_with_spectra_of_their_own():
    """HunyuanVideo: 16 channels of time, 56 of height, 56 of width, base 256."""
    f = frequencies.separate((16, 56, 56), 256.0)
    expected = [256.0 ** (-2 * n / size) for size in (16, 56, 56) for n in range(size // 2)]
    assert f.values == pytest.approx(expected, rel=1e-14)
    assert f.axes == (0,) * 8 + (1,) * 28 + (2,) * 28
    with pytest.raises(ValueError, match="sizes: expected an even number from 2, got 3"):
        frequencies.separate((4, 3))
    with pytest.raises(ValueError, match="sizes: expected the channels of at least one axis"):
        frequencies.separate(())


@pytest.mark.parametrize("margin", [1.0, 0.9])
def test_only_the_intrinsic_pair_changes(margin):
    """The authors' pair for HunyuanVideo is the fourth, of 50 frames; 66 latent frames are wanted."""
    trained = frequencies.separate((16, 56, 56), 256.0)
    got = frequencies.riflex(trained, 66, repeats=50, margin=margin)
    assert [pair for pair in range(64) if got[pair] != trained[pair]] == [3]
    assert got[3] == pytest.approx(margin * 2 * math.pi / 66, rel=1e-15)
    assert round(2 * math.pi / trained[3]) == 50
    assert got.axes == trained.axes


def test_another_axis_and_a_neighbouring_pair():
    trained = frequencies.separate((16, 8), 256.0)
    assert frequencies.riflex(trained, 300, repeats=30, axis=0)[2] != trained[2]  # 25 is nearer than 50
    last = frequencies.riflex(trained, 9000, repeats=300, axis=1)
    assert [pair for pair in range(12) if last[pair] != trained[pair]] == [11]


def test_the_entry_is_one_axis_of_hunyuans():
    encoding = create("riflex", d_head=16)
    assert encoding.frequencies[3] == pytest.approx(2 * math.pi / 66)
    assert encoding.frequencies[:3] == pytest.approx([256.0 ** (-2 * n / 16) for n in range(3)])
    assert create("riflex", d_head=16, margin=0.9).frequencies[3] == pytest.approx(0.9 * 2 * math.pi / 66)


def test_wrong_arguments():
    trained = frequencies.separate((16, 56, 56), 256.0)
    with pytest.raises(ValueError, match=r"axis: expected one of \[0, 1, 2\], which turning pairs read, got 3"):
        frequencies.riflex(trained, 66, repeats=50, axis=3)
    with pytest.raises(ValueError, match=r"length: pair 3 turns once in 50\.27 positions already, got a length of 40"):
        frequencies.riflex(trained, 40, repeats=50)


def test_a_pair_that_keeps_still_has_no_period():
    """Left-over pairs of wide spectra, and those of p-RoPE, were a division by zero."""
    half = frequencies.proportional(16, 256.0, 0.5)
    assert 0.0 in half.values
    got = frequencies.riflex(half, 66, repeats=50)
    changed = [pair for pair in range(8) if got[pair] != half[pair]]
    assert changed == [3]
    assert got[3] == pytest.approx(2 * math.pi / 66, rel=1e-15)
    assert got.values[4:] == half.values[4:] == (0.0,) * 4
    with pytest.raises(ValueError, match=r"axis: expected one of \[\], which turning pairs read, got 0"):
        frequencies.riflex(frequencies.Frequencies((0.0, 0.0)), 66, repeats=50)


def test_positions_that_are_not_frames_are_refused():
    """LTX-Video's time is a share of 20 seconds, from -1 to 1: its slowest pair turns once in 4, no frame 16 repeats it."""
    for width in (2048, 2050):  # with and without pairs that keep still
        with pytest.raises(ValueError, match=r"repeats: the slowest pair of axis 0 turns once in 4 positions"):
            frequencies.riflex(wide.spectrum(width), 32, repeats=16)
