"""Transformer-XL's four terms by loops. Dai et al. 2019, section 3.3."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.transformer_xl import TransformerXL

from .by_hand import add, attention, close, draw, each, near_once_rounded, products, sees

M, H, D = 6, 4, 3  # channels of the sinusoid, query heads, channels of a head


def filled(base=10000.0, dtype=torch.float64) -> TransformerXL:
    encoding = TransformerXL(M, H, d_head=D, base=base).to(dtype)
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(seed + 20, *parameter.shape)))
    return encoding


def terms(q, k, encoding, at_q, at_k, base=10000.0):
    """content-content, content-position, global-content, global-position; R_{i-j} = [sin | cos], each over √d."""
    u, v, w_r = (parameter.detach().double().numpy() for parameter in (encoding.u, encoding.v, encoding.w_r))
    share = q.shape[1] // k.shape[1]
    out = [np.zeros((*q.shape[:3], k.shape[2])) for _ in range(4)]
    for b, h, i, j in each(*out[0].shape):
        distance = at_q[b][i] - at_k[b][j]
        angles = [distance * base ** (-2 * n / M) for n in range(M // 2)]
        sinusoid = [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
        position = [sum(w_r[h, c, m] * sinusoid[m] for m in range(M)) for c in range(D)]
        key = k[b, h // share, j]
        for term, (left, right) in enumerate(((q[b, h, i], key), (q[b, h, i], position), (u[h], key), (v[h], position))):
            out[term][b, h, i, j] = sum(left[c] * right[c] for c in range(D)) / math.sqrt(D)
    return out


CASES = {
    "consecutive": (Positions.arange(2, 4, torch.tensor([3, 0])), [range(3, 7), range(4)]),
    "scattered": (Positions.at(torch.tensor([[9, 2, 2, 40], [0, 700, 1, 5]])), [[9, 2, 2, 40], [0, 700, 1, 5]]),
    "real": (Positions.at(torch.tensor([[0.5, -3.25, 2.0, 9.0]] * 2)), [[0.5, -3.25, 2.0, 9.0]] * 2),
}


@pytest.mark.parametrize("case", CASES)
def test_each_of_the_four_terms_S5(case):
    at, rows = CASES[case]
    q, k = draw(1, 2, H, 4, D), draw(2, 2, H, 4, D)
    encoding = filled(base=50.0)
    got = encoding.terms(torch.from_numpy(q), torch.from_numpy(k), at, at)
    for mine, theirs in zip(terms(q, k, encoding, rows, rows, base=50.0), got, strict=True):
        close(theirs, mine)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa", "relative"])
def test_their_sum_is_the_logit_S5(impl, causal):
    """Grouped heads: keys are shared, u, v and W_R are each query head's own."""
    q, k, v = draw(1, 2, H, 5, D), draw(2, 2, 2, 5, D), draw(3, 2, 2, 5, D)
    encoding, rows, order = filled(), [range(7, 12), range(5)], [range(5)] * 2
    logits = sum(terms(q, k, encoding, rows, rows))
    at = Positions.arange(2, 5, torch.tensor([7, 0]))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=causal, impl=impl)
    close(got, attention(logits, v, sees(order, order, causal=causal)))


def test_queries_and_keys_elsewhere():
    q, k, v = draw(1, 1, H, 2, D), draw(2, 1, H, 5, D), draw(3, 1, H, 5, D)
    at_q, at_k, encoding = [[8, 3]], [[0, 12, 5, 4, 9]], filled()
    got = attend(
        *map(torch.from_numpy, (q, k, v)),
        encoding,
        Positions.at(torch.tensor(at_q)),
        Positions.at(torch.tensor(at_k)),
        causal=False,
    )
    close(got, attention(sum(terms(q, k, encoding, at_q, at_k)), v, lambda b, i, j: True))


def test_before_and_after_are_told_apart():
    encoding = filled()
    q, k = (torch.from_numpy(draw(seed, 1, H, 1, D)) for seed in (1, 2))

    def position_terms(query, key):
        at_q, at_k = (Positions.at(torch.tensor([[p]])) for p in (query, key))
        return encoding.terms(q, k, at_q, at_k)

    ahead, behind = position_terms(5, 8), position_terms(8, 5)
    assert (ahead.content_position - behind.content_position).abs().min() > 1e-3
    assert (ahead.global_position - behind.global_position).abs().min() > 1e-3
    close(ahead.content_content, behind.content_content)
    close(ahead.global_content, behind.global_content)


def test_w_r_is_used_S5():
    """The note leaves W_R out: without it the two position terms are gone, twice of it doubles them."""
    q, k = (torch.from_numpy(draw(seed, 1, H, 3, D)) for seed in (1, 2))
    at = Positions.arange(1, 3)
    encoding = filled()
    before = encoding.terms(q, k, at, at)
    with torch.no_grad():
        encoding.w_r.mul_(2)
    doubled = encoding.terms(q, k, at, at)
    close(doubled.content_position, 2 * before.content_position.detach())
    close(doubled.global_position, 2 * before.global_position.detach())
    close(doubled.global_content, before.global_content.detach())
    with torch.no_grad():
        encoding.w_r.zero_()
    none = encoding.terms(q, k, at, at)
    assert not none.content_position.any()
    assert not none.global_position.any()
    assert none.global_content.any()


