"""SinusoidalKeys against loops in fp64 over its formula."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.of_families.sinusoidal_keys import SinusoidalKeys

M, H, D = 6, 2, 4


def expected(q, w_r, query, key, left, right, shift):
    """q_i·W R(i - j + shift), one pair at a time: q [h, i, d], w_r [h, d, m]."""
    logits = np.zeros((H, len(query), len(key)))
    for h in range(H):
        for i, at_i in enumerate(query):
            for j, at_j in enumerate(key):
                delta = at_i - at_j + shift
                if -right <= delta <= left:
                    angles = [delta * 10000.0 ** (-n / (M // 2 - 1)) for n in range(M // 2)]
                    sinusoid = [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
                    vector = [sum(w_r[h, c, m] * sinusoid[m] for m in range(M)) for c in range(D)]
                    logits[h, i, j] = sum(q[h, i, c] * vector[c] for c in range(D))
    return logits


@pytest.mark.parametrize(("left", "right", "shift"), [(12, 0, 0), (3, 2, 0), (3, 0, 2), (2, 1, -1)])
def test_it_is_its_formula(left, right, shift):
    generator = torch.Generator().manual_seed(0)
    encoding = SinusoidalKeys(M, H, d_head=D, left=left, right=right, shift=shift).double()
    with torch.no_grad():
        encoding.w_r.copy_(torch.randn(H, D, M, generator=generator))
    q, k = (torch.randn(1, H, n, D, generator=generator, dtype=torch.float64) for n in (5, 7))
    query, key = [0, 1, 4, 9, 2], [0, 1, 2, 3, 5, 8, 13]
    bias = encoding.bias(q, k, Positions.at(torch.tensor([query])), Positions.at(torch.tensor([key])))
    b, h, i, j = torch.meshgrid(*(torch.arange(n) for n in (1, H, 5, 7)), indexing="ij")
    found = bias(b, h, i, j).detach().numpy()[0]
    np.testing.assert_allclose(
        found, expected(q[0].numpy(), encoding.w_r.detach().numpy(), query, key, left, right, shift), atol=1e-12, rtol=0
    )
    assert encoding.softmax_scale(D) == 1.0


@pytest.mark.parametrize("sizes", [{"left": -1}, {"left": True}, {"left": 2, "right": 0.5}])
def test_reach_is_a_whole_number(sizes):
    with pytest.raises(ValueError, match="whole number from 0"):
        SinusoidalKeys(M, H, d_head=D, **sizes)


def test_the_sinusoid_needs_two_frequencies():
    with pytest.raises(ValueError, match="d_model"):
        SinusoidalKeys(2, 1, left=3)
