"""PaPE by loops over pairs, parabolas and axes; the authors' wide queries and keys. Øhrström et al. 2026."""

import math

import numpy as np
import pytest
import torch

from posenc import Attention, Positions, attend
from posenc.encodings.pape import PaPE

from .by_hand import add, attention, close, draw, products, sees

M, H, D, N, A = 7, 4, 6, 3, 2


def filled() -> PaPE:
    encoding = PaPE(M, H, parabolas=N).double()
    with torch.no_grad():
        encoding.directions.copy_(torch.from_numpy(draw(60, H, N, A)))
        encoding.weight.copy_(torch.from_numpy(draw(61, 2, H, N, M)))
    return encoding


def chosen(x, h):
    """Widths, which are positive, and slopes of one token."""
    linear = [[sum(w * c for w, c in zip(row, x, strict=True)) for row in draw(61, 2, H, N, M)[one, h]] for one in (0, 1)]
    return [math.log(1 + math.exp(number)) for number in linear[0]], linear[1]


def papers(x, coords, b, h, i, j, sign=1.0):
    """Σ_n b_n Δ_n - a_n Δ_n² of query i and key j, Δ along direction n from the key to the query, over √d."""
    widths, slopes = chosen(x[b, i], h)
    total = 0.0
    for n in range(N):
        offset = sum(draw(60, H, N, A)[h, n, a] * (coords[b][i][a] - coords[b][j][a]) for a in range(A))
        total += slopes[n] * offset - sign * widths[n] * offset**2
    return total / math.sqrt(D)


def case():
    coords = np.random.default_rng(5).normal(size=(2, 6, A)) * 2 + 30
    return draw(1, 2, H, 6, D), draw(2, 2, 2, 6, D), draw(3, 2, 2, 6, D), draw(4, 2, 6, M), coords


def wide(q, k, x, coords):
    """The authors' products: (q, -a·p², a, 2a·p, b·p, b) of the query times (k, 1, -p², p, 1, -p) of the key, over √d."""
    along = np.einsum("bta,hna->bhtn", coords, draw(60, H, N, A))
    scores = np.zeros((2, H, 6, 6))
    for b, h, i, j in np.ndindex(*scores.shape):
        a, slope = map(np.array, chosen(x[b, i], h))
        p, other = along[b, h, i], along[b, h, j]
        query = np.concatenate([q[b, h, i], [-(a * p**2).sum()], a, 2 * a * p, [(slope * p).sum()], slope])
        key = np.concatenate([k[b, h // 2, j], [1.0], -(other**2), other, [1.0], -other])
        scores[b, h, i, j] = query @ key / math.sqrt(D)
    return scores


def both(impl, scores):
    q, k, v, x, coords = case()
    encoding = filled()
    at = encoding.read_hidden(torch.from_numpy(x), Positions.at(torch.from_numpy(coords)))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False, impl=impl)
    return got, attention(scores(q, k, x, coords), v, sees([range(6)] * 2, [range(6)] * 2, causal=False))


def by_pairs(q, k, x, coords, **wrong):
    return add(products(q, k), lambda b, h, i, j: papers(x, coords, b, h, i, j, **wrong))


@pytest.mark.parametrize("impl", ["reference", "sdpa", "auto"])
def test_parabolas_by_loops(impl):
    close(*both(impl, by_pairs), atol=1e-10)


def test_products_of_the_authors_wide_queries_and_keys():
    close(*both("reference", wide), atol=1e-9)


def test_the_oracle_sees_the_other_sign():
    with pytest.raises(AssertionError):
        close(*both("reference", lambda *case: by_pairs(*case, sign=-1.0)), atol=1e-3)


def test_the_module_reads_for_itself_and_moving_an_image_changes_nothing():
    torch.manual_seed(0)
    module = Attention(M * 4, 4, PaPE(M * 4, 4), d_head=6).double().eval()
    x = torch.randn(1, 9, M * 4, dtype=torch.float64)
    at = Positions.grid(3, 3)
    moved = Positions.at(at.coords + torch.tensor([100, -7]))
    torch.testing.assert_close(module(x, at, causal=False), module(x, moved, causal=False))