@pytest.mark.parametrize("impl", ["reference", "relative"])
@pytest.mark.parametrize(("dtype", "bits"), [(torch.float32, 24), (torch.bfloat16, 8), (torch.float16, 11)])
def test_a_model_in_16_bits_rounds_once_A6(dtype, bits, impl):
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 6, D)).to(dtype) for seed in (1, 2, 3))
    encoding, rows = filled(dtype=dtype), [range(6)]
    arrays = [x.double().numpy() for x in (q, k, v)]
    got = attend(q, k, v, encoding, Positions.arange(1, 6), impl=impl)
    assert got.dtype == dtype
    exact = attention(sum(terms(*arrays[:2], encoding, rows, rows)), arrays[2], sees(rows, rows))
    near_once_rounded(got.detach().double().numpy(), exact, bits, 8.0)  # logits here reach 20


def test_far_positions_in_fp32_A8():
    """R_{i-j} is found from i and j: at 131 071 and a million the fp32 terms stay within fp32 rounding."""
    q, k, encoding = draw(1, 1, H, 4, D), draw(2, 1, H, 4, D), filled()
    single = filled(dtype=torch.float32)
    for start in (131_071, 1_000_000):
        rows = [range(start, start + 4)]
        got = single.terms(
            torch.from_numpy(q).float(),
            torch.from_numpy(k).float(),
            Positions.arange(1, 4, start),
            Positions.arange(1, 4, start),
        )
        for mine, theirs in zip(terms(q, k, encoding, rows, rows), got, strict=True):
            close(theirs.double(), mine, atol=3e-6)


def test_prepared_positions_give_the_same():
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 4, D)).float() for seed in (1, 2, 3))
    encoding, at = filled(dtype=torch.float32), Positions.arange(1, 4, 9)
    prepared = encoding.prepare(at)
    for impl in ("reference", "relative"):
        assert torch.equal(attend(q, k, v, encoding, prepared, impl=impl), attend(q, k, v, encoding, at, impl=impl))
        for at_q, at_k in ((filled(base=50.0).prepare(at), at), (at, filled(base=50.0).prepare(at))):
            with pytest.raises(ValueError, match="positions: prepared by"):
                attend(q, k, v, encoding, at_q, at_k, impl=impl)


def test_defaults():
    encoding = TransformerXL(64, 4)
    assert encoding.d_head == 16
    assert encoding.w_r.shape == (4, 16, 64)
    assert encoding.u.shape == encoding.v.shape == (4, 16)
    for parameter in encoding.parameters():
        assert 0.01 < parameter.std() < 0.03
    close(np.array(encoding.frequencies), np.array([10000 ** (-2 * n / 64) for n in range(32)]))


def test_wrong_arguments():
    at, q = Positions.arange(1, 2), torch.zeros(1, H, 2, D, dtype=torch.float64)
    for wrong in ((7, 1), (6, 4)):
        with pytest.raises(ValueError, match="d_model: expected an even multiple of n_heads"):
            TransformerXL(*wrong)
    with pytest.raises(ValueError, match="d_model: expected an even"):
        TransformerXL(7, 1, d_head=7)
    for impl in ("reference", "relative"):
        with pytest.raises(ValueError, match="built for d_head=3, got a tensor with 4"):
            attend(torch.zeros(1, H, 2, 4), torch.zeros(1, H, 2, 4), torch.zeros(1, H, 2, 4), filled(), at, impl=impl)
        with pytest.raises(ValueError, match="built for n_heads=4, got a tensor with 2"):
            attend(q[:, :2], q[:, :2], q[:, :2], filled(), at, impl=impl)
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        attend(q, q, q, filled(), Positions.grid(1, 2))


def test_products_and_terms_agree_with_attend_on_the_first_term():
    """The first term is attention's own q·k, so attend adds the other three only."""
    q, k, encoding, rows = draw(1, 1, H, 3, D), draw(2, 1, H, 3, D), filled(), [range(3)]
    own, *rest = terms(q, k, encoding, rows, rows)
    close(own, products(q, k))
    at = Positions.arange(1, 3)
    of_pair = encoding.bias(torch.from_numpy(q), torch.from_numpy(k), at, at)
    got = add(np.zeros((1, H, 3, 3)), lambda *index: of_pair(*map(torch.tensor, index)).item())
    close(got, sum(rest))


@torch.no_grad()
def test_one_token_after_many_is_the_last_row_of_all():
    """Beyond 256 distances a single query is turned from run to run of them."""
    encoding, n = filled(), 600
    q, k, v = (torch.from_numpy(draw(seed, 1, H, n, D)) for seed in range(3))
    whole = attend(q, k, v, encoding, Positions.arange(1, n), impl="reference")
    last = attend(q[:, :, -1:], k, v, encoding, Positions.arange(1, 1, n - 1), Positions.arange(1, n))
    torch.testing.assert_close(last, whole[:, :, -1:], rtol=0, atol=1e-12)
