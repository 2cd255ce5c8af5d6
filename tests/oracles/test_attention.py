"""Softmax attention by loops: grouped heads, documents, padding, seams, dtypes, and queries that see nothing."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import Positions, attend, attend_rotated
from posenc.attention.backends import BACKENDS, reference
from posenc.attention.call import Call
from posenc.attention.plan import backend_of
from posenc.encoding import PositionalEncoding
from posenc.encodings.alibi import ALiBi
from posenc.encodings.cope import CoPE
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.shaw import Shaw

from .by_hand import add, attention, close, draw, half_ulp, products, sees

IMPLS = ["reference", "sdpa", "auto"]


def test_blocks_hold_as_many_logits_as_there_is_room_for():
    q, k = torch.empty(2, 4, 101, 4, device="meta"), torch.empty(2, 2, 1000, 4, device="meta")
    blocks = reference.blocks(q, k)
    logits = blocks[0].stop * 2 * 4 * 1000
    assert reference.ROOM - 2 * 4 * 1000 < logits <= reference.ROOM
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(101))


def qkv(batch=2, heads=4, shared=2, queries=5, keys=5, d=6, dv=None):
    return draw(1, batch, heads, queries, d), draw(2, batch, shared, keys, d), draw(3, batch, shared, keys, dv or d)


def tensors(*arrays, dtype=torch.float64):
    return [torch.from_numpy(array).to(dtype) for array in arrays]


def alibi(q, k, at_q, at_k):
    slopes = [2.0 ** (-8 * (h + 1) / q.shape[1]) for h in range(q.shape[1])]
    return add(products(q, k), lambda b, h, i, j: -slopes[h] * abs(at_q[b][i] - at_k[b][j]))


# `plain` has no bias, so that the fused kernel goes its shortest way; `biased` needs a mask.
ENCODINGS = {"plain": (NoPE, lambda q, k, at_q, at_k: products(q, k)), "biased": (lambda: ALiBi(4), alibi)}


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("shared", [1, 2, 4])
def test_grouped_heads(shared, causal, name, impl):
    """Query head h reads key head h // (4 / shared); values may be wider than keys."""
    q, k, v = qkv(shared=shared, dv=7)
    encoding, logits = ENCODINGS[name]
    rows, order = [range(9, 14), range(5)], [range(5)] * 2
    got = attend(*tensors(q, k, v), encoding(), Positions.arange(2, 5, torch.tensor([9, 0])), causal=causal, impl=impl)
    close(got, attention(logits(q, k, rows, rows), v, sees(order, order, causal=causal)))


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("causal", [True, False])
def test_documents_F3(causal, name, impl):
    q, k, v = qkv(batch=1, queries=7, keys=7)
    encoding, logits = ENCODINGS[name]
    rows, documents, order = [[0, 1, 0, 1, 2, 3, 0]], [[0, 0, 1, 1, 1, 1, 2]], [range(7)]
    got = attend(*tensors(q, k, v), encoding(), Positions.packed([0, 2, 6, 7]), causal=causal, impl=impl)
    close(got, attention(logits(q, k, rows, rows), v, sees(order, order, documents, documents, causal)))


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("causal", [True, False])
def test_padding_on_either_side_F1(causal, name, impl):
    """And rows of padding come out as zeros."""
    q, k, v = qkv()
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]])
    encoding, logits = ENCODINGS[name]
    rows, documents = [[0, 0, 0, 1, 2], [0, 1, 2, 3, 3]], (mask - 1).tolist()
    got = attend(*tensors(q, k, v), encoding(), Positions.from_mask(mask), causal=causal, impl=impl)
    close(got, attention(logits(q, k, rows, rows), v, sees(rows, rows, documents, documents, causal)))
    assert not got[0, :, :2].any()
    assert not got[1, :, 4].any()


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("queries", "keys"), [(1, 5), (2, 5), (5, 2), (4, 4)])
def test_queries_and_keys_of_different_counts_F13(queries, keys, causal, name, impl):
    """The last queries of `keys` tokens, or, with (5, 2), queries that start with the keys: order decides, not a corner."""
    q, k, v = qkv(queries=queries, keys=keys)
    encoding, logits = ENCODINGS[name]
    start = max(keys - queries, 0)
    at_q, at_k = [range(start, start + queries)] * 2, [range(keys)] * 2
    got = attend(
        *tensors(q, k, v),
        encoding(),
        Positions.arange(2, queries, start),
        Positions.arange(1, keys),
        causal=causal,
        impl=impl,
    )
    close(got, attention(logits(q, k, at_q, at_k), v, sees(at_q, at_k, causal=causal)))


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", ENCODINGS)
def test_causal_order_is_apart_from_coordinates(name, impl):
    """Zigzag shards, ring buffers: tokens stored out of order see by `order`; a shared coordinate hides nothing."""
    q, k, v = qkv(batch=1, queries=4, keys=4)
    order, coords = [[2, 0, 3, 1]], [[5, 5, 0, 9]]
    at = Positions(torch.tensor(coords), torch.tensor(order), torch.zeros(1, 4, dtype=torch.int64))
    encoding, logits = ENCODINGS[name]
    close(
        attend(*tensors(q, k, v), encoding(), at, impl=impl), attention(logits(q, k, coords, coords), v, sees(order, order))
    )


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("causal", [True, False])
def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients(causal, name, impl):
    q, k, v = (tensor.requires_grad_() for tensor in tensors(*qkv(batch=1, queries=3, keys=4)))
    document_q, document_k = [[0, 7, -1]], [[0, 0, -1, 0]]
    at_q, at_k = (
        Positions(torch.tensor([order]), torch.tensor([order]), torch.tensor(document))
        for order, document in (([5, 6, 7], document_q), ([0, 1, 2, 9], document_k))
    )
    got = attend(q, k, v, ENCODINGS[name][0](), at_q, at_k, causal=causal, impl=impl)
    logits = ENCODINGS[name][1](*(x.detach().numpy() for x in (q, k)), [[5, 6, 7]], [[0, 1, 2, 9]])
    may = sees([[5, 6, 7]], [[0, 1, 2, 9]], document_q, document_k, causal)
    close(got, attention(logits, v.detach().numpy(), may))
    assert not got[:, :, 1:].any()
    got.sin().sum().backward()
    for tensor in (q, k, v):
        assert tensor.grad.isfinite().all()
    assert not q.grad[:, :, 1:].any()
    assert q.grad[:, :, 0].any()


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize(("dtype", "bits"), [(torch.float32, 24), (torch.bfloat16, 8), (torch.float16, 11)])
@pytest.mark.parametrize("name", ENCODINGS)
def test_lower_dtypes_are_near_the_fp64_loops(name, dtype, bits, impl):
    """The reference computes in fp32 and rounds once; the fused kernel may round its weights too."""
    arrays = [tensor.double().numpy() for tensor in tensors(*qkv(queries=9, keys=9), dtype=dtype)]
    encoding, logits = ENCODINGS[name]
    rows = [range(9)] * 2
    got = attend(*tensors(*arrays, dtype=dtype), encoding(), Positions.arange(2, 9), impl=impl)
    assert got.dtype == dtype
    exact = attention(logits(arrays[0], arrays[1], rows, rows), arrays[2], sees(rows, rows))
    error = np.abs(got.double().numpy() - exact)
    largest = np.abs(arrays[2]).max()
    if impl == "reference":
        assert (error <= half_ulp(exact, bits) + 2e-6 * largest).all()
    else:
        assert error.max() <= 2.0 ** (1 - bits) * largest + 2e-6 * largest


