"""Attention by regions of pairs against the formula of every pair, written here in fp64."""

from __future__ import annotations

import pytest
import torch

import posenc
from posenc import Positions, attend, attend_rotated
from posenc.attention.backends import BACKENDS, regions
from posenc.attention.call import Call
from posenc.attention.plan import backend_of

LENGTH, D_HEAD = 300, 8  # more than one block of queries


def turned(x, position):
    """RoPE, neighbouring channels a pair, of x [b, h, d] at one position."""
    frequency = 10000.0 ** (-torch.arange(0, D_HEAD, 2, dtype=torch.float64) / D_HEAD)
    pair = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pair * torch.polar(torch.ones_like(frequency), frequency * position)).flatten(-2)


def self_extend(i, j):
    return (i, j) if i - j < 70 else (i // 4 + 70 - 70 // 4, j // 4)


def rerope(i, j):
    return (i, j) if i - j < 70 else (70, 0)


def dual_chunk(i, j):
    back = i // 90 - j // 90
    return (i, j) if back == 0 else (min(i % 90 + 90, 119) if back == 1 else 119, j % 90)


def leaky_rerope(i, j):
    return (i, j) if i - j < 70 else (70 + (i - 70) / 4, j / 4)


def lm_infinite(i, j):
    return (i, j) if i - j < 70 else (70, 0) if j < 3 else None


def shifted_rope(i, j):
    return (i, j) if i - j < 100 else (i - 80, j)


CASES = {
    "self_extend": (
        self_extend,
        lambda: posenc.create("self_extend", d_head=D_HEAD, layout="interleaved", window=70, group=4),
    ),
    "rerope": (rerope, lambda: posenc.create("rerope", d_head=D_HEAD, layout="interleaved", window=70)),
    "leaky_rerope": (
        leaky_rerope,
        lambda: posenc.create("rerope", d_head=D_HEAD, layout="interleaved", window=70, leak=4.0),
    ),
    "dual_chunk": (
        dual_chunk,
        lambda: posenc.create("dual_chunk", d_head=D_HEAD, layout="interleaved", trained_length=120),
    ),
    "lm_infinite": (
        lm_infinite,
        lambda: posenc.create("lm_infinite", d_head=D_HEAD, layout="interleaved", near=70, starting=3),
    ),
    "shifted_rope": (shifted_rope, lambda: posenc.create("shifted_rope", d_head=D_HEAD, shift=100, local=20)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_few_queries_agree_with_the_formula_of_every_pair(name):
    turned_to, make = CASES[name]
    encoding = make()
    q, k, v = torch.randn(3, 1, 2, LENGTH, D_HEAD, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    at = Positions.arange(1, LENGTH)
    assert backend_of(Call.of(q, q, q, encoding, at, at, True)) is BACKENDS["regions"]
    out = attend(q, k, v, encoding, at)
    for i in (0, 69, 70, 131, 255, 256, 299):
        seen = [(j, found) for j in range(i + 1) if (found := turned_to(i, j)) is not None]
        logits = [(turned(q[:, :, i], a) * turned(k[:, :, j], b)).sum(-1) / D_HEAD**0.5 for j, (a, b) in seen]
        probs = torch.stack(logits, dim=-1).softmax(dim=-1)
        expected = (probs[..., None] * v[:, :, [j for j, _ in seen]]).sum(dim=2)
        torch.testing.assert_close(out[:, :, i], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_gradients_and_padding_agree_with_the_reference(name):
    encoding = CASES[name][1]()
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(2, heads, LENGTH, width, dtype=torch.float64, generator=generator, requires_grad=True)
        for heads, width in ((4, D_HEAD), (2, D_HEAD), (2, 12))
    )
    at = Positions.from_mask(torch.arange(LENGTH) >= torch.tensor([[0], [40]]))
    found = []
    for impl in ("regions", "reference"):
        out = attend(q, k, v, encoding, at, impl=impl)
        found.append((out, *torch.autograd.grad(out.sin().sum(), (q, k, v))))
    for ours, exact in zip(*found, strict=True):
        torch.testing.assert_close(ours, exact, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_queries_after_a_cache_agree_with_the_reference(name):
    """Rows that begin elsewhere, shared key heads, one decoded token and a chunk of several blocks."""
    encoding, generator = CASES[name][1](), torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, heads, 600, D_HEAD, dtype=torch.float64, generator=generator) for heads in (4, 2, 2))
    at_k = Positions.arange(2, 600, torch.tensor([0, 37]))
    for first in (599, 290):
        at_q = Positions.arange(2, 600 - first, torch.tensor([0, 37]) + first)
        found = [attend(q[:, :, first:], k, v, encoding, at_q, at_k, impl=impl) for impl in ("regions", "reference")]
        torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)


def test_channels_that_are_not_side_by_side_in_memory():
    """torch's kernel takes them to be; gradients of a sum have a stride of 0."""
    encoding, at, generator = CASES["self_extend"][1](), Positions.arange(1, LENGTH), torch.Generator().manual_seed(0)
    memory = torch.randn(3, 1, 2, D_HEAD, LENGTH, dtype=torch.float64, generator=generator, requires_grad=True)
    found = []
    for of_memory in (memory.mT, memory.mT.contiguous()):
        out = attend_rotated(*of_memory, encoding, at, at, impl="regions")
        found.append((out, *torch.autograd.grad(out.sum(), memory)))
    for strided, dense in zip(*found, strict=True):
        torch.testing.assert_close(strided, dense, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_masks_grow_with_the_length_and_not_with_its_square(name):
    def size(batch, length):
        at = Positions.arange(batch, length)
        pieces, _, _ = regions.pieces_of(CASES[name][1](), at, at, True, torch.float32)
        return sum(piece.mask.numel() for piece in pieces if piece.mask is not None)

    assert 0 < size(1, 2048) == size(3, 2048) < 2.5 * size(1, 1024)


def test_gradients_can_be_differentiated_again():
    encoding, at = posenc.create("self_extend", d_head=4, window=2, group=2), Positions.arange(1, 5)
    inputs = [x.requires_grad_() for x in torch.randn(3, 1, 2, 5, 4, dtype=torch.float64)]
    assert torch.autograd.gradgradcheck(lambda q, k, v: attend(q, k, v, encoding, at, impl="regions"), inputs)
