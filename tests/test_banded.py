"""The kernel for causal windows and documents: the formula in fp64, at every edge of its blocks and on every processor."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from posenc import Positions, attend, create, kernels
from posenc.attention import windows
from posenc.kernels import banded
from posenc.kernels.banded.gradients import gradients

pytestmark = pytest.mark.skipif(banded._kernel() is None, reason="without C++ kernels, torch's kernel computes windows")


def inputs(batch, heads, key_heads, length, width):
    source = torch.Generator().manual_seed(0)
    return [torch.randn(batch, n, length, width, generator=source) for n in (heads, key_heads, key_heads)]


def exact(q, k, v, left, scale, bias=None, document=None):
    """The formula, with a matrix of all pairs."""
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    at = torch.arange(q.shape[2])
    back = at[:, None] - at
    unseen = (back < 0) | (back > left)
    if document is not None:
        unseen = unseen | (document[:, None, :, None] != document[:, None, None, :])
    logits = q @ k.mT * scale + (0 if bias is None else bias.double()[:, back.clamp(0, left)])
    return logits.masked_fill(unseen, -torch.inf).softmax(-1) @ v


@pytest.mark.parametrize(
    ("length", "left", "width", "heads", "key_heads", "biased"),
    [
        (1, 0, 16, 1, 1, False),
        (13, 0, 16, 2, 1, True),  # no key but the query's own: three blocks, the last of one query
        (37, 5, 16, 2, 1, True),
        (100, 99, 80, 2, 2, True),  # the whole row; channels that are no multiple of 64
        (1100, 31, 48, 2, 1, False),  # two segments
        (1300, 1100, 32, 1, 1, True),  # a window longer than a segment
        (1300, 1299, 256, 2, 1, True),  # three chunks of 512 keys
        (1100, 600, 256, 1, 1, False),  # a query sees keys of two chunks
    ],
)
def test_windows_are_the_formula(length, left, width, heads, key_heads, biased):
    q, k, v = inputs(2, heads, key_heads, length, width)
    bias = torch.randn(heads, left + 1, generator=torch.Generator().manual_seed(1)) if biased else None
    out = torch.full((2, length, heads, width), torch.nan).transpose(1, 2)
    scale = width**-0.5
    banded.attend(q, k, v, bias, scale, left, out)
    true = exact(q, k, v, left, scale, bias)
    torch.testing.assert_close(out.double(), true, rtol=0, atol=8 * 2**-23 * max(1.0, true.abs().max().item()))


def test_every_row_and_head_has_its_own_reach():
    q, k, v = inputs(2, 4, 2, 1100, 128)
    bias = torch.randn(4, 900, generator=torch.Generator().manual_seed(1))
    cutoff = torch.tensor([[0, 899, 899, 40], [700, 31, 5, 500]])
    out = torch.full((2, 1100, 4, 128), torch.nan).transpose(1, 2)
    banded.attend(q, k, v, bias, 0.1, 899, out, cutoff)
    for row, head in ((row, head) for row in range(2) for head in range(4)):
        left, group = int(cutoff[row, head]), head // 2
        own = (x[row, at][None, None] for x, at in ((q, head), (k, group), (v, group)))
        true = exact(*own, left, 0.1, bias[head : head + 1, : left + 1])
        torch.testing.assert_close(out[row, head][None, None].double(), true, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("length", "width", "heads", "key_heads", "reaches"),
    [
        (1, 16, 1, 1, [0]),
        (13, 16, 2, 1, [12, 0]),  # one block of queries, which is not full
        (300, 80, 4, 2, [299, 299, 17, 60]),  # two chunks of 192 keys; channels that are no multiple of 64
        (200, 256, 2, 1, [5, 150]),  # chunks of 64 keys, which queries of several chunks see
    ],
)
def test_gradients_are_those_of_the_formula(length, width, heads, key_heads, reaches):
    q, k, v = inputs(2, heads, key_heads, length, width)
    source = torch.Generator().manual_seed(1)
    grad, bias = (torch.randn(*shape, generator=source) for shape in ((2, heads, length, width), (heads, length)))
    cutoff = torch.tensor([reaches, reaches[::-1]])
    back = torch.arange(length)[:, None] - torch.arange(length)
    unseen = (back < 0) | (back > cutoff[..., None, None])
    exactly = [x.double().requires_grad_() for x in (q, k, v, bias)]
    wide_k, wide_v = (x.repeat_interleave(heads // key_heads, dim=1) for x in exactly[1:3])
    scale = width**-0.5
    logits = exactly[0] @ wide_k.mT * scale + exactly[3][:, back.clamp(min=0)]
    logits = logits.masked_fill(unseen, -torch.inf)
    out, sums = logits.softmax(-1) @ wide_v, logits.logsumexp(-1)
    true = torch.autograd.grad(out, exactly, grad.double())
    inner = (grad * out).sum(-1)
    found = gradients(grad, q, k, v, bias, sums.detach().float(), inner.detach().float(), scale, cutoff, learned=True)
    for one, exact_one in zip(found, true, strict=True):
        torch.testing.assert_close(one.double(), exact_one, rtol=0, atol=3e-6 * max(1.0, exact_one.abs().max().item()))


def test_a_later_chunk_may_hold_all_the_weight_or_none():
    """Logits of 512 keys of one chunk lie 60 above those of the next, or below them."""
    q, k, v = inputs(1, 1, 1, 1100, 256)
    q *= 0.05
    for high in (slice(0, 512), slice(512, 1024)):
        more = torch.zeros(1100)
        more[high] = 60.0
        q[..., 0], k[..., 0] = 1.0, more
        out = torch.empty_like(q)
        banded.attend(q, k, v, None, 1.0, 1099, out)
        torch.testing.assert_close(
            out.double(), exact(q, k, v, 1099, 1.0), rtol=0, atol=1e-4
        )  # logits of 60 round to 2^-19


def test_large_logits_and_far_exponents_are_the_formula():
    q, k, v = inputs(1, 1, 1, 80, 16)
    out = torch.empty_like(q)
    banded.attend(100 * q, k, v, None, 1.0, 40, out)
    error = (out - exact(100 * q, k, v, 40, 1.0)).abs().max()
    whole = torch.nn.functional.scaled_dot_product_attention(100 * q, k, v, _mask(80, 40), scale=1.0)
    assert error <= 2 * (whole - exact(100 * q, k, v, 40, 1.0)).abs().max() + 2**-22


def _mask(length, left):
    back = torch.arange(length)[:, None] - torch.arange(length)
    return (back >= 0) & (back <= left)


@pytest.mark.parametrize("name", ["nope", "rope", "alibi", "t5"])
@pytest.mark.parametrize("left", [None, 4])
@torch.no_grad()
def test_attend_gives_documents_and_windows_to_it(name, left, monkeypatch):
    calls, attended = [], banded.attend
    monkeypatch.setattr(windows.banded, "attend", lambda *given: (calls.append(given[0].shape[2]), attended(*given)))
    encoding = create(name, d_model=64, n_heads=4, d_head=16)
    mask = torch.ones(2, 24, dtype=torch.bool)
    mask[0, :7] = False
    given, options = inputs(2, 4, 2, 24, 16), {} if left is None else {"window": (left, 0)}
    for at, lengths in (
        (Positions.packed([0, 5, 6, 17, 24]), [5, 1, 11, 7] * 2),
        (Positions.from_mask(mask), [17, 24]),
        (Positions.arange(2, 24), [] if left is None else [24]),
    ):
        calls.clear()
        found = attend(*given, encoding, at, **options)
        assert calls == lengths
        true = attend(*given, encoding, at, **options, impl="reference")
        torch.testing.assert_close(found, true, rtol=1e-5, atol=2e-6)


def test_what_it_does_not_serve_is_left_to_others(monkeypatch):
    monkeypatch.setattr(windows.banded, "attend", None)  # a call would raise
    at, window = Positions.arange(1, 24), {"window": (4, 0)}
    q, k, v = inputs(1, 4, 2, 24, 16)
    rope, t5 = create("rope", d_head=16), create("t5", n_heads=4)
    attend(q.requires_grad_(), k, v, rope, at, **window)
    q = q.detach()
    attend(q, k, v, t5, at, **window)  # its table wants a gradient
    with torch.no_grad():
        attend(q.double(), k.double(), v.double(), rope, at, **window)
        attend(q[..., :8], k[..., :8], v[..., :8], create("rope", d_head=8), at, **window)
        attend(q, k, v, create("cope", n_heads=4, d_head=16), at, **window)
        attend(q, k, v, rope, at, window=(4, 2), causal=False)
        attend(q, k, v, rope, at, **window, return_lse=True)
        attend(q, k, v, rope, at, **window, impl="sdpa")


@torch.no_grad()
def test_neither_batch_nor_threads_nor_layout_change_a_bit():
    q, k, v = inputs(2, 4, 2, 1100, 16)
    at, rope = Positions.arange(1, 1100), create("rope", d_head=16)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = attend(q[1:], k[1:], v[1:], rope, at, window=(20, 0))
        torch.set_num_threads(2)
        token_by_token = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
        assert torch.equal(attend(*token_by_token, rope, at, window=(20, 0))[1:], alone)
    finally:
        torch.set_num_threads(before)


BITS = """
import torch
from posenc.kernels import banded
from posenc.kernels.banded.gradients import gradients
q, k, v = torch.randn(3, 1, 1, 150, 48, generator=torch.Generator().manual_seed(0))
out = torch.empty_like(q)
banded.attend(q, k, v, torch.linspace(0, -1, 41)[None], 0.2, 40, out)
sums, cutoff = torch.full((1, 1, 150), 3.0), torch.tensor([[40]])
found = gradients(v, q, k, v, torch.linspace(0, -1, 41)[None], sums, out[..., 0], 0.2, cutoff, learned=True)
print([hash(x.contiguous().numpy().tobytes()) for x in (out, *found)])
"""


@pytest.mark.acceptance
@pytest.mark.skipif(kernels.instructions() not in ("avx512", "avx512_bf16"), reason="this processor has one variant")
def test_every_variant_gives_the_same_bits():
    def bits(**environment):
        here = {**os.environ, "PYTHONHASHSEED": "0", **environment}
        return subprocess.run([sys.executable, "-c", BITS], capture_output=True, text=True, check=True, env=here).stdout

    assert bits(POSENC_KERNELS="avx2") == bits()
