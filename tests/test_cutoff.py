"""Causal rows under a bias by distance: keys are left out only where they have no weight."""

from __future__ import annotations

import math

import pytest
import torch

from posenc import DistanceBias, Positions, attend, attend_rotated, create
from posenc.attention.backends.toeplitz import cutoff
from posenc.attention.backends.toeplitz.plain import in_torch
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
    found = cutoff.cutoffs_of(q, k, v, bias, 0.125)
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
    assert cutoff.cutoffs_of(q, k, v, bias, 0.125)[0, 1] == 500
    (found, sums), true = cutoff.attend(q, k, v, bias, 0.125), weights(q, k, bias, 0.125)
    torch.testing.assert_close(found.double(), true @ v.double(), rtol=0, atol=2e-6)
    own = (q * k).double().sum(-1) * 0.125 + bias[:, :1]  # the logit of a query's own key
    torch.testing.assert_close(sums.double(), own - true.diagonal(dim1=2, dim2=3).log(), rtol=0, atol=2e-5)


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


@pytest.mark.skipif(not banded._multiplies_bf16_best(), reason="torch's kernel takes bf16 here")
@pytest.mark.parametrize(("name", "options"), [("alibi", {}), ("t5", {}), ("rope", {"window": (70, 0)})])
@torch.no_grad()
def test_bf16_is_the_reference_rounded_once(name, options):
    """Products, softmax and sums are fp32: the result is the exact one of these queries, keys and values, rounded."""
    q, k, v = (x.bfloat16() for x in inputs(2, 4, 2, 600, 64))
    encoding, at = create(name, n_heads=4, d_head=64), Positions.arange(2, 600)
    turned = [encoding.rotate(x, at, side).double() for x, side in ((q, "query"), (k, "key"))]
    exact = attend_rotated(*turned, v.double(), encoding, at, at, **options, impl="reference")
    found = attend(q, k, v, encoding, at, **options)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), exact, rtol=2**-8, atol=1e-5)


def test_the_gradient_of_the_sums_is_that_of_the_formula():
    q, k, v = (x.requires_grad_() for x in inputs(1, 2, 1, 300, 64))
    vector = torch.randn(2, 1, 599, generator=torch.Generator().manual_seed(3)).requires_grad_()
    given, ahead = (q, k, v, vector), torch.zeros(1, dtype=torch.int64)

    def gradients(attend, tensors):
        out, sums = attend(*tensors, ahead, None, 0.125, True)
        return torch.autograd.grad(out.sum() + (sums * torch.arange(300)).sum(), tensors)

    exact = gradients(in_torch, [in_double(x) for x in given])
    for mine, true in zip(gradients(torch.ops.posenc.toeplitz_attention, given), exact, strict=True):
        torch.testing.assert_close(mine.double(), true, rtol=0, atol=2e-6 * max(1.0, true.abs().max().item()))


@torch.no_grad()
def test_too_small_a_reach_would_show(monkeypatch):
    q, k, v = inputs(1, 4, 4, 600, 64)
    encoding, at = create("alibi", n_heads=4), Positions.arange(1, 600)
    true = attend(q, k, v, encoding, at, impl="reference")
    monkeypatch.setattr(cutoff, "WEIGHTLESS", -40.0)
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


def test_which_rows_it_takes(monkeypatch):
    """Rows under a bias of the distance, with gradients or without; not attention both ways, nor under a window."""
    taken, made = [], cutoff.attend

    def spied(q, *rest):
        taken.append((q.shape[2], q.shape[3]))
        return made(q, *rest)

    monkeypatch.setattr(cutoff, "attend", spied)

    def ask(length, width, name="alibi", gradient=False, **options):
        q, k, v = inputs(1, 1, 1, length, width)
        attend(q.requires_grad_(gradient), k, v, create(name, n_heads=1), Positions.arange(1, length), **options)

    ask(300, 64, causal=False)
    ask(300, 64, window=(5, 0))
    assert taken == []
    for name in ("alibi", "t5"):  # T5's table wants a gradient
        for gradient in (False, True):
            ask(300, 16, name, gradient)
            ask(2049, 32, name, gradient)
    assert taken == 4 * [(300, 16), (2049, 32)]


def in_double(x):
    return x.detach().double().requires_grad_(x.requires_grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["alibi", "t5"])
def test_gradients_are_those_of_the_reference(name, dtype):
    source = torch.Generator().manual_seed(3)
    torch.manual_seed(0)  # for T5's table
    encoding, at = create(name, n_heads=4), Positions.arange(2, 600)
    given = [x.to(dtype).requires_grad_() for x in inputs(2, 4, 2, 600, 64)]
    grad = torch.randn(2, 4, 600, 64, generator=source).to(dtype)

    def gradients(tensors, impl):
        out = attend(*tensors, encoding, at, impl=impl)
        return torch.autograd.grad(out, [*tensors, *encoding.parameters()], grad.to(out.dtype))

    exact = gradients([in_double(x) for x in given], "reference")
    for mine, plain, true in zip(gradients(given, "auto"), gradients(given, "reference"), exact, strict=True):
        error, usual = ((x.double() - true).abs().max() for x in (mine, plain))
        assert error <= 2 * usual + torch.finfo(dtype).eps / 2 * true.abs().max()


class EarlierOnly(DistanceBias):
    """A query sees earlier tokens only: the first one sees none."""

    def __init__(self):
        super().__init__()

    def at_distance(self, delta):
        return torch.zeros(delta.shape).masked_fill(delta == 0, -math.inf).expand(2, -1)


@pytest.mark.parametrize("impl", ["auto", "toeplitz", "reference", "sdpa"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_bias_that_hides_the_own_key_leaves_zeros(impl, dtype):
    q, k, v = (x.to(dtype) for x in inputs(1, 2, 2, 130, 64))
    given = [x.clone().requires_grad_() for x in (q, k, v)]
    out, lse = attend(*given, EarlierOnly(), Positions.arange(1, 130), return_lse=True, impl="reference")
    assert (lse[:, :, 0] == -math.inf).all()
    out = attend(*given, EarlierOnly(), Positions.arange(1, 130), impl=impl)
    assert (out[:, :, 0] == 0).all()
    earlier = torch.ones(130, 130, dtype=torch.bool).tril(-1)
    exact = (q.double() @ k.double().mT / 8).masked_fill(~earlier, -math.inf).softmax(-1).nan_to_num(0.0) @ v.double()
    torch.testing.assert_close(out.double(), exact, rtol=0, atol=2e-6 if dtype == torch.float32 else 0.02)
    with torch.no_grad():
        assert (attend(q, k, v, EarlierOnly(), Positions.arange(1, 130), impl=impl)[:, :, 0] == 0).all()
    for gradient in torch.autograd.grad(out.float().square().sum(), given):
        assert gradient.isfinite().all()
