"""Zipformer's relative positions by loops, from icefall's zipformer.py (Yao et al. 2023)."""

import math

import numpy as np
import pytest
import torch

import posenc
from posenc import Positions, attend
from posenc.encodings.of_families.zipformer import ZipformerPositions

from .by_hand import close, draw

M, H, D, T, PLACES = 12, 2, 6, 5, 3  # channels of hidden states, heads, channels of a head, tokens, channels of p


def sinusoid(x: int, width: int, factor: float) -> list[float]:
    """A row of CompactRelPositionalEncoding.pe."""
    compression = width**0.5
    compressed = compression * np.sign(x) * (math.log(abs(x) + compression) - math.log(compression))
    angle = math.atan(compressed / (factor * width / (2.0 * math.pi)))
    row = [turn(n * angle) for n in range(1, width // 2 + 1) for turn in (math.cos, math.sin)]
    return [*row[:-1], 1.0]


def filled(**options) -> ZipformerPositions:
    encoding = ZipformerPositions(M, H, pos_dim=8, pos_head_dim=PLACES, **options).double()
    for n, parameter in enumerate(encoding.parameters()):
        parameter.data.copy_(torch.from_numpy(draw(n, *parameter.shape)))
    return encoding


def expected(encoding, q, k, v, p, places, factor=1.0):
    weight = encoding.weight.detach().numpy()
    out = np.zeros_like(v)
    for b, h, i in np.ndindex(v.shape[:3]):
        scores = []
        for j in range(len(places)):
            # as_strided of pos_scores [i, T-1-i+j], whose column c is the distance c-(T-1)
            row = np.array(sinusoid(places[j] - places[i], 8, factor))
            scores.append(q[b, h, i] @ k[b, h, j] + p[b, i, h] @ (weight[h] @ row))
        weights = np.exp(np.array(scores) - max(scores))
        out[b, h, i] = weights / weights.sum() @ v[b, h]
    return out


@pytest.mark.parametrize("impl", ["reference", "sdpa", "auto"])
@pytest.mark.parametrize("factor", [1.0, 2.5])
@pytest.mark.parametrize("places", [[0, 1, 2, 3, 4], [3, 700, 12, 0, 90]], ids=str)
def test_attention_by_loops(places, factor, impl):
    encoding, x = filled(length_factor=factor), draw(7, 2, T, M)
    q, k, v = (draw(n, 2, H, T, D) for n in (8, 9, 10))
    weight, offset = encoding.of_state.detach().numpy(), encoding.offset.detach().numpy()
    p = np.einsum("btm,hsm->bths", x, weight) + offset
    at = encoding.read_hidden(torch.from_numpy(x), Positions.at(torch.tensor([places])))
    got = attend(*(torch.from_numpy(one) for one in (q, k, v)), encoding, at, causal=False, impl=impl)
    close(got, expected(encoding, q, k, v, p, places, factor))


def test_queries_may_say_it():
    """icefall's newer form: p is the first channels of the query."""
    encoding = filled(reads="query")
    q, k, v = (draw(n, 1, H, T, D) for n in (8, 9, 10))
    got = attend(*(torch.from_numpy(one) for one in (q, k, v)), encoding, Positions.arange(1, T, start=7), causal=False)
    close(got, expected(encoding, q, k, v, q[..., :PLACES].swapaxes(1, 2), [7, 8, 9, 10, 11]))
    assert set(dict(encoding.named_parameters())) == {"weight"}


def test_the_module_reads_hidden_states_and_every_parameter_learns():
    module = posenc.Attention(M, H, filled().float())
    module(torch.randn(2, T, M), Positions.arange(2, T), causal=False).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.encoding.parameters())
    with pytest.raises(ValueError, match="call read_hidden"):
        attend(*torch.randn(3, 1, H, T, D), module.encoding, Positions.arange(1, T))


def test_wrong_arguments():
    for wrong in ({"pos_dim": 7}, {"length_factor": 0.5}):
        with pytest.raises(ValueError, match="pos_dim, length_factor: expected an even width and 1 or more"):
            ZipformerPositions(M, H, **wrong)
