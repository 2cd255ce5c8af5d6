"""Selective RoPE by loops over tokens, taps and pairs. Movahedi et al. 2025, section 4, and the authors' code."""

import itertools
import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.rope import RoPE
from posenc.encodings.selective_rope import SelectiveRoPE

from .by_hand import close, draw, products, turned

M, H, G, D = 8, 4, 2, 6


def filled(**options) -> SelectiveRoPE:
    encoding = SelectiveRoPE(M, H, D, n_kv_heads=G, rank=3, **options).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(80 + seed, *parameter.shape)))
    return encoding


def angles(encoding, x, order, documents, b: int, t: int, g: int, base=500000.0, first=0) -> list[float]:
    down, up, taps = (getattr(encoding, name).detach().numpy() for name in ("down", "up", "taps"))

    def plain(s: int) -> np.ndarray:
        parts = x[b, s].reshape(H, -1)
        return up @ (down @ (parts / np.sqrt((parts**2).sum(-1, keepdims=True) + 1e-6)).reshape(-1))

    same = sorted((s for s in range(x.shape[1]) if documents[b][s] == documents[b][t]), key=lambda s: order[b][s])
    total = np.zeros(G * D // 2)
    for place, s in enumerate(same):
        if order[b][s] + first <= order[b][t]:
            for back in range(min(4, place + 1)):
                total += taps[:, 3 - back] * plain(same[place - back])
    return [total[g * D // 2 + n] * base ** (-2 * n / D) for n in range(D // 2)]


def papers(q, k, x, encoding, order, documents, **broken) -> np.ndarray:
    new_q, new_k = np.zeros_like(q), np.zeros_like(k)
    for b, t in itertools.product(range(x.shape[0]), range(x.shape[1])):
        for h in range(H):
            new_q[b, h, t] = turned(q[b, h, t], angles(encoding, x, order, documents, b, t, h // 2, **broken), "half")
        for g in range(G):
            new_k[b, g, t] = turned(k[b, g, t], angles(encoding, x, order, documents, b, t, g), "half")
    return products(new_q, new_k)


def test_steps_of_one_are_rope():
    """A hidden state that is the same for all tokens, and taps that read the token alone."""
    encoding = SelectiveRoPE(M, H, D, rank=1).double()
    x = torch.ones(2, 7, M, dtype=torch.float64)
    with torch.no_grad():
        encoding.down.fill_(1 / (H * 2 / math.sqrt(2 + 1e-6)))
        encoding.up.fill_(1.0)
        encoding.taps.zero_()
        encoding.taps[:, -1] = 1.0
    q, k, v = (torch.from_numpy(draw(seed, 2, H, 7, D)) for seed in (1, 2, 3))
    at, rope = Positions.arange(2, 7), RoPE(D, base=500000.0, layout="half")
    close(attend(q, k, v, encoding, encoding.read_hidden(x, at)), attend(q, k, v, rope, at), atol=1e-11)


def test_wrong_arguments():
    q, at = torch.zeros(1, H, 4, D), Positions.arange(1, 4)
    with pytest.raises(ValueError, match=r"at: carries nothing read by SelectiveRoPE.*call read_hidden\(x, at\)"):
        attend(q, q, q, SelectiveRoPE(M, H, D), at)
    encoding = SelectiveRoPE(M, H, D)
    read = encoding.read_hidden(torch.zeros(1, 4, M), at)
    for tokens in (1, 3, 5):
        with pytest.raises(ValueError, match=rf"has positions \[1, 4\] for tokens \[1, {tokens}\]"):
            encoding.rotate(torch.zeros(1, H, tokens, D), read, "query")
    with pytest.raises(ValueError, match="d_model: expected a multiple of parts=3, of n_heads unless given, got 8"):
        SelectiveRoPE(M, H, D, parts=3)
    with pytest.raises(ValueError, match="n_kv_heads: expected a number that divides n_heads=4, got 3"):
        SelectiveRoPE(M, H, D, n_kv_heads=3)
