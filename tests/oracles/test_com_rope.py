"""ComRoPE and Cayley-STRING by scipy's matrix exponential and numpy's inverse.

Yu et al. 2025, section 3; Schenck et al. 2025, section 3.
"""

import math

import numpy as np
import pytest
import torch
from scipy.linalg import expm

from posenc import Positions, attend
from posenc.encodings.cayley_string import CayleySTRING
from posenc.encodings.com_rope import ComRoPE
from posenc.encodings.rope import RoPE
from posenc.frequencies import axial, rotary

from .by_hand import attention, close, draw, each, turned

H, G, D = 4, 2, 6


def filled(form: str, axes: int = 2) -> ComRoPE:
    encoding = ComRoPE(D, H, n_kv_heads=G, axes=axes, block=3, form=form).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(0.5 * draw(30 + seed, *parameter.shape)))
    return encoding


def rotation(encoding, p, g: int, skew=True) -> np.ndarray:
    """The whole head's matrix at a position of two coordinates."""
    free, whole = encoding.generators.detach().numpy(), np.zeros((D, D))
    for n in range(2):
        generator = free[g, n] - free[g, n].T if skew else free[g, n]
        if encoding.form == "LD":
            mixture = encoding.mixture.detach().numpy()
            along = mixture[0, n] * p[0] + mixture[1, n] * p[1]
        else:
            along = p[n]  # block n reads axis n
        whole[3 * n : 3 * n + 3, 3 * n : 3 * n + 3] = expm(along * generator)
    return whole


def papers(q, k, encoding, at_q, at_k, **broken):
    logits = np.zeros((*q.shape[:3], k.shape[2]))
    for b, h, i, j in each(*logits.shape):
        g = h // (H // G)
        turned_q = rotation(encoding, at_q[i], g, **broken) @ q[b, h, i]
        logits[b, h, i, j] = turned_q @ rotation(encoding, at_k[j], g) @ k[b, g, j]
    return logits / math.sqrt(D)


@pytest.mark.parametrize("form", ["LD", "AP"])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_every_pair_by_matrix_exponentials(impl, form):
    q, k, v = draw(1, 2, H, 3, D), draw(2, 2, G, 4, D), draw(3, 2, G, 4, D)
    at_q, at_k, encoding = draw(4, 3, 2), draw(5, 4, 2), filled(form)
    positions = (Positions.at(torch.from_numpy(np.stack([at] * 2))) for at in (at_q, at_k))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, *positions, causal=False, impl=impl)
    close(got, attention(papers(q, k, encoding, at_q, at_k), v, lambda b, i, j: True))
    broken = papers(q, k, encoding, at_q, at_k, skew=False)
    with pytest.raises(AssertionError):
        close(got, attention(broken, v, lambda b, i, j: True), atol=1e-3)


@pytest.mark.parametrize("form", ["LD", "AP"])
def test_scores_depend_on_the_offset_alone_along_every_axis(form):
    q, k, v = (torch.from_numpy(draw(seed, 1, heads, 5, D)) for seed, heads in ((1, H), (2, G), (3, G)))
    here = torch.from_numpy(draw(4, 1, 5, 2))
    moved = here + torch.tensor([3.0, -1.5], dtype=torch.float64)
    mine, theirs = (attend(q, k, v, filled(form), Positions.at(at), causal=False) for at in (here, moved))
    close(mine, theirs.detach(), atol=1e-11)


def test_blocks_of_two_channels_are_rope():
    """A generator [[0, -½], [½, 0]] twice, mixed with RoPE's frequencies."""
    encoding, omega = ComRoPE(D, 2, axes=1, block=2).double(), [10000.0 ** (-2 * n / D) for n in range(D // 2)]
    with torch.no_grad():
        encoding.generators.copy_(torch.tensor([[0.0, -0.5], [0.5, 0.0]]).expand(2, 3, 2, 2))
        encoding.mixture.copy_(torch.tensor([omega], dtype=torch.float64))
    q, k, v = (torch.from_numpy(draw(seed, 1, 2, 5, D)) for seed in (1, 2, 3))
    at = Positions.arange(1, 5)
    close(attend(q, k, v, encoding, at), attend(q, k, v, RoPE(D), at), atol=1e-11)


def test_the_basis_of_string_by_an_inverse():
    encoding = CayleySTRING(D, frequencies=axial(rotary(2, 30.0), (0, 1, 2))).double()
    with torch.no_grad():
        encoding.free.copy_(torch.from_numpy(draw(6, D, D)))
    skew = encoding.free.detach().numpy() - encoding.free.detach().numpy().T
    basis = (np.eye(D) - skew) @ np.linalg.inv(np.eye(D) + skew)
    close(basis @ basis.T, np.eye(D))
    x, at = draw(1, 1, 2, 4, D), draw(2, 1, 4, 3)
    got = encoding.rotate(torch.from_numpy(x), Positions.at(torch.from_numpy(at)), "key").detach().numpy()
    for h, t in each(2, 4):
        close(got[0, h, t], turned(basis @ x[0, h, t], list(at[0, t]), "interleaved"))
        with pytest.raises(AssertionError):  # the inverse basis
            close(got[0, h, t], turned(basis.T @ x[0, h, t], list(at[0, t]), "interleaved"), atol=1e-3)


def test_fresh_string_is_rope():
    x, at = torch.from_numpy(draw(1, 1, 2, 4, D)), Positions.arange(1, 4, 7)
    close(CayleySTRING(D).rotate(x, at, "query"), RoPE(D).rotate(x, at, "query"))
    assert CayleySTRING(D).rotate(x, at, "value") is x


def test_wrong_arguments():
    with pytest.raises(ValueError, match="block: d_head=6 cannot be shared evenly by blocks of 4 channels"):
        ComRoPE(D, H, block=4)
    with pytest.raises(ValueError, match="blocks of 6 channels and 2 axes"):
        ComRoPE(D, H, block=6, form="AP")
    with pytest.raises(ValueError, match="form: expected one of 'LD', 'AP', got 'LA'"):
        ComRoPE(D, H, block=3, form="LA")
    with pytest.raises(ValueError, match=r"ComRoPE: reads 2 coordinate\(s\) per token"):
        ComRoPE(D, H, block=3).rotate(torch.zeros(1, H, 4, D), Positions.arange(1, 4), "query")
