"""RePo by loops over tokens, heads and pairs. Li et al. 2025, section 3."""

import math

import numpy as np
import pytest
import torch

from posenc import PerLayer, Positions, attend
from posenc.encodings.repo import RePo
from posenc.encodings.rope import RoPE

from .by_hand import attention, close, draw, each, products, sees, turned

M, H, D = 12, 4, 6


def filled(n_kv_heads=None, **options) -> RePo:
    encoding = RePo(M, H, D, n_kv_heads=n_kv_heads, width=3, **options).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(60 + seed, *parameter.shape)))
    return encoding


def position(x, encoding, g, plain=False) -> float:
    """(SiLU(x W_g) ⊙ (x W_c)) w of one token and one head of positions."""
    gate, content, assign = (one.detach().numpy() for one in (encoding.gate, encoding.content, encoding.assign))
    total = 0.0
    for r in range(gate.shape[0]):
        asked, told = (sum(weight[r, m] * x[m] for m in range(M)) for weight in (gate, content))
        total += assign[g, r] * (asked if plain else asked / (1 + math.exp(-asked))) * told
    return total


def papers(q, k, x, encoding, base=500000.0, layout="half", **wrong) -> np.ndarray:
    """Scores of queries and keys, each turned to its token's own position."""
    groups, new_q, new_k = encoding.assign.shape[0], q.copy(), k.copy()
    for tensor, heads in ((new_q, q.shape[1]), (new_k, k.shape[1])):
        for b, h, t in each(*tensor.shape[:3]):
            place = position(x[b, t], encoding, h // (heads // groups), **wrong)
            tensor[b, h, t] = turned(tensor[b, h, t], [place * base ** (-2 * n / D) for n in range(D // 2)], layout)
    return products(new_q, new_k)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize(
    ("groups", "options"), [(None, {}), (2, {}), (4, {"base": 100.0, "layout": "interleaved"})], ids=str
)
def test_scores_by_loops(impl, causal, groups, options):
    """The index of the tokens is not read: rows that begin elsewhere are the same."""
    encoding, kv = filled(groups, **options), groups or H
    q, k, v, x = draw(1, 2, H, 6, D), draw(2, 2, kv, 6, D), draw(3, 2, kv, 6, D), draw(4, 2, 6, M)
    order = [range(6)] * 2
    expected = attention(papers(q, k, x, encoding, **options), v, sees(order, order, causal=causal))
    for start in (0, 40):
        at = encoding.read_hidden(torch.from_numpy(x), Positions.arange(2, 6, start))
        close(attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=causal, impl=impl), expected)


@pytest.mark.parametrize("mistake", [{"base": 10000.0}, {"layout": "interleaved"}, {"plain": True}], ids=str)
def test_the_oracle_sees_a_broken_formula(mistake):
    q, k, v, x = (draw(seed, 1, H, 6, width) for seed, width in ((1, D), (2, D), (3, D), (4, M)))
    encoding, x = filled(), x[:, 0]
    at = encoding.read_hidden(torch.from_numpy(x), Positions.arange(1, 6))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at)
    with pytest.raises(AssertionError):
        close(got, attention(papers(q, k, x, encoding, **mistake), v, sees([range(6)], [range(6)])), atol=1e-4)


def test_one_position_for_all_is_no_encoding():
    encoding, x = filled(), torch.from_numpy(draw(4, 1, 5, M))
    with torch.no_grad():
        encoding.assign.zero_()
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 5, D)) for seed in (1, 2, 3))
    at = encoding.read_hidden(x, Positions.arange(1, 5))
    close(attend(q, k, v, encoding, at), attention(products(q.numpy(), k.numpy()), v.numpy(), sees([range(5)], [range(5)])))


def test_lower_layers_may_have_rope():
    """As the authors' models: the layers below the fifth have plain RoPE."""
    layers = PerLayer([*[RoPE(D)] * 5, filled()])
    assert type(layers.at_layer(4)) is RoPE
    assert type(layers.at_layer(5)) is RePo


def test_wrong_arguments():
    at = Positions.arange(1, 4)
    with pytest.raises(ValueError, match="carries nothing read by RePo"):
        attend(*[torch.zeros(1, H, 4, D)] * 3, RePo(M, H, D), at)
    with pytest.raises(ValueError, match="RePo: built for d_model=12, got a tensor with 11"):
        RePo(M, H, D).read_hidden(torch.zeros(1, 4, M - 1), at)
    encoding = RePo(M, H, D, n_kv_heads=2)
    read = encoding.read_hidden(torch.zeros(1, 4, M), at)
    with pytest.raises(ValueError, match="RePo: x: 3 heads cannot share the positions of 2"):
        encoding.rotate(torch.zeros(1, 3, 4, D), read, "key")
    with pytest.raises(ValueError, match="n_kv_heads: expected a number that divides n_heads=4, got 3"):
        RePo(M, H, D, n_kv_heads=3)
    with pytest.raises(ValueError, match="d_head: expected an even number from 2, got 5"):
        RePo(M, H, 5)
