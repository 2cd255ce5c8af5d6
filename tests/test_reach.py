"""Causal rows under a bias that falls with distance: every head reads as far as weights are not 0."""

from __future__ import annotations

import pytest
import torch

from posenc import Positions, attend, create
from posenc.kernels import banded
from posenc.kernels.banded.reach import reaches

pytestmark = pytest.mark.skipif(banded._kernel() is None, reason="without C++ kernels, torch's kernel computes these rows")


def inputs(batch, heads, key_heads, length, width=64):
    source = torch.Generator().manual_seed(0)
    return [torch.randn(batch, n, length, width, generator=source) for n in (heads, key_heads, key_heads)]


def exact(q, k, v, bias, scale):
    """The formula with a matrix of all pairs, in fp64."""
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    back = torch.arange(q.shape[2])[:, None] - torch.arange(q.shape[2])
    logits = q @ k.mT * scale + bias.double()[:, back.clamp(min=0)]
    return logits.masked_fill(back < 0, -torch.inf).softmax(-1) @ v


def computed(q, k, v, bias, scale, reach):
    out = torch.full_like(q, torch.nan)
    banded.attended(q, k, v, bias, scale, int(reach.max()), out, reach)
    return out


def linear(length, *slopes):
    return -torch.tensor(slopes)[:, None] * torch.arange(length)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 300])
@pytest.mark.parametrize("size", [1e-4, 1.0, 4.0])
def test_every_head_and_row_is_the_formula(length, size):
    q, k, v = inputs(2, 4, 2, length)
    q = q * torch.tensor([size, size / 3])[:, None, None, None]
    bias = linear(length, 5.0, 1.0, 0.3, 2.0)
    reach = reaches(q, k, bias, 0.125)
    error = (computed(q, k, v, bias, 0.125, reach) - exact(q, k, v, bias, 0.125)).abs().max()
    assert error <= 2e-5
    if length == 300 and size <= 1:
        assert reach[0, 0] < reach[0, 1] < reach[0, 2]  # or the test says nothing about bands
    if length == 300 and size >= 1:
        assert reach[0, 1] > reach[1, 1]  # larger queries reach further


def test_no_weight_of_the_whole_row_is_lost():
    q, k, v = inputs(1, 2, 2, 500)
    bias = linear(500, 3.0, 0.9)
    reach = reaches(q, k, bias, 0.125)
    assert reach.max() < 499
    whole = computed(q, k, v, bias, 0.125, torch.full((1, 2), 499))
    torch.testing.assert_close(computed(q, k, v, bias, 0.125, reach), whole, rtol=0, atol=1e-6)
    logits = (
        q.double() @ k.double().mT * 0.125 + bias.double()[:, (torch.arange(500)[:, None] - torch.arange(500)).clamp(min=0)]
    )
    back = torch.arange(500)[:, None] - torch.arange(500)
    largest = logits.masked_fill(back < 0, -torch.inf).amax(-1, keepdim=True)
    beyond = back > reach[0, :, None, None]
    assert (logits - largest).masked_fill(~beyond, -torch.inf).max() < -86.6


def test_a_bound_without_the_norms_is_caught():
    q, _, v = inputs(1, 1, 1, 200)
    q = 4 * q
    k = q.roll(-150, 2)  # the key 150 tokens back is the query itself
    bias = linear(200, 1.0)
    too_small = torch.tensor([[88]])
    assert (computed(q, k, v, bias, 0.5, too_small) - exact(q, k, v, bias, 0.5)).abs().max() > 0.1
    reach = reaches(q, k, bias, 0.5)
    assert (computed(q, k, v, bias, 0.5, reach) - exact(q, k, v, bias, 0.5)).abs().max() < 1e-3


def test_a_bias_that_rises_again_is_followed_to_its_last_key():
    q, k, v = inputs(1, 1, 1, 200)
    bias = linear(200, 5.0)
    bias[0, 150] = 0.0
    reach = reaches(q, k, bias, 0.125)
    assert reach.item() == 150
    torch.testing.assert_close(
        computed(q, k, v, bias, 0.125, reach).double(), exact(q, k, v, bias, 0.125), rtol=0, atol=2e-6
    )


@torch.no_grad()
def test_attend_takes_long_wide_rows_and_leaves_the_rest(monkeypatch):
    taken, attended = [], banded.attended
    monkeypatch.setattr(banded, "attended", lambda *given: (taken.append(given[7]), attended(*given)))
    alibi, at = create("alibi", n_heads=8), Positions.arange(1, 1024)
    q, k, v = inputs(1, 8, 2, 1024)
    q = q / 4
    found = attend(q, k, v, alibi, at)
    assert len(taken) == 1
    torch.testing.assert_close(found, attend(q, k, v, alibi, at, impl="reference"), rtol=1e-5, atol=2e-6)
    attend(q[..., :32], k[..., :32], v[..., :32], alibi, at)  # as wide as the lab's
    attend(q[:, :, :1000], k[:, :, :1000], v[:, :, :1000], alibi, Positions.arange(1, 1000))
    attend(q, k, v, create("t5", n_heads=8), at)  # does not fall
    attend(100 * q, k, v, alibi, at)  # norms too large for a band
    assert len(taken) == 1


@torch.no_grad()
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_stays_so(bad):
    alibi, at = create("alibi", n_heads=8), Positions.arange(1, 1024)
    for which in (0, 1, 2):
        given = inputs(1, 8, 2, 1024)
        given[0].div_(4)
        given[which][0, 0, 3, 5] = bad
        assert which == 2 or reaches(*given[:2], linear(1024, *[1.0] * 8), 0.125) is None
        found, true = attend(*given, alibi, at), attend(*given, alibi, at, impl="sdpa")
        assert torch.equal(found.isnan(), true.isnan())
        assert found.isnan().any()
