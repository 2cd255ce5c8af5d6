"""Asymmetric ALiBi by loops over pairs: one slope for keys before the query, another for keys after it."""

import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.asymmetric_alibi import AsymmetricALiBi

from .by_hand import add, attention, close, draw, products, sees

BEFORE, AFTER = [-0.5, 0.25, -1.5, -0.125], [-2.0, -0.75, 0.5, -0.0625]


def both(impl, before=BEFORE, after=AFTER):
    encoding = AsymmetricALiBi(4).double()
    with torch.no_grad():
        encoding.before.copy_(torch.tensor(BEFORE))
        encoding.after.copy_(torch.tensor(AFTER))
    q, k, v = draw(1, 2, 4, 6, 5), draw(2, 2, 2, 6, 5), draw(3, 2, 2, 6, 5)
    rows, order = [range(40, 46), range(6)], [range(6)] * 2
    got = attend(
        *map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(2, 6, torch.tensor([40, 0])), causal=False, impl=impl
    )

    def bias(b, h, i, j):
        distance = rows[b][j] - rows[b][i]
        return -before[h] * distance if distance < 0 else after[h] * distance

    return got, attention(add(products(q, k), bias), v, sees(order, order, causal=False))


@pytest.mark.parametrize("impl", ["reference", "sdpa", "toeplitz"])
def test_two_slopes_by_loops(impl):
    close(*both(impl))


def test_the_oracle_sees_the_slopes_exchanged():
    with pytest.raises(AssertionError):
        close(*both("reference", AFTER, BEFORE))
