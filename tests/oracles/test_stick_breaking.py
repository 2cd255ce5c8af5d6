"""Stick-breaking by loops over keys, and in fractions. Tan et al. 2024, section 2, and the authors' reference."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from posenc import Positions, Stack, attend
from posenc.encodings.alibi import ALiBi
from posenc.encodings.stick_breaking import StickBreaking

from .by_hand import close, draw, each, products

D, H = 5, 4


def shares(logits, document, order, own="none", sign=1.0, backwards=True) -> np.ndarray:
    """The weights of every query: walks from the nearest key of its document to the farthest."""
    weights = np.zeros_like(logits)
    for b, h, i in each(*logits.shape[:3]):
        keys = [j for j in range(logits.shape[3]) if document[b][j] == document[b][i] and order[b][j] <= order[b][i]]
        if own != "share":
            keys = [j for j in keys if order[b][j] < order[b][i]]
        left = 1.0
        for j in sorted(keys, key=lambda j: order[b][j], reverse=backwards):
            beta = 1 / (1 + math.exp(-sign * logits[b, h, i, j]))
            weights[b, h, i, j] = left * beta
            left *= 1 - beta
        if own == "rest":
            weights[b, h, i, i] = left
    return weights


def mixed(weights, v) -> np.ndarray:
    share, out = weights.shape[1] // v.shape[1], np.zeros((*weights.shape[:3], v.shape[3]))
    for b, h, i, j in each(*weights.shape):
        out[b, h, i] += weights[b, h, i, j] * v[b, h // share, j]
    return out


@pytest.mark.parametrize("own", ["none", "share", "rest"])
def test_weights_by_loops(own):
    q, k, v = draw(1, 2, H, 6, D), draw(2, 2, 2, 6, D), draw(3, 2, 2, 6, D)
    order, document = [range(6)] * 2, [[0] * 6] * 2
    got = attend(*map(torch.from_numpy, (q, k, v)), StickBreaking(own=own), Positions.arange(2, 6, 40))
    close(got, mixed(shares(products(q, k), document, order, own), v))


@pytest.mark.parametrize("own", ["none", "share", "rest"])
def test_keys_in_any_order_and_two_documents(own):
    document, order = [[0, 1, 0, 1, 0, 0, 1]], [[2, 0, 0, 1, 1, 3, 2]]
    q, k, v = (draw(seed, 1, H, 7, D) for seed in (1, 2, 3))
    at = Positions(torch.tensor(order), torch.tensor(order), torch.tensor(document))
    got = attend(*map(torch.from_numpy, (q, k, v)), StickBreaking(own=own), at)
    close(got, mixed(shares(products(q, k), document, order, own), v))


@pytest.mark.parametrize("mistake", [{"sign": -1.0}, {"backwards": False}, {"own": "share"}], ids=str)
def test_the_oracle_sees_a_broken_formula(mistake):
    q, k, v = (draw(seed, 1, H, 6, D) for seed in (1, 2, 3))
    got = attend(*map(torch.from_numpy, (q, k, v)), StickBreaking(), Positions.arange(1, 6))
    expected = mixed(shares(products(q, k), [[0] * 6], [range(6)], **mistake), v)
    with pytest.raises(AssertionError):
        close(got, expected, atol=1e-3)


def test_as_in_the_authors_reference():
    """Log weights by a product with a strictly lower triangular matrix of ones, and what is left."""
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 7, D)) for seed in (1, 2, 3))
    later, hidden = torch.ones(7, 7).tril(-1).double(), torch.ones(7, 7).triu(0).bool()
    logits = q @ k.mT / math.sqrt(D)
    log_z = torch.nn.functional.logsigmoid(logits).masked_fill(hidden, -1e5)
    log_beta = torch.nn.functional.logsigmoid(-logits).masked_fill(hidden, 0)
    weights = (log_z + torch.einsum("bhij,jk->bhik", log_beta, later)).exp()
    at = Positions.arange(1, 7)
    close(attend(q, k, v, StickBreaking(), at), weights @ v)
    close(attend(q, k, v, StickBreaking(own="rest"), at), weights @ v + (1 - weights.sum(-1))[..., None] * v)


def test_in_fractions_and_never_more_than_the_stick():
    """β = 1/2 everywhere: the shares are 1/2, 1/4, 1/8, … from the nearest key on."""
    q, v = torch.zeros(1, 1, 6, D).double(), torch.eye(6, dtype=torch.float64)[None, None]
    got = attend(q, q, v, StickBreaking(), Positions.arange(1, 6))[0, 0]
    expected = [[Fraction(1, 2 ** (i - j)) if j < i else Fraction(0) for j in range(6)] for i in range(6)]
    close(got, np.array(expected, dtype=float))
    rest = attend(q, q, v, StickBreaking(own="rest"), Positions.arange(1, 6))[0, 0]
    close(rest.sum(dim=-1), np.ones(6))


def test_far_scores_leave_nothing_and_no_nan():
    q = torch.full((1, 1, 5, 1), 1e4, dtype=torch.float32, requires_grad=True)
    v = torch.eye(5)[None, None]
    got = attend(q, q, v, StickBreaking(), Positions.arange(1, 5))
    close(got[0, 0], np.eye(5, k=-1))
    got.sum().backward()
    assert q.grad.isfinite().all()


def test_a_bias_is_added_before_the_shares():
    q, k, v = (draw(seed, 1, H, 6, D) for seed in (1, 2, 3))
    logits = products(q, k)
    for b, h, i, j in each(*logits.shape):
        logits[b, h, i, j] -= 2.0 ** (-8 * (h + 1) / H) * abs(i - j)
    got = attend(*map(torch.from_numpy, (q, k, v)), Stack(ALiBi(H), StickBreaking()), Positions.arange(1, 6))
    close(got, mixed(shares(logits, [[0] * 6], [range(6)]), v))
    with pytest.raises(ValueError, match="parts: expected at most one with a finish of its own"):
        Stack(StickBreaking(), StickBreaking())


def test_wrong_arguments():
    x, at = torch.zeros(1, H, 4, D), Positions.arange(1, 4)
    with pytest.raises(ValueError, match="own"):
        StickBreaking(own="all")
    for impl in ("sdpa", "toeplitz", "flex"):
        with pytest.raises(ValueError, match=f"impl='{impl}' cannot express StickBreaking"):
            attend(x, x, x, StickBreaking(), at, impl=impl)
    for options in ({"sinks": torch.zeros(H)}, {"return_lse": True}):
        with pytest.raises(ValueError, match="sinks, return_lse: StickBreaking"):
            attend(x, x, x, StickBreaking(), at, **options)
    with pytest.raises(ValueError, match="causal=False"):
        attend(x, x, x, StickBreaking(), at, causal=False)
