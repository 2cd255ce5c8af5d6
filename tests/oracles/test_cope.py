"""CoPE (contextual) by loops: gates, counts, interpolation. Golovneva et al. 2024, section 4."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, Scores, Stack, attend, kernels
from posenc.encodings.alibi import ALiBi
from posenc.encodings.cope import CoPE
from posenc.kernels import cope_counts

from .by_hand import add, attention, close, draw, each, near_once_rounded, products, sees

D = 5


def filled(n_positions=4) -> CoPE:
    encoding = CoPE(D, n_positions=n_positions).double()
    with torch.no_grad():
        encoding.table.copy_(torch.from_numpy(draw(40, n_positions, D)))
    return encoding


def contextual(logits, q, encoding, may, order_k) -> np.ndarray:
    """+ q_i·e[p_ij], p_ij = Σ of σ(logit_it) over the keys t that i may see, from j on in causal order; e between rows."""
    table, out = encoding.table.detach().double().numpy(), logits.copy()
    last = len(table) - 1
    for b, h, i, j in each(*logits.shape):
        if not may(b, i, j):
            continue
        later = [t for t in range(logits.shape[3]) if may(b, i, t) and order_k[b][t] >= order_k[b][j]]
        position = min(sum(1 / (1 + math.exp(-logits[b, h, i, t])) for t in later), last)
        below = int(position)
        share = position - below
        row = table[below] if share == 0 else (1 - share) * table[below] + share * table[below + 1]
        out[b, h, i, j] += sum(q[b, h, i, c] * row[c] for c in range(D))
    return out


@pytest.mark.parametrize("n_positions", [1, 2, 4, 64])
@pytest.mark.parametrize("impl", ["reference", "auto"])
def test_counts_and_interpolation_by_loops(impl, n_positions):
    """Grouped heads share keys; counts past the table are taken as its last row."""
    q, k, v = draw(1, 2, 4, 8, D), draw(2, 2, 2, 8, D), draw(3, 2, 2, 8, D)
    encoding, order = filled(n_positions), [range(8)] * 2
    may = sees(order, order)
    logits = contextual(products(q, k), q, encoding, may, order)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(2, 8, 3), impl=impl)
    close(got, attention(logits, v, may))


@pytest.mark.parametrize(("dtype", "bits"), [(torch.float32, 24), (torch.bfloat16, 8), (torch.float16, 11)])
def test_a_model_in_16_bits_rounds_once_A6(dtype, bits):
    """Gates, counts and interpolation in fp32: a count in bf16 would be whole numbers from 128 on."""
    q, k, v = (torch.from_numpy(draw(seed, 1, 2, 9, D)).to(dtype) for seed in (1, 2, 3))
    encoding, order = filled(6).to(dtype), [range(9)]
    arrays, may = [x.double().numpy() for x in (q, k, v)], sees(order, order)
    got = attend(q, k, v, encoding, Positions.arange(1, 9))
    assert got.dtype == dtype
    exact = attention(contextual(products(*arrays[:2]), arrays[0], encoding, may, order), arrays[2], may)
    near_once_rounded(got.detach().double().numpy(), exact, bits, 4.0)


def test_padding_counts_for_nothing_F1():
    q, k, v = (draw(seed, 2, 2, 6, D) for seed in (1, 2, 3))
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    documents = (mask - 1).tolist()
    order = [[0, 0, 0, 1, 2, 3], [0, 1, 2, 3, 3, 3]]
    may, encoding = sees(order, order, documents, documents), filled()
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.from_mask(mask))
    close(got, attention(contextual(products(q, k), q, encoding, may, order), v, may))


def test_keys_stored_in_any_order_F10():
    """A zigzag shard or a ring buffer: causal order is what counts, not the place in memory."""
    q, k, v = (draw(seed, 2, 2, 7, D) for seed in (1, 2, 3))
    stored, encoding, at = [4, 0, 6, 2, 5, 1, 3], filled(), Positions.arange(2, 7)
    order = [range(7)] * 2
    keys, values = (torch.from_numpy(x)[:, :, stored] for x in (k, v))
    got = attend(torch.from_numpy(q), keys, values, encoding, at, at.take(torch.tensor(stored)))
    may = sees(order, order)
    close(got, attention(contextual(products(q, k), q, encoding, may, order), v, may))
    scrambled = Positions.arange(2, 7).take(torch.tensor(stored))
    out_of_order = attend(torch.from_numpy(q)[:, :, stored], keys, values, encoding, scrambled)
    close(out_of_order, got[:, :, stored].detach())


def test_gates_read_the_logits_with_their_scale_and_bias():
    """Stacked with ALiBi: σ(q·k/√d + bias)."""
    q, k, v = draw(1, 1, 2, 6, D), draw(2, 1, 2, 6, D), draw(3, 1, 2, 6, D)
    encoding, order = filled(), [range(6)]
    may = sees(order, order)
    slopes = (2.0**-4, 2.0**-8)
    biased = add(products(q, k), lambda b, h, i, j: -slopes[h] * abs(i - j))
    got = attend(*map(torch.from_numpy, (q, k, v)), Stack(ALiBi(2), encoding), Positions.arange(1, 6))
    close(got, attention(contextual(biased, q, encoding, may, order), v, may))


def context(encoding, logits, q, at_q, at_k, seen):
    """The logits that its softmax gets."""
    return encoding._with_counts(Scores(logits, q, q, at_q, at_k, seen))


def test_whole_counts_read_whole_rows():
    """Logits of +1000 count 1 each: key j reads row i-j+1, the query's own key row 1."""
    encoding = filled(10)
    logits = torch.full((1, 1, 4, 4), 1000.0, dtype=torch.float64)
    q = torch.from_numpy(draw(5, 1, 1, 4, D))
    at = Positions.arange(1, 4)
    allowed = torch.ones(4, 4).tril().bool()[None, None]
    got = (context(encoding, logits, q, at, at, allowed) - logits)[0, 0].detach()
    for i in range(4):
        for j in range(i + 1):
            close(got[i, j], np.float64(q[0, 0, i].numpy() @ encoding.table.detach().numpy()[i - j + 1]), atol=1e-10)


