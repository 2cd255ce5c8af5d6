"""CARoPE by loops over tokens and pairs. Veisi et al. 2025, section 2."""

import itertools
import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.carope import CARoPE
from posenc.encodings.rope import RoPE

from .by_hand import close, draw, products, turned

M, H, G, D = 8, 4, 2, 6


def filled() -> CARoPE:
    encoding = CARoPE(M, H, D, n_kv_heads=G).double()
    with torch.no_grad():
        encoding.weight.copy_(torch.from_numpy(draw(80, G, M)))
        encoding.offset.copy_(torch.from_numpy(draw(81, G)))
    return encoding


def angles(encoding, x, order, documents, b: int, t: int, g: int, plus=1.0, first=0, own=0) -> list[float]:
    weight, offset = encoding.weight.detach().numpy(), encoding.offset.detach().numpy()
    total = [0.0] * (D // 2)
    for s in range(x.shape[1]):
        if documents[b][s] == documents[b][t] and order[b][s] + own <= order[b][t]:
            softplus = math.log1p(math.exp(weight[g] @ x[b, s] + offset[g]))
            for n in range(D // 2):
                total[n] += (1 / (softplus + plus)) ** (n + first)
    return total


def papers(q, k, x, encoding, order, documents, **broken) -> np.ndarray:
    new_q, new_k = np.zeros_like(q), np.zeros_like(k)
    for b, t in itertools.product(range(x.shape[0]), range(x.shape[1])):
        for h in range(H):
            new_q[b, h, t] = turned(q[b, h, t], angles(encoding, x, order, documents, b, t, h // 2, **broken), "half")
        for g in range(G):
            new_k[b, g, t] = turned(k[b, g, t], angles(encoding, x, order, documents, b, t, g), "half")
    return products(new_q, new_k)


@pytest.mark.parametrize("base", [10000.0, 100.0])
def test_a_fresh_one_is_rope(base):
    encoding = CARoPE(M, H, D, base=base).double()
    with torch.no_grad():  # in fp64: the fresh offset is a float32
        encoding.offset.fill_(math.log(math.expm1(base ** (2 / D) - 1)))
    q, k, v = (torch.from_numpy(draw(seed, 2, H, 7, D)) for seed in (1, 2, 3))
    x = torch.from_numpy(draw(4, 2, 7, M))
    at, rope = Positions.arange(2, 7), RoPE(D, base=base, layout="half")
    expected = attend(q, k, v, rope, at)
    close(attend(q, k, v, encoding, encoding.read_hidden(x, at)), expected, atol=1e-11)
    fresh = CARoPE(M, H, D, base=base).double()
    close(attend(q, k, v, fresh, fresh.read_hidden(x, at)), expected, atol=1e-5)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="n_kv_heads: expected a number that divides n_heads=4, got 3"):
        CARoPE(M, H, D, n_kv_heads=3)
    with pytest.raises(ValueError, match="base: expected a number above 1 with"):
        CARoPE(M, H, D, base=0.5)
    with pytest.raises(ValueError, match="CARoPE: built for d_model=8, got a tensor with 9"):
        filled().read_hidden(torch.zeros(1, 4, 9), Positions.arange(1, 4))
    with pytest.raises(ValueError, match="at: carries nothing read by CARoPE"):
        filled().rotate(torch.zeros(1, H, 4, D), Positions.arange(1, 4), "query")
    at = filled().read_hidden(torch.zeros(1, 4, M), Positions.arange(1, 4))
    with pytest.raises(ValueError, match="at: carries nothing read by"):
        filled().rotate(torch.zeros(1, H, 4, D), at, "query")
