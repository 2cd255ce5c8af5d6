"""HSTU by loops over pairs, and in the steps of the authors' code. Zhai et al. 2024."""

import math

import numpy as np
import pytest
import torch

import posenc
from posenc import Positions

from .by_hand import close, draw, each, products
from .test_deberta import drawn

D, H, N = 4, 2, 9
TIMES = [[3, 4, 4, 90, 5000, 5001, 86400], [10, 11, 400, 401, 402, 90000, 90000]]
ASKED = [100000, 90003]  # the time of what comes after the last event


def at(start=0):
    times = torch.tensor(TIMES)
    after = torch.cat([times[:, 1:], torch.tensor(ASKED)[:, None]], dim=1)
    index = torch.arange(start, start + 7).expand(2, 7)
    return Positions.at(torch.stack([index, times, after], dim=-1))


def made(form="paper", n_buckets=24):
    return drawn(posenc.create("hstu", max_positions=N, n_buckets=n_buckets, form=form).double())


def weights(logits, encoding, form="paper", own_time=False, sign=1, width=0.301):
    positions, times = (table.detach().numpy() for table in (encoding.position_table, encoding.time_table))
    found = np.zeros_like(logits)
    for b, h, i, j in each(*logits.shape):
        if j > i:
            continue
        then = TIMES[b][i] if own_time else (*TIMES[b], ASKED[b])[i + 1]
        bucket = min(int(math.log(max(abs(then - TIMES[b][j]), 1)) / width), len(times) - 1)
        score = logits[b, h, i, j] + positions[N - 1 + sign * (j - i)] + times[bucket]
        found[b, h, i, j] = score / (1 + math.exp(-score)) / (N if form == "code" else 1)
    return found


@pytest.mark.parametrize("form", ["paper", "code"])
def test_weights_by_loops(form):
    q, k, v = (draw(seed, 2, H, 7, D) for seed in (1, 2, 3))
    encoding = made(form)
    got = posenc.attend(*map(torch.from_numpy, (q, k, v)), encoding, at(start=50))
    close(got, np.einsum("bhij,bhjd->bhid", weights(products(q, k, scale=1.0), encoding, form), v))


@pytest.mark.parametrize("mistake", [{"own_time": True}, {"sign": -1}, {"width": 0.33}, {"form": "code"}], ids=str)
def test_a_wrong_formula_is_noticed(mistake):
    q, k, v = (draw(seed, 2, H, 7, D) for seed in (1, 2, 3))
    encoding = made()
    got = posenc.attend(*map(torch.from_numpy, (q, k, v)), encoding, at())
    with pytest.raises(AssertionError):
        close(got, np.einsum("bhij,bhjd->bhid", weights(products(q, k, scale=1.0), encoding, **mistake), v), atol=1e-3)


def test_as_the_authors_code_goes_step_by_step():
    """A Toeplitz matrix by reshaping a padded row, times moved by one, logarithms divided by .301, SiLU over N."""
    times = torch.tensor([[5, 7, 7, 60, 61, 4000, 4100, 90000, 90001]])
    extended = torch.cat([times, times[:, -1:]], dim=1)
    encoding = made("code", n_buckets=128)
    repeated = torch.nn.functional.pad(encoding.position_table, [0, N]).repeat(N)[:-N].reshape(1, N, 3 * N - 2)
    between = (extended[:, 1:, None] - extended[:, None, :-1]).abs().clamp(min=1).double()
    of_time = encoding.time_table[(between.log() / 0.301).long().clamp(0, 128)]
    q, k, v = (torch.from_numpy(draw(seed, 1, H, N, D)) for seed in (1, 2, 3))
    scores = q @ k.mT + (repeated[..., N - 1 : 1 - N] + of_time)[:, None]
    expected = (torch.nn.functional.silu(scores) / N * torch.ones(N, N).tril()) @ v
    coords = torch.stack([torch.arange(N)[None], times, extended[:, 1:]], dim=-1)
    close(posenc.attend(q, k, v, encoding, Positions.at(coords)), expected.detach())


def test_every_bucket_begins_at_its_smallest_whole_number():
    encoding = made(n_buckets=128)
    times = torch.arange(100_000)
    expected = [int(math.log(max(time, 1)) / 0.301) for time in times.tolist()]
    assert encoding.bucket(times).tolist() == encoding.bucket(-times).tolist() == expected
    assert int(encoding.bucket(torch.tensor(2**62))) == 128 == encoding.time_table.numel() - 1


def test_lists_longer_than_the_table_are_refused():
    q = torch.from_numpy(draw(1, 1, H, 3, D))
    coords = torch.tensor([[[0, 1, 2], [1, 2, 3], [9, 3, 4]]])
    with pytest.raises(ValueError, match="two events of one list are 9 apart; expected fewer than max_positions=9"):
        posenc.attend(q, q, q, made(), Positions.at(coords))
    apart = Positions(coords, torch.arange(3)[None], torch.tensor([[0, 0, 1]]))
    assert posenc.attend(q, q, q, made(), apart).isfinite().all()
    with pytest.raises(TypeError, match="needs integer positions"):
        posenc.attend(q, q, q, made(), Positions.at(coords.double()))
