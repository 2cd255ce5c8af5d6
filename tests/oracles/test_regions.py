"""Mentions, regions and boxes by loops. Yamada et al. 2020; Tan and Bansal 2019; Hong et al. 2022."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.of_families.linear_boxes import LinearBoxes
from posenc.encodings.of_families.mean_of_rows import MeanOfRows
from posenc.encodings.of_families.sinusoidal_boxes import CORNERS, SinusoidalBoxes

from .by_hand import close, draw


def filled(encoding):
    encoding = encoding.double()
    with torch.no_grad():
        for n, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(n, *parameter.shape)))
    return encoding, {name: value.detach().numpy() for name, value in encoding.named_parameters()}


def test_mentions():
    encoding, p = filled(MeanOfRows(3, 7, places=3))
    places = [[[0, -1, -1], [6, 2, -1]], [[-1, -1, -1], [1, 1, 5]]]
    x = draw(8, 2, 2, 3)
    expected = x.copy()
    for b, t in np.ndindex(2, 2):
        rows = [p["table"][place] for place in places[b][t] if place >= 0]
        if rows:
            expected[b, t] += sum(rows) / len(rows)
    close(encoding.embed(torch.from_numpy(x), Positions.at(torch.tensor(places))), expected)


@pytest.mark.parametrize("place", [7, -2])
def test_a_mention_beyond_the_table_is_refused(place):
    with pytest.raises(ValueError, match="-1 … 6"):
        MeanOfRows(3, 7, places=2).embed(torch.zeros(1, 1, 3), Positions.at(torch.tensor([[[0, place]]])))


def test_regions():
    encoding, p = filled(LinearBoxes(5, norm_eps=1e-3))
    x, boxes = draw(8, 2, 3, 5), draw(9, 2, 3, 4)
    expected = np.zeros_like(x)
    for b, t in np.ndindex(2, 3):
        line = p["project"] @ boxes[b, t] + p["offset"]
        normed = (line - line.mean()) / np.sqrt(line.var() + 1e-3)
        expected[b, t] = (x[b, t] + normed * p["norm"] + p["norm_offset"]) / 2
    close(encoding.embed(torch.from_numpy(x), Positions.at(torch.from_numpy(boxes))), expected)


def test_boxes():
    encoding, p = filled(SinusoidalBoxes(6, 4, scale=7.0, base=100.0))
    q, k, boxes = draw(1, 2, 3, 4, 6), draw(2, 2, 3, 4, 6), draw(9, 2, 4, 4)
    at = Positions.at(torch.from_numpy(boxes))
    of_pair = encoding.bias(torch.from_numpy(q), torch.from_numpy(k), at, at)
    index = torch.meshgrid(*(torch.arange(n) for n in (2, 3, 4, 4)), indexing="ij")
    expected = np.zeros((2, 3, 4, 4))
    for b, h, i, j in np.ndindex(2, 3, 4, 4):
        vector = []
        for corner in CORNERS:
            angle = 7.0 * (boxes[b, j, corner] - boxes[b, i, corner])
            vector += [math.sin(angle), math.sin(angle / 10), math.cos(angle), math.cos(angle / 10)]
        expected[b, h, i, j] = q[b, h, i] @ p["project"] @ np.array(vector) / math.sqrt(6)
    close(of_pair(*index).detach(), expected)


@pytest.mark.parametrize("width", [0, 3, 2.0, True])
def test_an_odd_width_is_refused(width):
    with pytest.raises(ValueError, match="width"):
        SinusoidalBoxes(6, width)


@pytest.mark.parametrize("encoding", [MeanOfRows(5, 7, places=4), LinearBoxes(5)])
def test_they_are_added_once(encoding):
    x, at = torch.randn(1, 2, 5), Positions.at(torch.ones(1, 2, 4, dtype=torch.int64))
    assert encoding.at_layer(0) is encoding
    assert torch.equal(encoding.at_layer(1).embed(x, at), x)
