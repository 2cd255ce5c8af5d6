"""Rotation by a learned linear function of coordinates, by loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.of_families.projected_rope import ProjectedRoPE

from .by_hand import close, draw, each, turned


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_every_pair_reads_every_coordinate(axes: int, layout: str):
    encoding = ProjectedRoPE(6, axes=axes, layout=layout)
    matrix, x, coords = draw(1, 3, axes), draw(2, 2, 3, 4, 6), draw(3, 2, 4, axes)
    with torch.no_grad():
        encoding.double().projection.copy_(torch.from_numpy(matrix))
    expected = np.empty_like(x)
    for b, h, t in each(2, 3, 4):
        expected[b, h, t] = turned(x[b, h, t], [float(matrix[n] @ coords[b, t]) for n in range(3)], layout)
    at = Positions.at(torch.from_numpy(coords[..., 0] if axes == 1 else coords))
    for side in ("query", "key"):
        close(encoding.rotate(torch.from_numpy(x), at, side).detach(), expected)
        close(encoding.rotate(torch.from_numpy(x), encoding.prepare(at, torch.float64), side).detach(), expected)
    assert torch.equal(encoding.rotate(torch.from_numpy(x), at, "value"), torch.from_numpy(x))


def test_tables_belong_to_the_very_module():
    one, other = ProjectedRoPE(4), ProjectedRoPE(4)
    at = one.prepare(Positions.at(torch.rand(1, 3, 2)))
    with pytest.raises(ValueError, match="prepared by"):
        other.rotate(torch.zeros(1, 1, 3, 4), at, "query")


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="d_head"):
        ProjectedRoPE(5)
    with pytest.raises(ValueError, match="layout"):
        ProjectedRoPE(4, layout="pairs")
    with pytest.raises(ValueError, match="coordinate"):
        ProjectedRoPE(4).rotate(torch.zeros(1, 1, 3, 4), Positions.arange(1, 3), "query")
