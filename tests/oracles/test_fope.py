"""FoPE by loops over heads, waves and pairs. Hua et al. 2024, section 4, and the authors' code."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.fope import FoPE
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies

from .by_hand import attention, close, draw, each, products, sees

D, H, L = 12, 4, 50  # waves of base 10 000: 1, .215, .046, … of which only two reach 2π/50 = .126


def filled(n_kv_heads=None, **options) -> FoPE:
    encoding = FoPE(D, H, n_kv_heads=n_kv_heads, **{"trained_length": L} | options).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(80 + seed, *parameter.shape)))
    return encoding


def mixed(x, encoding, rows, *, base=10000.0, length=L, sign=1.0, still=0.0, most=D // 2, layout="half") -> np.ndarray:
    """Every vector with its pairs turned by mixtures; `still` is the sine of the pairs that training never saw whole."""
    waves = [base ** (-2 * n / D) for n in range(D // 2)]
    waves = [wave for wave in waves if wave >= 2 * math.pi / length]
    groups, out = encoding.cosines.shape[0], np.zeros_like(x)
    for b, h, t in each(*x.shape[:3]):
        g = h // (x.shape[1] // groups)
        for m in range(D // 2):
            first, second = (m, m + D // 2) if layout == "half" else (2 * m, 2 * m + 1)
            cos, sin = 1.0, still
            if m < min(len(waves), most):
                cos = sum(encoding.cosines[g, n, m].item() * math.cos(rows[b][t] * w) for n, w in enumerate(waves))
                sin = sign * sum(encoding.sines[g, n, m].item() * math.sin(rows[b][t] * w) for n, w in enumerate(waves))
            out[b, h, t, first] = x[b, h, t, first] * cos - x[b, h, t, second] * sin
            out[b, h, t, second] = x[b, h, t, second] * cos + x[b, h, t, first] * sin
    return out


def papers(q, k, encoding, rows, **wrong) -> np.ndarray:
    return products(mixed(q, encoding, rows, **wrong), mixed(k, encoding, rows, **wrong))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize(
    ("groups", "options", "said"),
    [
        (None, {}, {}),
        (2, {"layout": "interleaved"}, {"layout": "interleaved"}),
        (4, {"base": 100.0, "trained_length": 200}, {"base": 100.0, "length": 200}),
        (None, {"form": "code", "base": 10.0}, {"base": 10.0, "still": 1.0, "most": D // 4}),
    ],
    ids=str,
)
def test_scores_by_loops(impl, causal, groups, options, said):
    kv = groups or H
    q, k, v = draw(1, 2, H, 6, D), draw(2, 2, kv, 6, D), draw(3, 2, kv, 6, D)
    rows, order, encoding = [range(40, 46), range(6)], [range(6)] * 2, filled(groups, **options)
    at = Positions.arange(2, 6, torch.tensor([40, 0]))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=causal, impl=impl)
    close(got, attention(papers(q, k, encoding, rows, **said), v, sees(order, order, causal=causal)))


@pytest.mark.parametrize("mistake", [{"sign": -1.0}, {"length": 500}, {"still": 1.0}, {"layout": "interleaved"}], ids=str)
def test_the_oracle_sees_a_broken_formula(mistake):
    """A longer trained length asks for more waves than the encoding has, which is an error of its own."""
    q, k, v = (draw(seed, 1, H, 9, D) for seed in (1, 2, 3))
    rows, encoding = [range(9)], filled()
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(1, 9))
    with pytest.raises((AssertionError, IndexError)):
        close(got, attention(papers(q, k, encoding, rows, **mistake), v, sees(rows, rows)), atol=1e-3)


def test_without_noise_it_is_rope_with_the_slow_pairs_cut_off():
    waves = [10000 ** (-2 * n / D) for n in range(D // 2)]
    cut = RoPE(D, frequencies=Frequencies(tuple(w if w >= 2 * math.pi / L else 0.0 for w in waves)), layout="half")
    x, at = torch.from_numpy(draw(1, 2, H, 6, D)), Positions.arange(2, 6, 70)
    close(FoPE(D, H, trained_length=L, noise=0.0).double().rotate(x, at, "key"), cut.rotate(x, at, "key"))


def test_as_in_the_authors_code():
    """Its einsum of waves and coefficients, padded with ones, on its rotate_half."""
    encoding = filled(form="code", base=10.0)
    assert encoding.cosines.shape == (H, 6, D // 4)
    x, at = torch.from_numpy(draw(1, 1, H, 7, D)), Positions.arange(1, 7)
    inv_freq = 1.0 / (10.0 ** (torch.arange(0, D, 2).double() / D))
    angle = torch.arange(7.0).double()[:, None] * inv_freq
    cos, sin = (
        torch.nn.functional.pad(torch.einsum("tD,hDd->htd", wave, coefficients), (0, D // 2 - D // 4), value=1)
        for wave, coefficients in ((angle.cos(), encoding.cosines), (angle.sin(), encoding.sines))
    )
    cos, sin = torch.cat([cos, cos], dim=-1), torch.cat([sin, sin], dim=-1)
    half = torch.cat([-x[..., D // 2 :], x[..., : D // 2]], dim=-1)
    close(encoding.rotate(x, at, "query"), x * cos + half * sin)


def test_the_code_starts_its_few_pairs_around_every_other_wave():
    start = FoPE(D, H, form="code", base=10.0, trained_length=L, noise=0.0).cosines[0]
    assert start.nonzero().tolist() == [[0, 0], [2, 1], [4, 2]]  # six waves, three pairs


def test_mixtures_are_not_trained_unless_asked_for():
    encoding = FoPE(D, H, trained_length=L)
    assert not any(parameter.requires_grad for parameter in encoding.parameters())
    assert set(encoding.state_dict()) == {"cosines", "sines"}
    twin = FoPE(D, H, trained_length=L)
    assert not torch.equal(twin.cosines, encoding.cosines)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="trained_length: no pair of 12 channels turns once in 6 positions"):
        FoPE(D, H, trained_length=6)
    with pytest.raises(ValueError, match="FoPE: x: 3 heads cannot share the mixtures of 4"):
        FoPE(D, H).rotate(torch.zeros(1, 3, 4, D), Positions.arange(1, 4), "key")
    with pytest.raises(ValueError, match="FoPE: built for d_head=12, got a tensor with 10"):
        FoPE(D, H).rotate(torch.zeros(1, H, 4, 10), Positions.arange(1, 4), "key")
    with pytest.raises(ValueError, match="d_head: expected an even number from 2, got 5"):
        FoPE(5, H)
