"""Shaw's relative keys and values against equations 3 and 4 of Shaw et al. 2018 by loops."""

import math

import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.shaw import Shaw

from .by_hand import add, attention, close, draw, near_once_rounded, products, sees

D, K = 6, 3


def filled(values=True, d_head=D, k=K) -> Shaw:
    encoding = Shaw(d_head, max_distance=k, values=values).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(seed + 10, *parameter.shape)))
    return encoding


def expected(q, k, v, encoding, at_q, at_k, may):
    """logits_ij = q_i·(k_j + a^K)/√d, out_i = Σ α_ij (v_j + a^V), a of clip(j - i, -k, k): row 0 is k or more before."""
    keys = encoding.keys.detach().double().numpy()
    values = None if encoding.values is None else encoding.values.detach().double().numpy()

    def row(b, i, j):
        return max(-K, min(K, at_k[b][j] - at_q[b][i])) + K

    logits = add(
        products(q, k), lambda b, h, i, j: sum(q[b, h, i, c] * keys[row(b, i, j), c] for c in range(D)) / math.sqrt(D)
    )
    return attention(logits, v, may, None if values is None else lambda b, h, i, j: values[row(b, i, j)])


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "auto"])
def test_keys_and_values_with_clipping_I5(impl, causal):
    """Longer than the table on both sides, grouped heads, rows that start elsewhere."""
    q, k, v = draw(1, 2, 4, 9, D), draw(2, 2, 2, 9, D), draw(3, 2, 2, 9, D)
    encoding, rows, order = filled(), [range(5, 14), range(9)], [range(9)] * 2
    got = attend(
        *map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(2, 9, torch.tensor([5, 0])), causal=causal, impl=impl
    )
    close(got, expected(q, k, v, encoding, rows, rows, sees(order, order, causal=causal)))


@pytest.mark.parametrize("impl", ["reference", "sdpa", "relative"])
def test_keys_only(impl):
    q, k, v = draw(1, 2, 2, 7, D), draw(2, 2, 2, 7, D), draw(3, 2, 2, 7, D)
    encoding, rows = filled(values=False), [range(7)] * 2
    assert encoding.seams == {"bias"}
    assert encoding.values is None
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(2, 7), impl=impl)
    close(got, expected(q, k, v, encoding, rows, rows, sees(rows, rows)))


def test_queries_and_keys_elsewhere():
    """Cross-attention between positions that are neither consecutive nor the same."""
    q, k, v = draw(1, 2, 2, 3, D), draw(2, 2, 2, 5, D), draw(3, 2, 2, 5, D)
    at_q, at_k = [[4, 0, 9], [2, 2, 7]], [[3, 8, 5, 0, 4], [1, 6, 2, 3, 100]]
    encoding = filled()
    got = attend(
        *map(torch.from_numpy, (q, k, v)),
        encoding,
        Positions.at(torch.tensor(at_q)),
        Positions.at(torch.tensor(at_k)),
        causal=False,
    )
    close(got, expected(q, k, v, encoding, at_q, at_k, lambda b, i, j: True))


@pytest.mark.parametrize("impl", ["reference", "relative"])
@pytest.mark.parametrize(("dtype", "bits"), [(torch.float32, 24), (torch.bfloat16, 8), (torch.float16, 11)])
def test_a_model_in_16_bits_rounds_once_A6(dtype, bits, impl):
    """Tables as they are in 16 bits, arithmetic in fp32."""
    q, k, v = (torch.from_numpy(draw(seed, 1, 2, 9, D)).to(dtype) for seed in (1, 2, 3))
    encoding, rows = filled().to(dtype), [range(9)]
    got = attend(q, k, v, encoding, Positions.arange(1, 9), impl=impl)
    exact = expected(*(x.double().numpy() for x in (q, k, v)), encoding, rows, rows, sees(rows, rows))
    assert got.dtype == dtype
    near_once_rounded(got.detach().double().numpy(), exact, bits, 4.0)


def test_nothing_beyond_the_query_with_distance_zero():
    """k = 0 leaves one vector for all pairs."""
    encoding = filled(k=0)
    assert encoding.keys.shape == (1, D)
    row = encoding.row(torch.tensor([0, 5]), torch.tensor([9, 1]))
    assert row.tolist() == [0, 0]


def test_rows_run_from_before_to_after():
    query = torch.full((9,), 10)
    assert filled().row(query, torch.arange(6, 15)).tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 6]


def test_defaults():
    encoding = Shaw(8)
    assert encoding.keys.shape == encoding.values.shape == (33, 8)
    assert encoding.keys.std() > 0.05
    assert encoding.values.std() > 0.05
    assert encoding.seams == {"bias", "finish"}


def test_wrong_arguments():
    q = torch.zeros(1, 2, 4, D, dtype=torch.float64)
    with pytest.raises(TypeError, match="Shaw: needs integer positions"):
        attend(q, q, q, filled(), Positions.at(torch.tensor([[0.0, 1.0, 2.0, 3.0]])))
    whole, real = Positions.arange(1, 4), Positions.at(torch.arange(4.0)[None])
    for at_q, at_k in ((whole, real), (real, whole), (whole.shift(0.5), whole), (whole, whole.shift(0.5))):
        with pytest.raises(TypeError, match="Shaw: needs integer positions"):
            attend(q, q, q, filled(), at_q, at_k)
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        attend(q, q, q, filled(), Positions.grid(2, 2))
    with pytest.raises(ValueError, match=r"impl='sdpa' cannot express Shaw.*use impl='reference' or 'auto'"):
        attend(q, q, q, filled(), Positions.arange(1, 4), impl="sdpa")
    for impl in ("reference", "relative"):
        with pytest.raises(ValueError, match="built for d_head=6, got a tensor with 4"):
            attend(q[..., :4], q[..., :4], q[..., :4], filled(), Positions.arange(1, 4), impl=impl)


@pytest.mark.parametrize("impl", ["auto", "reference", "relative"])
def test_a_vector_of_one_channel_is_not_spread_over_wide_values(impl):
    encoding = Shaw(1, max_distance=2)
    q, v = torch.randn(1, 2, 5, 1), torch.randn(1, 2, 5, 4)
    with pytest.raises(ValueError, match="Shaw adds vectors of 1 channels to the output, expected values of as many"):
        attend(q, q, v, encoding, Positions.arange(1, 5), impl=impl)
