"""LieRE by matrix exponentials of explicit generators. Ostmeier et al. 2024, section 4, and the authors' code."""

import math

import numpy as np
import pytest
import torch
from scipy.linalg import expm

from posenc import Positions, attend
from posenc.encodings.liere import LieRE
from posenc.encodings.rope import RoPE

from .by_hand import attention, close, draw, each

H, G, D, S = 4, 2, 6, 3


def filled(axes: int = 2) -> LieRE:
    encoding = LieRE(D, H, n_kv_heads=G, axes=axes, block=S).double()
    with torch.no_grad():
        encoding.generators.copy_(torch.from_numpy(draw(30, *encoding.generators.shape)))
    return encoding


def rotation(encoding, p, g: int, sign: int = -1) -> np.ndarray:
    """The whole head's matrix at p; sign=+1 makes the generators symmetric, as they must not be."""
    free, whole = encoding.generators.detach().numpy(), np.zeros((D, D))
    for n in range(D // S):
        generator = np.zeros((S, S))
        for a, row, column in each(len(p), S, S):
            if column > row:
                generator[row, column] += p[a] * free[g, a, n, row, column]
                generator[column, row] += sign * p[a] * free[g, a, n, row, column]
        whole[S * n : S * n + S, S * n : S * n + S] = expm(generator)
    return whole


def papers(q, k, encoding, at_q, at_k, **broken):
    logits = np.zeros((*q.shape[:3], k.shape[2]))
    for b, h, i, j in each(*logits.shape):
        turned = rotation(encoding, at_q[i], h // (H // G), **broken) @ q[b, h, i]
        logits[b, h, i, j] = turned @ rotation(encoding, at_k[j], h // (H // G)) @ k[b, h // (H // G), j]
    return logits / math.sqrt(D)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_every_pair_by_matrix_exponentials(impl, axes):
    q, k, v = draw(1, 2, H, 3, D), draw(2, 2, G, 4, D), draw(3, 2, G, 4, D)
    at_q, at_k, encoding = draw(4, 3, axes), draw(5, 4, axes), filled(axes)
    coords = (torch.from_numpy(np.stack([at] * 2)) for at in (at_q, at_k))
    positions = [Positions.at(one if axes > 1 else one[..., 0]) for one in coords]
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, *positions, causal=False, impl=impl)
    close(got, attention(papers(q, k, encoding, at_q, at_k), v, lambda b, i, j: True))
    for broken in (papers(q, k, encoding, at_q, at_k, sign=1), papers(q, k, encoding, -at_q, at_k)):
        with pytest.raises(AssertionError):
            close(got, attention(broken, v, lambda b, i, j: True), atol=1e-3)


def test_one_axis_is_relative_and_two_are_not():
    q, k, v = (torch.from_numpy(draw(seed, 1, heads, 5, D)) for seed, heads in ((1, H), (2, G), (3, G)))
    for axes in (1, 2):
        encoding, here = filled(axes), torch.from_numpy(draw(4, 1, 5, axes))
        assert ("shift_invariant" in encoding.traits) == (axes == 1)
        here = here if axes > 1 else here[..., 0]
        mine, theirs = (attend(q, k, v, encoding, Positions.at(at), causal=False) for at in (here, here + 1.5))
        moved = (mine - theirs).abs().max().item()
        assert moved < 1e-11 if axes == 1 else moved > 1e-3


def test_blocks_of_two_channels_are_rope():
    encoding = LieRE(D, 2, axes=1, block=2).double()
    with torch.no_grad():
        for n in range(3):
            encoding.generators[:, 0, n, 0, 1] = -(10000.0 ** (-2 * n / D))
    q, k, v = (torch.from_numpy(draw(seed, 1, 2, 5, D)) for seed in (1, 2, 3))
    at = Positions.arange(1, 5)
    close(attend(q, k, v, encoding, at), attend(q, k, v, RoPE(D), at), atol=1e-7)  # the generators are float64 of float32


def test_a_fresh_one_is_uniform_in_a_whole_turn():
    fresh = LieRE(64, 8, axes=2).generators
    assert fresh.shape == (8, 2, 8, 8, 8)
    assert 0 <= fresh.min() < 0.01
    assert 6.27 < fresh.max() <= 2 * math.pi
    assert LieRE(64, 8, block=64).generators.shape == (8, 2, 1, 64, 64)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="block: d_head=6 cannot be shared evenly by blocks of 4 channels"):
        LieRE(D, H, block=4)
    with pytest.raises(ValueError, match="n_kv_heads: expected a number that divides n_heads=4, got 3"):
        LieRE(D, H, n_kv_heads=3)
    with pytest.raises(ValueError, match="LieRE: x: 3 heads cannot share the generators of 2"):
        filled().rotate(torch.zeros(1, 3, 4, D), Positions.grid(2, 2), "query")
    with pytest.raises(ValueError, match=r"LieRE: reads 2 coordinate\(s\) per token"):
        filled().rotate(torch.zeros(1, H, 4, D), Positions.arange(1, 4), "query")
