"""The bias of boxes, written out head by head and distance by distance."""

from __future__ import annotations

import math

import pytest
import torch

from posenc.encodings.of_families.box_bias import BoxBias
from posenc.positions import Positions


def by_hand(encoding: BoxBias, name: str, head: int, distances: list[float]) -> float:
    seen = [math.copysign(math.log2(1 + 8 * abs(d)) / 3, d) for d in distances]
    total = getattr(encoding, f"{name}_outer_offset")[head].item()
    for channel in range(encoding.configuration["hidden"]):
        inner = getattr(encoding, f"{name}_inner")[channel].tolist()
        before = inner[0] * seen[0] + inner[1] * seen[1] + getattr(encoding, f"{name}_inner_offset")[channel].item()
        total += getattr(encoding, f"{name}_outer")[head, channel].item() * max(before, 0.0)
    return total


def filled() -> BoxBias:
    encoding = BoxBias(3, hidden=5)
    for parameter in encoding.parameters():
        torch.nn.init.normal_(parameter)
    return encoding


def test_the_bias_is_the_sum_of_two_networks():
    encoding = filled()
    boxes = torch.tensor([[[0.5, 0.4, 0.2, 0.6], [0.1, 0.9, 0.3, 0.1], [0.0, 0.0, -1.0, 0.0]]], dtype=torch.float64)
    places = torch.tensor([[[0.0, 0.0], [0.25, 0.75], [0.5, 0.5], [0.9, 0.1]]], dtype=torch.float64)
    q = torch.zeros(2, 3, 3, 8, dtype=torch.float64)
    k = torch.zeros(2, 3, 4, 8, dtype=torch.float64)
    of_pair = encoding.bias(q, k, Positions.at(boxes), Positions.at(places))
    for b in range(2):
        for head in range(3):
            for i, (x, y, width, height) in enumerate(boxes[0].tolist()):
                for j, (row, column) in enumerate(places[0].tolist()):
                    expected = (
                        0.0
                        if width < 0
                        else (
                            by_hand(encoding, "rows", head, [row - (y - height / 2), row - (y + height / 2)])
                            + by_hand(encoding, "columns", head, [column - (x - width / 2), column - (x + width / 2)])
                        )
                    )
                    got = of_pair(*(torch.tensor(n) for n in (b, head, i, j))).item()
                    assert got == pytest.approx(expected, abs=1e-12)


def test_a_part_of_the_heads():
    encoding, q, k = filled(), torch.zeros(1, 3, 2, 8), torch.zeros(1, 3, 4, 8)
    at, keys = Positions.at(torch.rand(1, 2, 4)), Positions.at(torch.rand(1, 4, 2))
    whole, part = encoding.bias(q, k, at, keys), encoding.heads(1, 3).bias(q[:, 1:], k[:, 1:], at, keys)
    for head in range(2):
        assert whole(*map(torch.tensor, (0, head + 1, 1, 2))) == part(*map(torch.tensor, (0, head, 1, 2)))


def test_other_coordinates_are_refused():
    q, k = torch.zeros(1, 3, 2, 8), torch.zeros(1, 3, 4, 8)
    with pytest.raises(ValueError, match="reads 4 coordinate"):
        filled().bias(q, k, Positions.at(torch.rand(1, 2, 2)), Positions.at(torch.rand(1, 4, 2)))
    with pytest.raises(ValueError, match=r"keys stand at \(y, x\)"):
        filled().bias(q, k, Positions.at(torch.rand(1, 2, 4)), Positions.at(torch.rand(1, 4, 4)))
    with pytest.raises(ValueError, match="hidden"):
        BoxBias(3, 0)
