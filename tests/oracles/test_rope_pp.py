"""RoPE++ in complex numbers. Liu et al. 2025, section 3, and the authors' code."""

import cmath

import numpy as np
import pytest
import torch

from posenc import Attention, Positions, Stack, attend, frequencies
from posenc.encodings.alibi import ALiBi
from posenc.encodings.rope_pp import RoPEPlusPlus

from .by_hand import attention, close, draw, each, sees

D, H = 6, 2


def papers(q, k, rows, base=10000.0, sign=1.0, order="pairs", layout="interleaved") -> np.ndarray:
    """Re and Im of Σ q̃ k̃* e^(i(m - n)ω), side by side for every query head."""
    share, logits = q.shape[1] // k.shape[1], np.zeros((q.shape[0], 2 * q.shape[1], q.shape[2], k.shape[2]))
    for b, h, i, j in each(*q.shape[:3], k.shape[2]):
        total = 0j
        for n in range(D // 2):
            first, second = (2 * n, 2 * n + 1) if layout == "interleaved" else (n, n + D // 2)
            query = complex(q[b, h, i, first], q[b, h, i, second])
            key = complex(k[b, h // share, j, first], k[b, h // share, j, second])
            total += query * key.conjugate() * cmath.exp(1j * (rows[b][i] - rows[b][j]) * base ** (-2 * n / D))
        heads = (2 * h, 2 * h + 1) if order == "pairs" else (h, h + q.shape[1])
        logits[b, heads[0], i, j], logits[b, heads[1], i, j] = total.real, sign * total.imag
    return logits / D**0.5


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize(("kv", "options"), [(1, {}), (2, {"layout": "half"}), (2, {"base": 100.0})], ids=str)
def test_scores_in_complex_numbers(impl, causal, kv, options):
    """Both heads of a pair read the key head of their query."""
    q, k, v = draw(1, 2, H, 6, D), draw(2, 2, kv, 6, D), draw(3, 2, kv, 6, D)
    rows, order = [range(40, 46), range(6)], [range(6)] * 2
    at = Positions.arange(2, 6, torch.tensor([40, 0]))
    got = attend(*map(torch.from_numpy, (q, k, v)), RoPEPlusPlus(D, **options), at, causal=causal, impl=impl)
    close(got, attention(papers(q, k, rows, **options), v, sees(order, order, causal=causal)))


@pytest.mark.parametrize("mistake", [{"sign": -1.0}, {"order": "halves"}, {"base": 9000.0}, {"layout": "half"}], ids=str)
def test_the_oracle_sees_a_broken_formula(mistake):
    q, k, v = (draw(seed, 1, H, 9, D) for seed in (1, 2, 3))
    rows = [range(9)]
    got = attend(*map(torch.from_numpy, (q, k, v)), RoPEPlusPlus(D), Positions.arange(1, 9))
    expected = attention(papers(q, k, rows, **mistake), v, sees(rows, rows))
    with pytest.raises(AssertionError):
        close(got, expected, atol=1e-4)


def test_as_in_the_authors_code():
    """Its q·cos + rotate_half(q)·sin beside q·sin - rotate_half(q)·cos."""
    x, at = torch.from_numpy(draw(1, 1, H, 7, D)), Positions.arange(1, 7)
    angle = torch.arange(7.0).double()[:, None] / 10000 ** (torch.arange(0, D, 2).double() / D)
    cos, sin = (torch.cat([wave, wave], dim=-1) for wave in (angle.cos(), angle.sin()))
    half = torch.cat([-x[..., D // 2 :], x[..., : D // 2]], dim=-1)
    theirs = torch.stack([x * cos + half * sin, x * sin - half * cos], dim=2).reshape(1, 2 * H, 7, D)
    encoding = RoPEPlusPlus(D, layout="half")
    close(encoding.rotate(x, at, "query"), theirs)
    close(encoding.rotate(x, at, "key"), x * cos + half * sin)


def test_attention_has_an_output_of_twice_as_many_heads():
    layer = Attention(24, H, RoPEPlusPlus(D), n_kv_heads=1, d_head=D).double()
    assert layer.query.weight.shape == (H * D, 24)
    assert layer.out.weight.shape == (24, 2 * H * D)
    x, cache, outputs = torch.from_numpy(draw(4, 2, 8, 24)), None, []
    for begin, end in ((0, 5), (5, 6), (6, 8)):
        out, cache = layer.decode(x[:, begin:end], Positions.arange(2, end - begin, begin), cache)
        outputs.append(out)
    close(torch.cat(outputs, dim=1), layer(x, Positions.arange(2, 8)).detach())
    assert cache.k.shape == (2, 1, 8, D)


def test_biases_beside_it_and_options_have_a_number_for_every_head_of_the_output():
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 5, D)) for seed in (1, 2, 3))
    at, encoding = Positions.arange(1, 5), Stack(RoPEPlusPlus(D), ALiBi(2 * H))
    assert encoding.query_copies == 2
    assert attend(q, k, v, encoding, at, sinks=torch.zeros(2 * H).double()).shape == (1, 2 * H, 5, D)
    with pytest.raises(ValueError, match="sinks: expected one floating number for each of 4 query heads"):
        attend(q, k, v, encoding, at, sinks=torch.zeros(H).double())


@pytest.mark.parametrize("impl", ["toeplitz", "relative", "flex"])
def test_a_backend_that_does_not_serve_it_says_so(impl):
    """Sinks and masks with a number for every head of the output are right, whatever else is wrong."""
    x, at = torch.from_numpy(draw(1, 1, H, 5, D)), Positions.arange(1, 5)
    for options in ({"sinks": torch.zeros(2 * H).double()}, {"mask": torch.ones(1, 2 * H, 5, 5).bool()}):
        with pytest.raises(ValueError, match=f"impl='{impl}' cannot express"):
            attend(x, x, x, RoPEPlusPlus(D), at, impl=impl, **options)


def test_scaled_frequencies_and_their_lengths():
    dynamic = frequencies.dynamic(frequencies.rotary(D), 2.0, 16)
    longer = RoPEPlusPlus(D, frequencies=dynamic).at_length(64)
    assert type(longer) is RoPEPlusPlus
    assert tuple(longer.frequencies) == tuple(dynamic.at_length(64))
    with pytest.raises(ValueError, match="frequencies: all 8 channels must turn, got pairs for 6"):
        RoPEPlusPlus(8, frequencies=frequencies.rotary(6))
