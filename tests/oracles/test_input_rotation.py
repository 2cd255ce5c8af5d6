"""Rotations that only some families have: of what is projected, and of atoms in space; by loops in fp64."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.configs.atoms import of_atoms
from posenc.configs.input_rotation import InputRotation
from posenc.frequencies import rotary

from .by_hand import close, draw


def test_inputs_turn_part_by_part():
    """Part h of x, channels 6h … 6h + 5, turns pairs (c, c + 3) by p·1000^(-c/3)."""
    places = [0, 3, 131071]
    x = draw(1, 1, 3, 12)
    expected = x.copy()
    for t, p in enumerate(places):
        for part in range(2):
            for c in range(3):
                angle = p * 1000.0 ** (-c / 3)
                one, other = x[0, t, 6 * part + c], x[0, t, 6 * part + c + 3]
                expected[0, t, 6 * part + c] = one * math.cos(angle) - other * math.sin(angle)
                expected[0, t, 6 * part + c + 3] = other * math.cos(angle) + one * math.sin(angle)
    encoding = InputRotation(12, 6, rotary(6, 1000.0))
    close(encoding.inputs(torch.from_numpy(x), Positions.at(torch.tensor([places]))), expected)


def test_scores_of_turned_inputs_depend_on_more_than_distance():
    """Which is why it is no RoPE."""
    encoding, at = InputRotation(8, 4, rotary(4, 100.0)), Positions.at(torch.tensor([[0, 1, 5, 6]]))
    x = torch.from_numpy(draw(1, 1, 1, 8)).expand(-1, 4, -1)
    w_q, w_k = (torch.from_numpy(draw(seed, 8, 8)) for seed in (2, 3))
    turned = encoding.inputs(x, at)
    scores = (turned @ w_q.T) @ (turned @ w_k.T).transpose(-1, -2)
    assert abs(float(scores[0, 1, 0] - scores[0, 3, 2])) > 1e-3


def test_projected_queries_are_refused():
    encoding, at = InputRotation(8, 4, rotary(4)), Positions.arange(1, 3)
    with pytest.raises(ValueError, match="inputs"):
        encoding.rotate(torch.zeros(1, 2, 3, 4), at, "query")
    with pytest.raises(ValueError, match="d_head"):
        InputRotation(9, 4, rotary(4))
    with pytest.raises(ValueError, match="d_model"):
        encoding.inputs(torch.zeros(1, 3, 12), at)


def test_atoms_turn_by_place_and_residue():
    """Pairs x0 x1 y0 y1 z0 z1 u0 u1 u2 and one that keeps still, each (c, c + 10) of 20 channels."""
    at = np.array([1.5, -2.25, 30.0, 7.0])
    x = draw(4, 1, 1, 1, 20)
    expected = x.copy()
    angles = [at[axis] * 20.0 ** (-i / 2) for axis in range(3) for i in range(2)]
    angles += [at[3] * 1e4 ** (-i / 3) for i in range(3)] + [0.0]
    for c, angle in enumerate(angles):
        one, other = x[0, 0, 0, c], x[0, 0, 0, c + 10]
        expected[0, 0, 0, c] = one * math.cos(angle) - other * math.sin(angle)
        expected[0, 0, 0, c + 10] = other * math.cos(angle) + one * math.sin(angle)
    encoding = of_atoms(20, spatial=(20.0, 2), residue=(1e4, 3))
    close(encoding.rotate(torch.from_numpy(x), Positions.at(torch.from_numpy(at)[None, None]), "query"), expected)


def test_too_many_pairs_are_refused():
    with pytest.raises(ValueError, match="d_head"):
        of_atoms(16, spatial=(20.0, 2), residue=(1e4, 3))
