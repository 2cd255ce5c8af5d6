"""TUPE by loops over heads, positions and channels. Ke et al. 2020, section 3, and the authors' code."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.tupe import TUPE
from sampling import every_second

from .by_hand import attention, close, draw, each, sees

M, H, D, N = 10, 2, 5, 12


def filled(**options) -> TUPE:
    encoding = TUPE(M, H, N, **options).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(50 + seed, *parameter.shape)))
    return encoding


def normed(row, encoding) -> list[float]:
    mean = sum(row) / M
    variance = sum((one - mean) ** 2 for one in row) / M
    weight, offset = encoding.norm.tolist(), encoding.norm_offset.tolist()
    return [(one - mean) / math.sqrt(variance + 1e-5) * w + o for one, w, o in zip(row, weight, offset, strict=True)]


def correlation(encoding, h, row_q, row_k) -> float:
    """(p U_Q + c_Q)·(p' U_K + c_K)/√(2d) of two rows of the table."""
    total = 0.0
    p, other = (normed(encoding.table[row].tolist(), encoding) for row in (row_q, row_k))
    for c in range(D):
        asked = sum(encoding.query[h, c, m].item() * p[m] for m in range(M)) + encoding.query_offset[h, c].item()
        met = sum(encoding.key[h, c, m].item() * other[m] for m in range(M)) + encoding.key_offset[h, c].item()
        total += asked * met
    return total / math.sqrt(2 * D)


def bucket(delta: int, n_buckets: int, max_distance: int) -> int:
    """mesh-tensorflow's, both ways, by logarithms."""
    half, far = n_buckets // 2, abs(delta)
    exact = half // 2
    if far >= exact:
        far = min(half - 1, exact + int(math.log(far / exact) / math.log(max_distance / exact) * (half - exact)))
    return far + (half if delta < 0 else 0)


def papers(q, k, encoding, places, *, scale=2 * D, cls=True, relative=True, swap=False, buckets=(32, 128)) -> np.ndarray:
    logits = np.zeros((*q.shape[:3], k.shape[2]))
    for b, h, i, j in each(*logits.shape):
        here, there = places[b][i], places[b][j]
        logits[b, h, i, j] = sum(q[b, h, i, c] * k[b, h, j, c] for c in range(D)) / math.sqrt(scale)
        if cls and here == 0:
            term = correlation(encoding, h, *((1, 1) if swap else (0, 0)))
        elif cls and there == 0:
            term = correlation(encoding, h, *((0, 0) if swap else (1, 1)))
        else:
            term = correlation(encoding, h, here + 2, there + 2)
            if relative:
                term += encoding.relative.table[bucket(here - there, *buckets), h].item()
        logits[b, h, i, j] += term
    return logits


@pytest.mark.parametrize(("causal", "impl"), every_second((True, False), ("reference", "sdpa")))
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, {}),
        ({"n_buckets": 8, "max_distance": 6}, {"buckets": (8, 6)}),
        ({"n_buckets": None}, {"relative": False}),
        ({"class_token": False}, {"cls": False}),
    ],
    ids=str,
)
def test_scores_by_loops(impl, causal, options, said):
    """Two rows: one begins with [CLS], the other is its continuation."""
    q, k, v = (draw(seed, 2, H, 6, D) for seed in (1, 2, 3))
    encoding, places, order = filled(**options), [range(6), range(6, 12)], [range(6)] * 2
    at = Positions.arange(2, 6, torch.tensor([0, 6]))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=causal, impl=impl)
    close(got, attention(papers(q, k, encoding, places, **said), v, sees(order, order, causal=causal)))


@pytest.mark.parametrize(
    "mistake", [{"scale": D}, {"cls": False}, {"relative": False}, {"swap": True}, {"buckets": (16, 128)}], ids=str
)
def test_the_oracle_sees_a_broken_formula(mistake):
    q, k, v = (draw(seed, 1, H, 12, D) for seed in (1, 2, 3))
    places, encoding = [range(12)], filled()
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(1, 12), causal=False)
    expected = attention(papers(q, k, encoding, places, **mistake), v, sees(places, places, causal=False))
    with pytest.raises(AssertionError):
        close(got, expected, atol=1e-4)


def test_as_in_the_authors_code():
    """Its bias for a sentence: all rows of the table by all, then the column and the row of [CLS] overwritten."""
    encoding, length = filled(n_buckets=None), 7
    weight = torch.nn.functional.layer_norm(encoding.table[: length + 2], (M,), encoding.norm, encoding.norm_offset)
    shape = (length + 2, H, D)
    pos_q = torch.nn.functional.linear(weight, encoding.query.flatten(0, 1), encoding.query_offset.flatten()).view(shape)
    pos_k = torch.nn.functional.linear(weight, encoding.key.flatten(0, 1), encoding.key_offset.flatten()).view(shape)
    theirs = pos_q.transpose(0, 1) * (2 * D) ** -0.5 @ pos_k.permute(1, 2, 0)
    to_others, to_class = theirs[:, 0, 0].clone(), theirs[:, 1, 1].clone()
    theirs = theirs[:, 2:, 2:].clone()
    theirs[:, :, 0], theirs[:, 0, :] = to_class[:, None], to_others[:, None]
    q, at = torch.zeros(1, H, length, D, dtype=torch.float64), Positions.arange(1, length)
    b, h, i, j = (torch.arange(n) for n in (1, H, 7, 7))
    got = encoding.bias(q, q, at, at)(b[:, None, None, None], h[:, None, None], i[:, None], j)
    close(got[0], theirs.detach())


def test_wrong_arguments():
    with pytest.raises(ValueError, match="TUPE: position 12 is outside 0 … 11: the table ends there"):
        attend(*[torch.zeros(1, H, 3, D)] * 3, TUPE(M, H, N), Positions.arange(1, 3, 10))
    with pytest.raises(ValueError, match="TUPE: built for d_head=5, got a tensor with 6 as q"):
        attend(*[torch.zeros(1, H, 3, 6)] * 3, TUPE(M, H, N), Positions.arange(1, 3))
    with pytest.raises(ValueError, match="TUPE: built for n_heads=2, got a tensor with 4 as q"):
        attend(*[torch.zeros(1, 4, 3, D)] * 3, TUPE(M, H, N), Positions.arange(1, 3))
    with pytest.raises(TypeError, match="TUPE: needs integer positions"):
        attend(*[torch.zeros(1, H, 3, D)] * 3, TUPE(M, H, N), Positions.at(torch.rand(1, 3)))
    with pytest.raises(ValueError, match="d_model: expected a multiple of n_heads=3, got 10"):
        TUPE(M, 3, N)
    assert TUPE(M, H, N).largest_position() == N - 1
