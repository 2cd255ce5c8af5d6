"""Causal rows under a bias by distance: keys are left out only where they have no weight."""

from __future__ import annotations

import math

import pytest
import torch

from posenc import Positions, attend, create
from posenc.attention.backends.toeplitz import reach
from posenc.kernels import banded

pytestmark = pytest.mark.skipif(banded._kernel() is None, reason="without C++ kernels, torch's kernel takes such rows")


def inputs(batch, heads, key_heads, length, width, seed=0):
    source = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, n, length, width, generator=source) for n in (heads, key_heads, key_heads)]


def weights(q, k, bias, scale):
    """Softmax in fp64 over a matrix of all pairs, [b, h, i, j]."""
    at = torch.arange(q.shape[2])
    back = at[:, None] - at
    wide = k.double().repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    logits = q.double() @ wide.mT * scale + bias.double()[:, back.clamp(min=0)]
    return logits.masked_fill(back < 0, -torch.inf).softmax(-1)


def fallen(heads, length):
    return -(2.0 ** -torch.arange(1.0, heads + 1))[:, None] * torch.arange(length)


@pytest.mark.parametrize("norm", [0.0, 1.0, 20.0])
def test_no_weight_is_left_out(norm):
    q, k, v = inputs(2, 4, 2, 700, 64)
    q[1] *= norm
    bias = fallen(4, 700)
    found = reach.reach_of(q, k, v, bias, 0.125)
    assert found.shape == (2, 4)
    back = torch.arange(700)[:, None] - torch.arange(700)
    beyond = back > found[:, :, None, None]
    assert weights(q, k, bias, 0.125).masked_fill(~beyond, 0).max() < math.exp(-80)
    assert found[1, 0] < 700 - 1 or norm == 20.0
    assert norm != 20.0 or (found[1] == 699).all()


def test_the_farthest_distance_counts_where_a_bias_rises_again():
    q, k, v = inputs(1, 2, 2, 700, 64)
    bias = fallen(2, 700) * 100
    bias[1, 500] = 0.0
    assert reach.reach_of(q, k, v, bias, 0.125)[0, 1] == 500
    found, true = reach.attended(q, k, v, bias, 0.125), weights(q, k, bias, 0.125) @ v.double()
    torch.testing.assert_close(found.double(), true, rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", ["alibi", "kerple", "t5"])
@pytest.mark.parametrize(("heads", "key_heads", "width"), [(4, 4, 64), (4, 1, 128)])
@torch.no_grad()
def test_attention_is_that_of_the_reference(name, heads, key_heads, width):
    q, k, v = inputs(2, heads, key_heads, 600, width)
    q[1] *= 10
    encoding, at = create(name, n_heads=heads), Positions.arange(2, 600)
    exact = attend(q.double(), k.double(), v.double(), encoding, at, impl="reference")
    error, plain = ((attend(q, k, v, encoding, at, impl=impl) - exact).abs().max() for impl in ("auto", "sdpa"))
    assert error <= 2 * plain + 2**-21  # logits of up to 100 round to 2^-18


@torch.no_grad()
def test_too_small_a_reach_would_show(monkeypatch):
    q, k, v = inputs(1, 4, 4, 600, 64)
    encoding, at = create("alibi", n_heads=4), Positions.arange(1, 600)
    true = attend(q, k, v, encoding, at, impl="reference")
    monkeypatch.setattr(reach, "WEIGHTLESS", -40.0)
    assert (attend(q, k, v, encoding, at) - true).abs().max() > 1e-4


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("which", ["q", "k", "v"])
@torch.no_grad()
def test_what_is_no_number_is_seen_as_far_as_in_the_reference(which, value):
    """Token 3 has it. Later tokens see it however far they are, as 0 · inf is no number; earlier ones do not."""
    q, k, v = inputs(1, 4, 4, 600, 64)
    {"q": q, "k": k, "v": v}[which][0, 0, 3, 5] = value
    encoding, at = create("alibi", n_heads=4), Positions.arange(1, 600)
    found, true = attend(q, k, v, encoding, at), attend(q, k, v, encoding, at, impl="reference")
    seen = slice(3, None) if which == "v" else slice(None)
    assert torch.equal(found[:, :, seen].isfinite(), true[:, :, seen].isfinite())
    assert not true.isfinite().all()


@torch.no_grad()
def test_a_row_does_not_depend_on_the_others():
    q, k, v = inputs(2, 4, 2, 600, 64)
    q[0] *= 100
    encoding = create("alibi", n_heads=4)
    together = attend(q, k, v, encoding, Positions.arange(2, 600))
    assert torch.equal(together[1:], attend(q[1:], k[1:], v[1:], encoding, Positions.arange(1, 600)))


def test_rows_that_the_lab_has_stored_keep_their_path(monkeypatch):
    """Up to 2048 tokens with heads of fewer than 64 channels; with gradients too, and where attention is not causal."""
    taken = []
    monkeypatch.setattr(reach, "attended", lambda q, k, v, *rest: taken.append((q.shape[2], q.shape[3])) or v)

    def ask(length, width, **options):
        q, k, v = inputs(1, 1, 1, length, width)
        attend(q, k, v, create("alibi", n_heads=1), Positions.arange(1, length), **options)

    ask(2048, 32)
    ask(300, 64, causal=False)
    ask(300, 64, window=(5, 0))
    q, k, v = inputs(1, 1, 1, 300, 64)
    attend(q.requires_grad_(), k, v, create("alibi", n_heads=1), Positions.arange(1, 300))
    attend(q.detach(), k, v, create("t5", n_heads=1), Positions.arange(1, 300))  # its table wants a gradient
    assert taken == []
    ask(2049, 32)
    ask(300, 64)
    assert taken == [(2049, 32), (300, 64)]