class Probe(PositionalEncoding):
    """Uses every seam in a way that tells it apart: what is called, with what, and where the result goes."""

    def rotate(self, x, at, side):
        factor = {"query": 1.1, "key": 0.7, "value": -2.0, "output": 3.0}[side]
        added = {"query": 0.1, "key": 0.2, "value": 0.3, "output": 0.4}[side]
        return x * factor + at.coords.to(x.dtype)[:, None, :, None] * added

    def bias(self, q, k, at_q, at_k):
        assert q.shape[1] == k.shape[1], "keys come expanded to the query heads"
        query, key = at_q.coords.to(q.dtype), at_k.coords.to(q.dtype)
        return lambda b, h, i, j: q[b, h, i, 0] * k[b, h, j, 1] * 0.3 + h - 0.1 * (query[b, i] - key[b, j])

    def finish(self, s):
        probs = s.weights(s.logits * 0.5 + (s.logits * s.seen).sum(-1, keepdim=True) * s.q[..., :1] * 0.1)
        return s.mix(probs) + (probs * s.at_k.coords[:, None, None, :]).sum(-1, keepdim=True) * 0.2

    def softmax_scale(self, d_head):
        return 0.9 / d_head


def test_every_seam_in_its_place():
    """out = rotate(finish(q̂·k̂·scale + bias, v̂)), with the hats from `rotate`."""
    q, k, v = qkv(batch=2, queries=3, keys=4)
    at_q, at_k = np.array([[1, 2, 4], [0, 3, 5]]), np.array([[0, 1, 2, 3], [5, 1, 0, 2]])
    order_q, order_k = [range(2, 5)] * 2, [range(4)] * 2
    turned_q, turned_k = q * 1.1 + at_q[:, None, :, None] * 0.1, k * 0.7 + at_k[:, None, :, None] * 0.2
    turned_v = v * -2.0 + at_k[:, None, :, None] * 0.3
    logits = add(
        products(turned_q, turned_k, 0.9 / 6),
        lambda b, h, i, j: turned_q[b, h, i, 0] * turned_k[b, h // 2, j, 1] * 0.3 + h - 0.1 * (at_q[b, i] - at_k[b, j]),
    )
    may = sees(order_q, order_k)
    seen = np.array([[[may(b, i, j) for j in range(4)] for i in range(3)] for b in range(2)])[:, None]
    logits = logits * 0.5 + (logits * seen).sum(-1, keepdims=True) * turned_q[..., :1] * 0.1
    out = attention(logits, turned_v, may, lambda b, h, i, j: 0.2 * at_k[b, j]) * 3.0 + at_q[:, None, :, None] * 0.4

    def positions(coords, order):
        document = torch.zeros(coords.shape, dtype=torch.int64)
        return Positions(torch.from_numpy(coords), torch.tensor([list(row) for row in order]), document)

    on_q, on_k = positions(at_q, order_q), positions(at_k, order_k)
    close(attend(*tensors(q, k, v), Probe(), on_q, on_k), out)
    close(attend_rotated(*tensors(turned_q, turned_k, turned_v), Probe(), on_q, on_k), out)
    with pytest.raises(ValueError, match="impl='sdpa' cannot express Probe"):
        attend(*tensors(q, k, v), Probe(), on_q, on_k, impl="sdpa")


class Biased(Probe):
    """Its rotations, bias and scale, which a fused kernel can express."""

    finish = PositionalEncoding.finish


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_fused_backend_reads_the_same_seams(dtype):
    q, k, v = tensors(*qkv(queries=4, keys=4), dtype=dtype)
    at = Positions.at(torch.tensor([[3, 0, 1, 7], [2, 2, 9, 4]]))
    for causal in (True, False):
        reference, fused = (attend(q, k, v, Biased(), at, causal=causal, impl=impl) for impl in ("reference", "sdpa"))
        close(fused, reference, atol=1e-12 if dtype == torch.float64 else 5e-5)


@st.composite
def anywhere(draw_from, tokens: int):
    """Coordinates, causal order and documents (with padding) of one row, in any arrangement."""
    whole = st.lists(st.integers(-9, 40), min_size=tokens, max_size=tokens)
    order = st.lists(st.integers(0, 6), min_size=tokens, max_size=tokens)
    document = st.lists(st.integers(-1, 1), min_size=tokens, max_size=tokens)
    return draw_from(whole), draw_from(order), draw_from(document)


@settings(max_examples=60)
@given(
    of_q=anywhere(3),
    of_k=anywhere(4),
    causal=st.booleans(),
    impl=st.sampled_from(IMPLS),
    name=st.sampled_from([*ENCODINGS]),
)
def test_any_arrangement_of_tokens(of_q, of_k, causal, impl, name):
    q, k, v = qkv(batch=1, queries=3, keys=4)
    at_q, at_k = (Positions(*(torch.tensor([part]) for part in of)) for of in (of_q, of_k))
    encoding, logits = ENCODINGS[name]
    got = attend(*tensors(q, k, v), encoding(), at_q, at_k, causal=causal, impl=impl)
    may = sees([of_q[1]], [of_k[1]], [of_q[2]], [of_k[2]], causal)
    close(got, attention(logits(q, k, [of_q[0]], [of_k[0]]), v, may))


class Sharp(PositionalEncoding):
    """Nothing but a softmax scale of its own."""

    def softmax_scale(self, d_head):
        return 2.5 / d_head


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("causal", [True, False])
def test_a_softmax_scale_of_its_own_and_nothing_else(causal, impl):
    q, k, v = qkv()
    rows = [range(5)] * 2
    for at in (Positions.arange(2, 5), Positions.at(torch.arange(5)[None])):
        got = attend(*tensors(q, k, v), Sharp(), at, causal=causal, impl=impl)
        close(got, attention(products(q, k, 2.5 / 6), v, sees(rows, rows, causal=causal)))


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", ENCODINGS)
def test_a_run_on_one_side_and_padding_or_documents_on_the_other(name, impl):
    """Bidirectional: a run alone does not make a mask needless."""
    q, k, v = qkv()
    encoding, logits = ENCODINGS[name]
    run, padded = Positions.arange(2, 5), Positions.from_mask(torch.tensor([[0, 1, 1, 1, 0], [1, 1, 1, 0, 0]]))
    for at_q, at_k in ((run, padded), (padded, run)):
        of_q, of_k = (at.document.tolist() for at in (at_q, at_k))
        got = attend(*tensors(q, k, v), encoding(), at_q, at_k, causal=False, impl=impl)
        may = sees(None, None, of_q, of_k, causal=False)
        close(got, attention(logits(q, k, at_q.coords.tolist(), at_k.coords.tolist()), v, may))


class Watch(PositionalEncoding):
    """Its bias is nothing; it keeps what it was asked with."""

    seen = None

    def bias(self, q, k, at_q, at_k):
        self.seen = (q.dtype, k.dtype, q.shape, k.shape)
        return lambda b, h, i, j: torch.zeros(())


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_bias_is_asked_in_working_precision_with_all_heads(dtype, impl):
    watch, at = Watch(), Positions.arange(2, 5)
    attend(*tensors(*qkv(), dtype=dtype), watch, at, impl=impl)
    working = torch.float64 if dtype == torch.float64 else torch.float32
    assert watch.seen == (working, working, (2, 4, 5, 6), (2, 4, 5, 6))


@pytest.mark.parametrize("impl", IMPLS)
def test_rotated_keys_of_a_cache_F8(impl):
    """attend_rotated turns neither queries nor keys again."""
    q, k, v = tensors(*qkv())
    encoding, at = RoPE(6), Positions.arange(2, 5, 30)
    whole = attend(q, k, v, encoding, at, impl=impl)
    turned = encoding.rotate(q, at, "query"), encoding.rotate(k, at, "key")
    close(attend_rotated(*turned, v, encoding, at, at, impl=impl), whole)
    last = at.take(torch.tensor([4]))
    close(attend_rotated(turned[0][:, :, 4:], turned[1], v, encoding, last, at, impl=impl), whole[:, :, 4:])


@pytest.mark.parametrize("impl", IMPLS)
def test_one_row_of_positions_serves_a_batch(impl):
    q, k, v = qkv(batch=3, queries=4, keys=4)
    rows = [range(2, 6)] * 3
    for at in (Positions.arange(1, 4, 2), Positions.arange(3, 4, 2), Positions.at(torch.arange(2, 6)[None])):
        got = attend(*tensors(q, k, v), ALiBi(4), at, impl=impl)
        close(got, attention(alibi(q, k, rows, rows), v, sees(rows, rows)))
    one, three = torch.arange(2, 6)[None], torch.arange(2, 6).expand(3, 4)
    for at_q, at_k in (
        (Positions.arange(1, 4, 2), Positions.arange(3, 4, 2)),
        (Positions.arange(3, 4, 2), Positions.arange(1, 4, 2)),
        (Positions.at(three), Positions.at(one)),
        (Positions.at(one), Positions.at(three)),
    ):
        close(
            attend(*tensors(q, k, v), ALiBi(4), at_q, at_k, impl=impl),
            attention(alibi(q, k, rows, rows), v, sees(rows, rows)),
        )


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", ENCODINGS)
def test_gradients_by_differences(name, impl):
    inputs = [tensor.requires_grad_() for tensor in tensors(*qkv(batch=1, queries=3, keys=3))]
    at = Positions.from_mask(torch.tensor([[1, 1, 0]]))
    assert torch.autograd.gradcheck(
        lambda q, k, v: attend(q, k, v, ENCODINGS[name][0](), at, impl=impl), inputs, fast_mode=True
    )


def test_auto_takes_the_fused_backend_where_it_can():
    q, at = torch.zeros(1, 2, 5, 4), Positions.arange(1, 5)

    def chosen(impl, encoding):
        return next(
            name for name, one in BACKENDS.items() if one is backend_of(Call.of(q, q, q, encoding, at, at, True), impl)
        )

    assert chosen("auto", NoPE()) == "sdpa"
    assert chosen("auto", ALiBi(2)) == "toeplitz"
    assert chosen("auto", Shaw(4)) == chosen("auto", Shaw(4, values=False)) == "relative"
    assert chosen("auto", CoPE(4)) == "reference"
    assert chosen("reference", NoPE()) == "reference"
    with pytest.raises(ValueError, match=r"impl: expected 'auto' or one of .*'sdpa', 'reference'.*, got 'flash'"):
        chosen("flash", NoPE())


def test_scale_is_one_over_the_root_of_the_width():
    """A query of length √d along a key: the weight is σ(√d·√d/√d) for two keys, one of them zero."""
    d = 9
    q, k = torch.zeros(1, 1, 1, d).double(), torch.zeros(1, 1, 2, d).double()
    q[..., 0] = k[0, 0, 0, 0] = 3.0
    v = torch.tensor([1.0, 0.0]).double().view(1, 1, 2, 1)
    for impl in IMPLS:
        got = attend(q, k, v, NoPE(), Positions.arange(1, 1, 5), Positions.arange(1, 2), impl=impl).item()
        assert got == pytest.approx(1 / (1 + math.exp(-3.0)), abs=1e-14)


# What is refused


def test_shapes_that_do_not_fit():
    q, k, v = tensors(*qkv())
    at, encoding = Positions.arange(2, 5), NoPE()
    with pytest.raises(ValueError, match=r"q: expected \[batch, heads, tokens, channels\], got \[4, 5, 6\]"):
        attend(q[0], k, v, encoding, at)
    with pytest.raises(ValueError, match=r"v: expected \[batch, heads, tokens, channels\]"):
        attend(q, k, v[..., 0], encoding, at)
    for wrong in ((q, k[:, :, :4], v), (q, k[:, :1], v), (q[:1], k, v), (q[..., :4], k, v), (q, k[:1], v[:1])):
        with pytest.raises(ValueError, match="q, k, v: expected"):
            attend(*wrong, encoding, at)
    with pytest.raises(ValueError, match="q, k: 3 query heads cannot be shared evenly by 2 key heads"):
        attend(q[:, :3], k, v, encoding, at)
    with pytest.raises(ValueError, match=r"at_q: has positions \[2, 4\] for tokens \[2, 5\]"):
        attend(q, k, v, encoding, Positions.arange(2, 4), at)
    tokens_first = [x.transpose(1, 2) for x in (q, k, v)]
    with pytest.raises(ValueError, match=r"for tokens \[2, 4\]; expected \[batch, heads, tokens, channels\]"):
        attend(*tokens_first, encoding, at)
    with pytest.raises(ValueError, match=r"at_q: has positions \[3, 5\] for tokens \[2, 5\]"):
        attend(q, k, v, encoding, Positions.arange(3, 5), at)
    with pytest.raises(ValueError, match=r"at_k: has positions \[2, 6\] for tokens \[2, 5\]"):
        attend(q, k, v, encoding, at, Positions.arange(2, 6))
    with pytest.raises(ValueError, match=r"at_k: has positions \[1, 6\]"):
        attend_rotated(q, k, v, encoding, at, Positions.arange(1, 6))


def test_dtypes_that_do_not_fit():
    q, k, v = tensors(*qkv())
    at, encoding = Positions.arange(2, 5), NoPE()
    for wrong in ((q, k.float(), v), (q, k, v.bfloat16()), (q.long(), k.long(), v.long()), (q.float(), k, v)):
        with pytest.raises(TypeError, match="expected one floating dtype for q, k and v"):
            attend(*wrong, encoding, at)
    with pytest.raises(TypeError, match=r"at_q: expected Positions, got Tensor; Positions\.arange"):
        attend(q, k, v, encoding, torch.arange(5)[None])
    with pytest.raises(TypeError, match="at_k: expected Positions, got int"):
        attend(q, k, v, encoding, at, 5)


def test_backends_by_name():
    q, k, v = tensors(*qkv())
    at = Positions.arange(2, 5)
    with pytest.raises(ValueError, match=r"impl: expected 'auto' or one of .*'sdpa', 'reference'.*, got 'flux'"):
        attend(q, k, v, NoPE(), at, impl="flux")
    with pytest.raises(ValueError, match=r"reads the logits.*use impl='reference' or 'auto'"):
        attend(q, k, v, CoPE(6), at, impl="sdpa")
    with pytest.raises(ValueError, match="or the attention probabilities"):
        attend(q, k, v, Shaw(6), at, impl="sdpa")
    assert attend(q, k, v, Shaw(6, values=False).double(), at, impl="sdpa").isfinite().all()
