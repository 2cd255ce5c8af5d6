"""Sandwich by loops over pairs and channels of the sinusoidal vectors. Chi et al. 2022, section 5."""

import math

import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.sandwich import Sandwich

from .by_hand import add, attention, close, draw, products, sees

H, W, BASE = 4, 6, 100.0


def vector(p):
    """The sinusoidal encoding of one position: sines, then cosines."""
    angles = [p / BASE ** (2 * c / W) for c in range(W // 2)]
    return [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]


def papers(h, i, j, first=0):
    """The product of two vectors over 8h/n, heads counted from 1; `first`: waves from 1 on, as NeMo has them."""
    if first:
        total = sum(math.cos((i - j) / BASE ** (2 * c / W)) for c in range(1, W // 2 + 1))
    else:
        total = sum(a * b for a, b in zip(vector(i), vector(j), strict=True))
    return total / (8 * (h + 1) / H)


def both(impl, formula):
    q, k, v = draw(1, 2, H, 6, 5), draw(2, 2, 2, 6, 5), draw(3, 2, 2, 6, 5)
    rows, order = [range(40, 46), range(6)], [range(6)] * 2
    at = Positions.arange(2, 6, torch.tensor([40, 0]))
    got = attend(*map(torch.from_numpy, (q, k, v)), Sandwich(H, width=W, base=BASE), at, causal=False, impl=impl)
    logits = add(products(q, k), lambda b, h, i, j: formula(h, rows[b][i], rows[b][j]))
    return got, attention(logits, v, sees(order, order, causal=False))


@pytest.mark.parametrize("impl", ["reference", "sdpa", "toeplitz"])
def test_products_of_sinusoidal_vectors(impl):
    close(*both(impl, papers))


def test_the_oracle_sees_another_first_wave_and_the_other_sign():
    with pytest.raises(AssertionError):
        close(*both("reference", lambda *pair: papers(*pair, first=1)))
    with pytest.raises(AssertionError):
        close(*both("reference", lambda *pair: -papers(*pair)))


def test_defaults_are_the_papers():
    encoding = Sandwich(12)
    assert encoding.configuration["width"] == 128
    assert encoding.ratios[:2] == (8 / 12, 16 / 12)
    close(encoding.at_distance(torch.tensor([0.0]))[:, 0], [64 / (8 * h / 12) for h in range(1, 13)])


def test_ratios_are_checked():
    with pytest.raises(ValueError, match="ratios: expected a number other than 0 for each of 2 heads"):
        Sandwich(2, ratios=(1.0, 0.0))