def counted_and_by_formula(monkeypatch, logits, q, encoding, seen, incoming):
    """Term and gradients by the C++ kernel, and by the formula in plain torch."""
    found = []
    at_k = Positions.arange(1, logits.shape[3])
    at_q = at_k.narrow(logits.shape[3] - logits.shape[2], logits.shape[3])
    for formula in (False, True):
        with monkeypatch.context() as patch:
            if formula:
                patch.setattr(cope_counts, "can_serve", lambda *_: False)
            given = logits.clone().requires_grad_(), q.clone().requires_grad_()
            out = context(encoding, *given, at_q, at_k, seen)
            of_table = torch.autograd.grad(out, (*given, encoding.table), incoming)
            with torch.no_grad():
                found.append((out.detach(), *of_table, context(encoding, *given, at_q, at_k, seen)))
    return zip(*found, strict=True)


@pytest.mark.skipif(kernels.library() is None, reason="the C++ kernels are not built")
@pytest.mark.parametrize(
    ("batch", "queries", "keys", "n_positions"), [(2, 33, 33, 64), (1, 6, 40, 7), (2, 3, 5, 1), (1, 150, 150, 5)]
)
def test_the_kernel_has_the_bits_of_the_formula(batch, queries, keys, n_positions, monkeypatch):
    """Fewer queries than keys, rows that are no multiple of four, counts past the table, whole counts, documents."""
    encoding = filled(n_positions).float()
    logits, q = (torch.from_numpy(draw(seed, batch, 3, queries, n)).float() for seed, n in ((1, keys), (2, D)))
    logits[:, 0] *= 200  # gates of 0 and 1: whole counts
    i, j = torch.arange(keys - queries, keys)[:, None], torch.arange(keys)
    for seen in (j <= i, (j <= i) & (i // 10 == j // 10), torch.ones(queries, keys, dtype=torch.bool)):
        seen = seen.expand(batch, 1, -1, -1)
        for incoming in (torch.randn_like(logits) * seen, torch.randn_like(logits)):
            for got, expected in counted_and_by_formula(monkeypatch, logits, q, encoding, seen, incoming):
                assert torch.equal(got, expected)


@pytest.mark.skipif(kernels.library() is None, reason="the C++ kernels are not built")
def test_the_kernel_survives_logits_that_are_no_numbers():
    encoding, at = filled().float(), Positions.arange(1, 4)
    logits, seen = torch.zeros(1, 1, 4, 4), torch.ones(4, 4).tril().bool()[None, None]
    logits[0, 0, 2, 1] = torch.nan
    got = context(encoding, logits.requires_grad_(), torch.ones(1, 1, 4, D), at, at, seen)
    got.sum().backward()
    assert got[0, 0].isnan().tolist() == [[False] * 4, [False] * 4, [True, True, False, False], [False] * 4]


@pytest.mark.skipif(kernels.library() is None, reason="the C++ kernels are not built")
def test_gradients_of_the_kernel_are_differentiated_again():
    """Second derivatives in fp32 are those of the formula in fp64."""
    at, seen, found = Positions.arange(1, 5), torch.ones(5, 5).tril().bool()[None, None], []
    for dtype in (torch.float32, torch.float64):
        encoding = filled(6).to(dtype)
        logits, q = (torch.from_numpy(draw(seed, 1, 2, 5, 5)).to(dtype).requires_grad_() for seed in (1, 2))
        of_logits, of_q = torch.autograd.grad(
            context(encoding, logits, q, at, at, seen).square().sum(), (logits, q), create_graph=True
        )
        found.append(torch.autograd.grad(of_logits.square().sum() + of_q.square().sum(), logits)[0].double())
    assert torch.allclose(*found, rtol=1e-4, atol=1e-4)


def test_defaults():
    """64 positions shared by all heads, at zero: a fresh CoPE changes nothing."""
    encoding = CoPE(16)
    assert encoding.table.shape == (64, 16)
    assert not encoding.table.any()
    assert encoding.seams == {"finish"}
    assert encoding.traits == {"local", "shift_invariant", "norm_preserving", "causal_only"}


def test_wrong_arguments():
    q, at = torch.zeros(1, 2, 4, D, dtype=torch.float64), Positions.arange(1, 4)
    with pytest.raises(ValueError, match=r"CoPE.* is defined for causal attention only"):
        attend(q, q, q, filled(), at, causal=False)
    with pytest.raises(ValueError, match=r"impl='sdpa' cannot express CoPE.*use impl='reference' or 'auto'"):
        attend(q, q, q, filled(), at, impl="sdpa")
    with pytest.raises(ValueError, match="built for d_head=5, got a tensor with 4"):
        attend(q[..., :4], q[..., :4], q[..., :4], filled(), at)
