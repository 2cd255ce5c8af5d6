"""PoPE by loops over channels. Gopalakrishnan et al. 2025, section 3."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.pope import PoPE

from .by_hand import attention, close, draw, each, sees

D, H = 5, 4


def filled(base=10000.0) -> PoPE:
    encoding = PoPE(D, H, base=base).double()
    with torch.no_grad():
        encoding.phase.copy_(torch.from_numpy(4 * draw(70, H, D)))  # some beyond both ends
    return encoding


def softplus(x: float) -> float:
    return math.log(1 + math.exp(x))


def papers(q, k, encoding, at_q, at_k, base=10000.0, sign=1.0, pairs=False) -> np.ndarray:
    share, logits = q.shape[1] // k.shape[1], np.zeros((*q.shape[:3], k.shape[2]))
    for b, h, i, j in each(*logits.shape):
        for c in range(D):
            delta = min(max(encoding.phase[h, c].item(), -2 * math.pi), 0.0)
            omega = base ** (-(c // 2 * 2 if pairs else c) / D)
            angle = sign * (at_k[b][j] - at_q[b][i]) * omega + delta
            logits[b, h, i, j] += softplus(q[b, h, i, c]) * softplus(k[b, h // share, j, c]) * math.cos(angle)
    return logits / math.sqrt(D)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_scores_by_loops_over_channels(impl, causal):
    """The scale is that of the heads before they are widened."""
    q, k, v = draw(1, 2, H, 6, D), draw(2, 2, 2, 6, D), draw(3, 2, 2, 6, D)
    rows, order = [range(40, 46), range(6)], [range(6)] * 2
    at = Positions.arange(2, 6, torch.tensor([40, 0]))
    got = attend(*map(torch.from_numpy, (q, k, v)), filled(), at, causal=causal, impl=impl)
    close(got, attention(papers(q, k, filled(), rows, rows), v, sees(order, order, causal=causal)))


@pytest.mark.parametrize("mistake", [{"sign": -1.0}, {"base": 9000.0}, {"pairs": True}], ids=str)
def test_the_oracle_sees_a_broken_formula(mistake):
    q, k, v = (draw(seed, 1, H, 9, D) for seed in (1, 2, 3))
    rows = [range(9)]
    got = attend(*map(torch.from_numpy, (q, k, v)), filled(), Positions.arange(1, 9))
    with pytest.raises(AssertionError):
        close(got, attention(papers(q, k, filled(), rows, rows, **mistake), v, sees(rows, rows)), atol=1e-3)


def test_as_in_x_transformers():
    """Its listing: lengths by softplus, keys at freqs + bias, queries at freqs, cosines first."""
    q, k = (torch.from_numpy(draw(seed, 2, H, 7, D)) for seed in (1, 2))
    inv_freq = 1.0 / 10000 ** (torch.arange(D, dtype=torch.float64) / D)
    freqs = torch.arange(7, dtype=torch.float64)[:, None] * inv_freq
    bias = filled().phase.detach().clamp(-2 * math.pi, 0)[:, None]

    def polar(t, angle):
        return torch.cat([torch.nn.functional.softplus(t) * part for part in (angle.cos(), angle.sin())], dim=-1)

    theirs = polar(q, freqs) @ polar(k, freqs + bias).transpose(-1, -2)
    at = Positions.arange(2, 7)
    mine = filled().rotate(q, at, "query") @ filled().rotate(k, at, "key").transpose(-1, -2)
    close(mine, theirs)


def test_without_frequencies_and_phases_it_is_a_product_of_softplus():
    """Base ∞ leaves channel 0 turning; its length is then made zero."""
    q, k, v = (torch.from_numpy(draw(seed, 1, 1, 6, D)) for seed in (1, 2, 3))
    encoding, at = PoPE(D, 1, base=1e300).double(), Positions.arange(1, 6)
    q[..., 0] = -1e3
    lengths = [torch.nn.functional.softplus(x)[..., 1:].numpy() for x in (q, k)]
    logits = np.einsum("bhic,bhjc->bhij", *lengths) / math.sqrt(D)
    close(attend(q, k, v, encoding, at), attention(logits, v.numpy(), sees([range(6)], [range(6)])))


def test_rotated_tensors_are_twice_as_wide_and_values_are_not():
    x, at = torch.randn(2, H, 3, D), Positions.arange(2, 3)
    assert PoPE(D, H).rotate(x, at, "query").shape == PoPE(D, H).rotate(x, at, "key").shape == (2, H, 3, 2 * D)
    assert PoPE(D, H).rotate(x, at, "value") is x
    out = torch.empty(2, H, 3, 2 * D)
    assert PoPE(D, H).rotate(x, at, "key", out) is out
    with pytest.raises(ValueError, match="out: expected"):
        PoPE(D, H).rotate(x, at, "key", torch.empty_like(x))


def test_far_positions_keep_their_angles():
    """2^40 + 1 against 2^40, in float32 as between 1 and 0: angles are fp64 numbers."""
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 2, D)).float() for seed in (1, 2, 3))
    near, far = (attend(q, k, v, filled().float(), Positions.arange(1, 2, start)) for start in (0, 2**30))
    close(near, far.detach(), atol=1e-5)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="PoPE: built for n_heads=4, got a tensor with 2 as q"):
        attend(*[torch.zeros(1, 2, 4, D)] * 3, PoPE(D, H), Positions.arange(1, 4))
    with pytest.raises(ValueError, match="PoPE: built for d_head=5, got a tensor with 6"):
        attend(*[torch.zeros(1, H, 4, 6)] * 3, PoPE(D, H), Positions.arange(1, 4))
    with pytest.raises(ValueError, match="base: expected a positive number, got 0"):
        PoPE(D, H, base=0)
