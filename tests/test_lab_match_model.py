"""The match model, against probabilities worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from posenc.lab.text.match_model import Near, bits_by_window, fitted, match


def test_near_bytes_are_smoothed_as_witten_and_bell_do() -> None:
    """Text "aab", order 1. Alone: a twice, b once, two kinds: p(b) = (1 + 2/256) / 5. After a: a once, b once, two kinds:
    p(b | a) = (1 + 2 p(b)) / 4. After b nothing was seen: p(b | b) = p(b).
    """
    near = Near([b"aab"], order=1)
    alone = (1 + 2 / 256) / 5
    found = near(np.array([[97], [98]]), np.array([98, 98]))
    assert found == pytest.approx([(1 + 2 * alone) / 4, alone])
    everything = near(np.full((256, 1), 97), np.arange(256))
    assert everything.sum() == pytest.approx(1)


def test_the_longest_run_before_is_found_and_the_byte_after_its_last_occurrence() -> None:
    assert match(b"the cat, the cow, the c") == (7, ord("o"))  # ", the c"
    assert match(b"abcdxabcdyabcd") == (4, ord("y"))
    assert match(b"abcxabc") == (0, 0)  # three bytes are too few
    assert match(b"") == (0, 0)


def test_the_weight_is_the_most_probable_one() -> None:
    """Of four bytes three are the match's, and near bytes give each 1/256: w = 3/4 less what chance explains, and 0.7490
    solves 3 (255/256) / (w + (1 - w)/256) = 1 / (1 - w).
    """
    weights = fitted(np.full(4, 5), np.array([1.0, 1, 1, 0]), np.full(4, 1 / 256))
    w = weights[5]
    assert w == pytest.approx(0.75 - 0.25 / 255, abs=1e-6)
    assert not weights[:5].any()
    assert not weights[6:].any()


def test_a_miss_stays_possible_where_every_match_was_right() -> None:
    """Three bytes that were all the match's: 3/4, so that a window whose match is wrong costs bits and not infinity."""
    assert fitted(np.full(3, 5), np.ones(3), np.full(3, 1 / 256))[5] == pytest.approx(3 / 4)
    right, wrong = (np.frombuffer(text, np.uint8)[None].astype(np.int64) for text in (b"abcdeabcde", b"abcdeabcdz"))
    found = bits_by_window(Near([bytes(range(256))], order=1), right, wrong, 1, (9,))
    assert 0 < found[9] < math.inf


def test_a_window_that_holds_the_repetition_gains() -> None:
    """Each window has 8 random bytes twice, 24 bytes apart: 12 bytes do not reach the first, 36 do. The text for near bytes
    has each byte once, so that a byte after another is 1/512 but for the one that follows: 9 bits.
    """
    random = np.random.default_rng(0)
    windows = random.integers(0, 256, (40, 40))
    windows[:, 32:] = windows[:, 8:16]
    near = Near([bytes(range(256))], order=1)
    found = bits_by_window(near, windows[:20], windows[20:], 4, (12, 36))
    assert found[12] == pytest.approx(9, abs=0.15)
    assert found[36] < 0.1
    assert math.isfinite(found[36])
