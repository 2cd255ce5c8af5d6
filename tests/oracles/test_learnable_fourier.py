"""Learnable Fourier features by loops over waves and units. Li et al. 2021, algorithm 1."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.learnable_fourier import LearnableFourier

from .by_hand import close, draw, each

D, F, W = 5, 6, 4


def filled(axes=2) -> LearnableFourier:
    encoding = LearnableFourier(D, axes=axes, features=F, width=W).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(20 + seed, *parameter.shape)))
    return encoding


def papers(x, encoding, places, scale=F, order="cos sin", gelu=True) -> np.ndarray:
    directions, inner, outer = (one.detach().numpy() for one in (encoding.directions, encoding.inner, encoding.outer))
    c1, c2, out = encoding.inner_offset.tolist(), encoding.outer_offset.tolist(), x.copy()
    for b, t in each(*x.shape[:2]):
        angles = [sum(w * p for w, p in zip(row, places[b][t], strict=True)) for row in directions]
        waves = [math.cos(a) for a in angles], [math.sin(a) for a in angles]
        r = [one / math.sqrt(scale) for one in (waves[0] + waves[1] if order == "cos sin" else waves[1] + waves[0])]
        hidden = [sum(inner[u, f] * r[f] for f in range(F)) + c1[u] for u in range(W)]
        hidden = [h * (1 + math.erf(h / math.sqrt(2))) / 2 if gelu else max(h, 0) for h in hidden]
        for c in range(D):
            out[b, t, c] += sum(outer[c, u] * hidden[u] for u in range(W)) + c2[c]
    return out


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_by_loops(axes):
    x, places = draw(1, 2, 4, D), draw(2, 2, 4, axes)
    at = Positions.at(torch.from_numpy(places if axes > 1 else places[..., 0]))
    close(filled(axes).embed(torch.from_numpy(x), at), papers(x, filled(axes), places))


@pytest.mark.parametrize("mistake", [{"scale": D}, {"order": "sin cos"}, {"gelu": False}], ids=str)
def test_the_oracle_sees_a_broken_formula(mistake):
    x, places = draw(1, 1, 4, D), draw(2, 1, 4, 2)
    got = filled().embed(torch.from_numpy(x), Positions.at(torch.from_numpy(places)))
    expected = papers(x, filled(), places, **mistake)
    with pytest.raises(AssertionError):
        close(got, expected, atol=1e-4)


def test_the_start_has_the_deviation_of_gamma():
    torch.manual_seed(0)
    assert LearnableFourier(8, features=4000, gamma=10.0).directions.std().item() == pytest.approx(0.1, rel=0.05)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="features: expected an even number from 2, got 5"):
        LearnableFourier(D, features=5)
    with pytest.raises(ValueError, match="LearnableFourier: reads 2 coordinate"):
        LearnableFourier(D).embed(torch.zeros(1, 4, D), Positions.arange(1, 4))
    with pytest.raises(ValueError, match="LearnableFourier: built for d_model=5, got a tensor with 6"):
        LearnableFourier(D).embed(torch.zeros(1, 4, 6), Positions.grid(2, 2))
