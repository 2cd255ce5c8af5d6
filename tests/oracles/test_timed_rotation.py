"""Embeddings turned by time multiplied with place, by loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.of_families.timed_rotation import TimedRotation
from posenc.frequencies import axial, rotary

from .by_hand import close, draw, each, turned


def test_pairs_turn_by_time_and_window_then_by_time_and_index():
    encoding = TimedRotation(14, rotary(6, 50.0), longest=40.0)
    x, coords = draw(1, 2, 5, 14), np.abs(draw(2, 2, 5, 3)) * 9
    expected = x.copy()
    for b, t in each(2, 5):
        seconds, window, index = coords[b, t]
        angles = [-2 * math.pi * seconds * window / 40 * 50 ** (-2 * i / 6) for i in range(3)]
        angles += [-2 * math.pi * seconds * 2 * math.pi * index / 40 * 50 ** (-2 * i / 6) for i in range(3)]
        expected[b, t, :12] = turned(x[b, t, :12], angles, "interleaved")
    at = Positions.at(torch.from_numpy(coords))
    close(encoding.embed(torch.from_numpy(x), at), expected)
    close(encoding.embed(torch.from_numpy(x), encoding.prepare(at, torch.float64)), expected)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="turn 12 channels"):
        TimedRotation(10, rotary(6))
    with pytest.raises(ValueError, match="without axes"):
        TimedRotation(64, axial(rotary(6)))
    with pytest.raises(ValueError, match="longest"):
        TimedRotation(64, rotary(6), longest=0)
    with pytest.raises(ValueError, match="coordinate"):
        TimedRotation(64, rotary(6)).embed(torch.zeros(1, 3, 64), Positions.arange(1, 3))
