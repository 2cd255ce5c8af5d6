"""Attention with a bias of the distance alone against loops in float64: forward, every gradient, every arrangement."""

import contextlib
import functools
import math
import os
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
import torch

import posenc
from posenc import Positions, attend, attend_rotated
from posenc.attention.backends import toeplitz
from posenc.attention.backends.toeplitz import attention as module
from posenc.attention.call import Call
from posenc.combined import Stack
from posenc.encodings.alibi import ALiBi
from posenc.encodings.cope import CoPE
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.t5 import T5
from sampling import a_third, every_second, only, thinned

operator = torch.ops.posenc.toeplitz_attention


@dataclass(frozen=True)
class Case:
    """Sizes of a call; `ahead` is by how much the first query comes after the first key, for each row or for all."""

    b: int = 2
    h: int = 4
    g: int = 2
    i: int = 9
    j: int = 9
    d: int = 4
    dv: int = 4
    ahead: tuple[int, ...] = (0,)
    document: tuple[tuple[int, ...], ...] | None = None
    vectors: int = 1


CASES = {
    "plain": Case(),
    "one key head each": Case(g=4),
    "one key head": Case(g=1),
    "one row": Case(b=1),
    "chunk": Case(i=5, j=13, ahead=(8,), vectors=2),
    "rows at different starts": Case(i=5, j=13, ahead=(8, 3), vectors=2),
    "queries before the keys": Case(i=7, j=5, ahead=(-3, -20), vectors=2),
    "all rows begin before the keys": Case(i=7, j=5, ahead=(-3,)),
    "queries past the keys": Case(i=3, j=6, ahead=(40,)),
    "wider values": Case(dv=7),
    "narrower values": Case(dv=2),
    "one token": Case(i=1, j=1),
    "one query": Case(i=1, j=11, ahead=(10,)),
    "one query a row": Case(i=1, j=11, ahead=(10, 4), vectors=2),
    "one key": Case(i=11, j=1),
    "wide heads": Case(b=1, h=2, g=1, i=11, j=11, d=32, dv=32),
    "packed": Case(b=2, document=((0, 0, 0, 1, 1, 1, 1, 2, 2),)),
    "padded": Case(document=((-1, -1, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, -1, -1, -1, -1, -1))),
    "holes": Case(document=((0, -1, 0, -1, -1, 0, 0, -1, 0), (0,) * 9)),
    "interleaved": Case(document=((0, 1, 0, 1, 2, 2, 0, -1, 1), (5, 5, 3, 3, 5, 5, 3, 3, 5))),
    "nothing but padding": Case(document=((-1,) * 9, (0,) * 9)),
}


def draw(case, dtype=torch.float64):
    """q, k, v and the vector, largest distance first, then the two integer inputs."""
    generator = torch.Generator().manual_seed(case.i * 100 + case.j)
    shapes = (
        (case.b, case.h, case.i, case.d),
        (case.b, case.g, case.j, case.d),
        (case.b, case.g, case.j, case.dv),
        (case.h, case.vectors, case.i + case.j - 1),
    )
    q, k, v, vector = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    document = None if case.document is None else torch.tensor(case.document)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return (q.to(dtype), k.to(dtype), v.to(dtype), vector.flip(2).to(wide)), (torch.tensor(case.ahead), document)


def by_loops(q, k, v, vector, ahead, document, scale, causal):
    """softmax over the keys that the query may see, one query at a time; zeros where there is none."""
    (b, h, i, _), (g, j) = q.shape, k.shape[1:3]
    rows = []
    for row in range(b):
        bias_row, document_row = min(row, vector.shape[1] - 1), 0 if document is None else min(row, len(document) - 1)
        ahead_row = int(ahead[min(row, len(ahead) - 1)])
        names = None if document is None else document[document_row].tolist()
        nth = None if names is None else [names[:t].count(name) for t, name in enumerate(names)]
        for head in range(h):
            for query in range(i):
                logits, seen = [], []
                for key in range(j):
                    if names is None:
                        hidden, distance = causal and query + ahead_row < key, query - key
                    else:
                        hidden = names[query] != names[key] or names[query] < 0 or (causal and query < key)
                        distance = nth[query] - nth[key]
                    if not hidden:
                        product = (q[row, head, query] * k[row, head * g // h, key]).sum()
                        logits.append(product * scale + vector[head, bias_row, i - 1 - distance])
                        seen.append(v[row, head * g // h, key])
                zeros = 0 * q[row, head, query].sum() + torch.zeros_like(v[row, 0, 0])
                rows.append(torch.stack(logits).softmax(0) @ torch.stack(seen) if seen else zeros)
    return torch.stack(rows).view(b, h, i, v.shape[3])


@pytest.fixture(params=[(256, 512), (4, 3), (1, 1), (5, 100)], ids=lambda sizes: f"blocks{sizes[0]}x{sizes[1]}")
def blocks(request, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", request.param[0])
    monkeypatch.setattr(module, "TILE", request.param[1])
    if request.param == (4, 3):
        monkeypatch.setattr(module, "ENTRIES", 1)  # row by row


@contextlib.contextmanager
def poisoned():
    """Fresh memory holds NaN: what is not written shows."""
    deterministic, fill = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        assert torch.empty(3).isnan().all()
        yield
    finally:
        torch.use_deterministic_algorithms(deterministic)
        torch.utils.deterministic.fill_uninitialized_memory = fill


def run(function, tensors, integers, causal, learned, upstream):
    """The output and the gradients of q, k, v and, where it is learned, of the vector."""
    leaves = [tensor.detach().clone().requires_grad_(n < 3 or learned) for n, tensor in enumerate(tensors)]
    out = function(*leaves, *integers, 0.3, causal)
    wanted = leaves if learned else leaves[:3]
    return [out.detach(), *torch.autograd.grad((out.double() * upstream).sum(), wanted)]


def upstream_of(case):
    return torch.randn(case.b, case.h, case.i, case.dv, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


def fused(*arguments):
    return operator(*arguments)[0]


@functools.cache
def loops_of(name, causal, learned):
    """What the loops give, for all sizes of blocks."""
    return run(by_loops, *draw(CASES[name]), causal, learned, upstream_of(CASES[name]))


@pytest.mark.parametrize(("name", "causal", "learned"), thinned(3, every_second(CASES, (True, False), (True, False))))
def test_against_loops(name, causal, learned, blocks):
    case = CASES[name]
    tensors, integers = draw(case)
    expected = loops_of(name, causal, learned)
    with poisoned():
        got = run(fused, tensors, integers, causal, learned, upstream_of(case))
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


HALVES = (torch.float32, torch.bfloat16, torch.float16)


@pytest.mark.parametrize(
    ("name", "dtype"), every_second(["plain", "chunk", "packed", "holes", "wide heads", "wider values"], HALVES), ids=str
)
def test_dtypes(name, dtype):
    """Within two roundings; gradients are sums of n products: four roundings and, as those of a random walk, √n more.

    The order of a sum is the choice of the processor's matrix library: 8 roundings of 64 products were seen with one.
    """
    case = CASES[name]
    tensors, integers = draw(case, dtype)
    for learned in (True, False):
        exact = run(by_loops, [x.double() for x in tensors], integers, True, learned, upstream_of(case))
        got = run(fused, tensors, integers, True, learned, upstream_of(case))
        for n, (mine, theirs) in enumerate(zip(got, exact, strict=True)):
            assert mine.dtype == (dtype if n < 4 else torch.float32)
            rounding = torch.finfo(dtype).eps * float(theirs.abs().max())
            products = (0, case.j, case.i * case.h // case.g, case.i * case.h // case.g, case.i)[n]
            allowed = 2 if n == 0 else 4 + (math.sqrt(products) if dtype == torch.float32 else 0)
            assert float((mine.double() - theirs).abs().max()) <= allowed * rounding


@pytest.mark.acceptance
@pytest.mark.parametrize("name", only(["plain", "rows at different starts", "packed", "narrower values"], "packed"))
def test_gradcheck(name):
    case = replace(CASES[name], h=2, g=1, d=2)
    tensors, integers = draw(case)
    leaves = [tensor.requires_grad_() for tensor in tensors]
    assert torch.autograd.gradcheck(lambda *x: operator(*x, *integers, 0.3, True)[0], leaves)
    assert torch.autograd.gradcheck(lambda *x: operator(*x, tensors[3].detach(), *integers, 0.3, True)[0], leaves[:3])


@pytest.mark.parametrize("learned", [True, pytest.param(False, marks=pytest.mark.acceptance)])
@pytest.mark.parametrize("name", only(["plain", "chunk", "holes"], "holes"))
def test_the_sum_of_exponentials_has_a_gradient_too(name, learned):
    tensors, integers = draw(CASES[name])
    leaves = [tensor.requires_grad_(n < 3 or learned) for n, tensor in enumerate(tensors)]

    def both(*x):
        out, logsumexp = operator(*x, *([] if learned else [tensors[3]]), *integers, 0.3, True)
        return out, logsumexp.clamp(min=-1e3)  # of no key it is the logarithm of 0

    assert torch.autograd.gradcheck(both, leaves if learned else leaves[:3])


def test_a_query_that_sees_no_key_gives_zeros_and_no_gradient():
    tensors, integers = draw(Case(i=7, j=5, ahead=(-3,)))
    out, logsumexp = operator(*tensors, *integers, 0.3, True)
    assert (out[:, :, :3] == 0).all()
    assert (out[:, :, 3:] != 0).all()
    assert (logsumexp[:, :, :3] == -math.inf).all()
    assert logsumexp[:, :, 3:].isfinite().all()


def gradients_by_threads(*counts):
    case = Case(b=1, h=4, g=2, i=600, j=600, d=16, dv=16)
    tensors, integers = draw(case, torch.float32)
    threads = torch.get_num_threads()
    results = []
    try:
        for count in counts:
            torch.set_num_threads(count)
            results.append(run(fused, tensors, integers, True, True, upstream_of(case)))
    finally:
        torch.set_num_threads(threads)
    return results


def test_gradients_are_the_same_bits_every_time():
    first, again = gradients_by_threads(1, 1)
    assert all(map(torch.equal, again, first))


@pytest.mark.acceptance
def test_gradients_are_the_same_bits_with_two_threads():
    """Our own sums have a fixed order. That of matrix products is MKL's: MKL_CBWR makes it the same for all threads."""
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "import torch\n"
        "from oracles.test_toeplitz_attention import gradients_by_threads\n"
        "one, two = gradients_by_threads(1, 2)\n"
        "assert all(map(torch.equal, two, one))"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    told = {**os.environ, "MKL_CBWR": "COMPATIBLE"}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, env=told)


def hessian_products(attention, leaves, along):
    """Of the sum of squares: the second derivatives times the vectors `along`, by reverse mode twice."""
    gradients = torch.autograd.grad(attention(*leaves).square().sum(), leaves, create_graph=True)
    return torch.autograd.grad(sum((g * a).sum() for g, a in zip(gradients, along, strict=True)), leaves)


@pytest.mark.parametrize(("name", "causal"), thinned(3, every_second(CASES, (True, False))))
def test_transforms_and_second_derivatives_against_loops(name, causal):
    """jvp, grad, vmap and the Hessian: of the operator by torch.func and by backward, of the loops by torch."""
    tensors, integers = draw(CASES[name])
    leaves = [x.clone().requires_grad_() for x in tensors]
    along = [torch.cos(x + 1) for x in tensors]
    of, loops = (lambda *x, f=f: f(*x, *integers, 0.3, causal) for f in (fused, by_loops))
    close = lambda got, expected: torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11)  # noqa: E731
    out, tangent = torch.func.jvp(of, tuple(tensors), tuple(along))
    step = 1e-5
    behind, ahead = (loops(*(x + s * a for x, a in zip(tensors, along, strict=True))) for s in (-step, step))
    close(out, loops(*tensors))
    torch.testing.assert_close(tangent, (ahead - behind) / (2 * step), rtol=1e-7, atol=1e-7)
    square = lambda *x: of(*x).square().sum()  # noqa: E731
    expected = torch.autograd.grad(loops(*leaves).square().sum(), leaves)
    close(torch.func.grad(square, argnums=(0, 1, 2, 3))(*tensors), expected)
    close(torch.autograd.grad(square(*leaves), leaves, create_graph=True), expected)
    expected = hessian_products(loops, leaves, along)
    close(hessian_products(of, leaves, along), expected)
    close(torch.func.jvp(torch.func.grad(square, argnums=(0, 1, 2, 3)), tuple(tensors), tuple(along))[1], expected)
    twice = [torch.stack([x, x + 1]) for x in tensors]
    close(torch.func.vmap(of)(*twice), torch.stack([of(*(x[n] for x in twice)) for n in (0, 1)]))


def test_second_derivatives_where_one_input_is_computed_from_another():
    tensors, integers = draw(CASES["one key head each"])
    leaf = tensors[0].clone().requires_grad_()
    along = [torch.cos(tensors[0])]
    one, other = (
        hessian_products(lambda x, f=f: f(x, 2 * x, x * x, tensors[3], *integers, 0.3, True), [leaf], along)
        for f in (fused, by_loops)
    )
    torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float64, pytest.param(torch.bfloat16, marks=pytest.mark.acceptance)])
@pytest.mark.parametrize("name", a_third(["plain", "wider values", "packed", "rows at different starts"]))
@pytest.mark.parametrize("learned", [True, pytest.param(False, marks=pytest.mark.acceptance)])
def test_opcheck(name, learned, dtype):
    """Schema, fake kernels (shapes, dtypes, strides) and autograd registration, as torch checks them."""
    tensors, integers = draw(CASES[name], dtype)
    leaves = [tensor.requires_grad_(n < 3 or learned) for n, tensor in enumerate(tensors)]
    torch.library.opcheck(operator.default, (*leaves, *integers, 0.3, True))
    plain = [tensor.detach() for tensor in leaves]
    out, sums = operator(*plain, *integers, 0.3, True)
    torch.library.opcheck(
        torch.ops.posenc.toeplitz_attention_backward.default,
        (torch.ones_like(out), *plain, *integers, out, sums, None, 0.3, True, learned),
    )


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", ["plain", "packed", "wider values"])
def test_channels_need_not_lie_side_by_side(name, causal):
    case = CASES[name]
    tensors, integers = draw(case)
    expected = by_loops(*tensors, *integers, 0.3, causal)
    apart = [x.mT.contiguous().mT for x in tensors[:3]]
    torch.testing.assert_close(fused(*apart, tensors[3], *integers, 0.3, causal), expected, rtol=1e-12, atol=1e-12)
    leaves = [x.requires_grad_() for x in apart]
    for first, second in zip(
        torch.autograd.grad(fused(*leaves, tensors[3], *integers, 0.3, causal).sum(), leaves),  # a gradient of stride 0
        torch.autograd.grad(by_loops(*leaves, tensors[3], *integers, 0.3, causal).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(first, second, rtol=1e-12, atol=1e-12)


# Few tokens: without the operator

FEW = {
    "plain": Case(),
    "one row": Case(b=1),
    "one key head": Case(g=1),
    "one token": Case(i=1, j=1),
    "as wide as a vector": Case(b=1, h=2, i=16, j=16, d=16, dv=16),
    "past a vector": Case(h=2, g=1, i=18, j=18, d=20, dv=20),
    "several vectors": Case(b=1, h=1, g=1, i=37, j=37, d=9, dv=9),
}


@pytest.fixture(params=["C++", "torch"])
def way(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(module, "_kernel", lambda: None)
    elif module._kernel() is None:
        pytest.skip("the kernels are not built here")
    return request.param


def few(q, k, v, vector, ahead, document, scale, causal):
    vector = vector[:, 0]
    return module.attend_small(q, k, v, vector[:, : q.shape[2]] if causal else vector, scale)


# The C++ pass is for fp32; other dtypes are computed in torch either way.
WAYS = [("C++", torch.float32), ("torch", torch.float32), ("torch", torch.float64), ("torch", torch.bfloat16)]
FEW_CASES = [
    pytest.param(*one.values[:3], *one.values[3], marks=one.marks)
    for one in every_second(FEW, (True, False), (True, False), WAYS)
]


@pytest.mark.parametrize(("name", "causal", "learned", "way", "dtype"), thinned(7, FEW_CASES), indirect=["way"], ids=str)
def test_few_tokens_against_loops(name, causal, learned, dtype, way):
    """fp64 as closely as the other paths; otherwise twice the error of the loops in fp32, and some roundings."""
    case = FEW[name]
    tensors, integers = draw(case, dtype)
    exact = run(by_loops, [x.double() for x in tensors], integers, causal, learned, upstream_of(case))
    rounded = run(by_loops, [x.float() for x in tensors], integers, causal, learned, upstream_of(case))
    with poisoned():
        got = run(few, tensors, integers, causal, learned, upstream_of(case))
    for n, (mine, theirs, by_fp32) in enumerate(zip(got, exact, rounded, strict=True)):
        assert mine.dtype == (dtype if n < 4 else tensors[3].dtype)
        if dtype == torch.float64:
            torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)
        else:
            rounding = torch.finfo(dtype).eps * max(float(theirs.abs().max()), float(exact[0].abs().max()))
            allowed = (2 if n == 0 else 8) * rounding + 2 * float((by_fp32.double() - theirs).abs().max())
            assert float((mine.double() - theirs).abs().max()) <= allowed


def test_few_tokens_give_the_same_bits_with_two_threads(way):
    tensors, integers = draw(FEW["past a vector"], torch.float32)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 1, 2):
            torch.set_num_threads(count)
            results.append(run(few, tensors, integers, True, True, upstream_of(FEW["past a vector"])))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(mine, first) for again in results[1:] for mine, first in zip(again, results[0], strict=True))


BITS = """
import hashlib, torch
from posenc import Positions, attend
from posenc.encodings.t5 import T5
torch.set_num_threads(1)
torch.manual_seed(0)
told = hashlib.sha256()
for d, t in ((16, 40), (20, 19), (3, 5)):
    q, k, v = (x.transpose(1, 2).requires_grad_() for x in torch.randn(3, 8, t, 4, d))
    encoding = T5(4)
    attend(q, k, v, encoding, Positions.arange(8, t), impl="toeplitz").square().sum().backward()
    for x in (q.grad, k.grad, v.grad, encoding.table.grad):
        told.update(x.contiguous().numpy().tobytes())
print(told.hexdigest())
"""


@pytest.mark.acceptance
def test_few_tokens_give_the_same_bits_on_every_processor():
    def bits(instructions):
        environment = {**os.environ, "POSENC_KERNELS": instructions}
        return subprocess.run([sys.executable, "-c", BITS], capture_output=True, check=True, env=environment).stdout

    assert len({bits(instructions) for instructions in ("portable", "avx512_bf16")}) == 1


def test_nan_stays(way):
    tensors, integers = draw(CASES["plain"], torch.float32)
    tensors[0][0, 0, 4, 1] = math.nan
    _, d_q, d_k, d_v, d_vector = run(few, tensors, integers, True, True, upstream_of(CASES["plain"]))
    assert all(x.isnan().all() for x in (d_q[0, 0, 4], d_k[0, 0, :5], d_v[0, 0, :5], d_vector[0, 0, 4:9]))
    assert all(x.isfinite().all() for x in (d_q[1], d_k[1], d_vector[1:]))


@pytest.mark.parametrize(("name", "causal"), thinned(2, every_second(FEW, (True, False))))
def test_second_derivatives_of_few_tokens(name, causal):
    tensors, integers = draw(FEW[name])
    leaves, along = [x.clone().requires_grad_() for x in tensors], [torch.cos(x + 1) for x in tensors]
    mine, loops = (hessian_products(lambda *x, f=f: f(*x, *integers, 0.3, causal), leaves, along) for f in (few, by_loops))
    torch.testing.assert_close(mine, loops, rtol=1e-11, atol=1e-11)


def test_of_few_tokens_and_fixed_biases_torch_has_no_second_derivative():
    """torch's fused kernel computes them, and says so; one token more and the operator has it."""
    q, k, v = (x.requires_grad_() for x in heads(2, 4, 2, 7, 7))
    out = attend(q, k, v, ALiBi(4), Positions.arange(2, 7), impl="toeplitz")
    (grad,) = torch.autograd.grad(out.square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="backward is not implemented"):
        grad.sum().backward()


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("make", [ALiBi, T5])
def test_few_tokens_in_any_layout(make, apart, way):
    """Channels that lie apart, and a gradient of stride 0."""
    encoding, at = make(4), Positions.arange(2, 7)
    leaves = [x.float().mT.contiguous().mT if apart else x.float() for x in heads(2, 4, 2, 7, 7)]
    results = []
    for impl in ("toeplitz", "reference"):
        q, k, v = (x.detach().requires_grad_() for x in leaves)
        out = attend(q, k, v, encoding, at, impl=impl)
        results.append([out, *torch.autograd.grad(out.sum(), (q, k, v, *encoding.parameters()))])
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("sizes", [(2, 4, 2, 7), (2, 4, 2, 9)])  # as above
@pytest.mark.parametrize("make", [ALiBi, lambda h: Stack(ALiBi(h), T5(h)), lambda h: T5(h, bidirectional=True)])
def test_eager_code_and_the_operator_agree(make, sizes):
    b, h, g, length = sizes
    q, k, v = heads(b, h, g, length, length)
    encoding, at = make(h).double(), Positions.arange(b, length)
    assert module.is_small(q, k, v) == (length == 7)
    causal = not getattr(encoding, "bidirectional", False)
    vector = toeplitz.bias_vector(encoding.structure(), q, at, at)
    expected = operator(q, k, v, vector, torch.zeros(1, dtype=torch.long), None, encoding.softmax_scale(4), causal)[0]
    torch.testing.assert_close(attend(q, k, v, encoding, at, causal=causal, impl="toeplitz"), expected)


# Through attend


def by_hand(q, k, v, encoding, at_q, at_k, causal):
    """ALiBi and T5 from their formulas, pair by pair, where `order` and `document` allow."""
    (b, h, i, d), (g, j) = q.shape, k.shape[1:3]
    out = torch.zeros(b, h, i, v.shape[3], dtype=torch.float64)
    for row in range(b):
        for head in range(h):
            for query in range(i):
                seen, logits = [], []
                for key in range(j):
                    if at_q.document[row, query] != at_k.document[row, key] or at_q.document[row, query] < 0:
                        continue
                    if causal and at_q.order[row, query] < at_k.order[row, key]:
                        continue
                    distance = float(at_q.coords[row, query] - at_k.coords[row, key])
                    slope = 2.0 ** (-8 * (head + 1) / h)
                    logits.append(
                        q[row, head, query].double() @ k[row, head * g // h, key].double() / math.sqrt(d)
                        - slope * abs(distance)
                    )
                    seen.append(v[row, head * g // h, key].double())
                if seen:
                    out[row, head, query] = torch.stack(logits).softmax(0) @ torch.stack(seen)
    return out


def heads(b, h, g, i, j, d=4):
    generator = torch.Generator().manual_seed(i + j)
    return [torch.randn(s, generator=generator, dtype=torch.float64) for s in ((b, h, i, d), (b, g, j, d), (b, g, j, d))]


PLACES = {
    "plain": (Positions.arange(2, 7), None),
    "rows": (Positions.arange(2, 7, torch.tensor([3, 40])), None),
    "shifted": (Positions.arange(2, 7).shift(5), None),
    "halves": (Positions.arange(2, 7).shift(0.5), None),
    "chunk": (Positions.arange(2, 3, 4), Positions.arange(2, 7)),
    "chunk of rows": (Positions.arange(2, 3, torch.tensor([4, 9])), Positions.arange(2, 7, torch.tensor([0, 6]))),
    "coordinates apart from the order": (Positions.arange(2, 3, 4).shift(10), Positions.arange(2, 7).shift(-2)),
    "decode": (Positions.decode([6, 6]), Positions.cat([Positions.arange(2, 6), Positions.decode([6, 6])])),
    "packed": (Positions.packed([0, 2, 3, 7]), None),
    "packed and shifted": (Positions.packed([0, 2, 3, 7]).shift(9), None),
    "padded": (Positions.from_mask(torch.tensor([[0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]])), None),
    "holes": (Positions.from_mask(torch.tensor([[0, 1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0, 0]])), None),
}


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", PLACES)
def test_positions_that_count_up(name, causal):
    at_q, at_k = PLACES[name]
    at_k = at_q if at_k is None else at_k
    q, k, v = heads(at_q.batch, 4, 2, at_q.length, at_k.length)
    got = attend(q, k, v, ALiBi(4), at_q, at_k, causal=causal, impl="toeplitz")
    torch.testing.assert_close(got, by_hand(q, k, v, ALiBi(4), at_q, at_k, causal), rtol=1e-12, atol=1e-12)


def test_t5_learns_through_it():
    """Gradient of the table: each bucket's share of the logits' gradients, from the loops of the definition."""
    encoding = T5(4, n_buckets=8, max_distance=20).double()
    q, k, v = heads(2, 4, 2, 33, 33)
    at = Positions.arange(2, 33)
    grads = []
    for impl in ("toeplitz", "reference"):
        out = attend(q, k, v, encoding, at, impl=impl)
        grads.append(torch.autograd.grad(out.square().sum(), encoding.table)[0])
    torch.testing.assert_close(*grads, rtol=1e-12, atol=1e-12)


def test_stacks_of_such_biases_and_rotations():
    q, k, v = heads(2, 4, 2, 9, 9)
    at = Positions.arange(2, 9)
    stack = Stack(RoPE(4), ALiBi(4), T5(4)).double()
    assert toeplitz.refuses(stack, stack.structure()) is None
    torch.testing.assert_close(attend(q, k, v, stack, at, impl="toeplitz"), attend(q, k, v, stack, at, impl="reference"))


def test_what_it_refuses():
    q = torch.zeros(1, 2, 4, 4)
    at, scattered = Positions.arange(1, 4), Positions.at(torch.tensor([[0, 2, 3, 9]]))
    xl = posenc.create("transformer_xl", d_model=8, n_heads=2)
    for encoding, why in (
        (NoPE(), "no bias"),
        (Stack(ALiBi(2), CoPE(4)), "logits"),
        (xl, "distance alone"),
        (Stack(ALiBi(2), xl), "distance alone"),
    ):
        assert why in toeplitz.refuses(encoding, encoding.structure())
    assert toeplitz.refuses_call(Call.of(q, q, q, ALiBi(2), at, at, True)) is None
    packed = Positions.packed([0, 1, 4])
    assert toeplitz.refuses_call(Call.of(q, q, q, ALiBi(2), packed, packed, True)) is None
    for at_q, at_k in (
        (scattered, scattered),
        (at, scattered),
        (scattered, at),
        (at.take(torch.arange(4)), at),
        (packed, Positions.packed([0, 1, 4])),
        (packed, at),
        (at, packed),
    ):
        assert "count up" in toeplitz.refuses_call(Call.of(q, q, q, ALiBi(2), at_q, at_k, True))
    grid = Positions.grid(2, 2)
    assert "several coordinates" in toeplitz.refuses_call(Call.of(q, q, q, ALiBi(2), grid, grid, True))
    assert "meta" in toeplitz.refuses_call(Call.of(q.to("meta"), q.to("meta"), q.to("meta"), ALiBi(2), at, at, True))
    with pytest.raises(ValueError, match=r"impl='toeplitz' cannot express ALiBi.*count up"):
        attend(q, q, q, ALiBi(2), scattered, impl="toeplitz")


@pytest.mark.parametrize("length", [4, 40])
@pytest.mark.parametrize("impl", ["auto", "toeplitz", "reference"])
def test_real_positions_reach_the_bias_as_real_numbers(impl, length):
    """They count up by one, so the distances are whole, but T5 takes integer positions only: on short inputs too."""
    q, k, v = heads(1, 4, 2, length, length)
    at = Positions.arange(1, length).shift(0.5)
    with pytest.raises(TypeError, match="needs integer positions"):
        attend(q, k, v, T5(4).double(), at, impl=impl)
    of_integers = attend(q, k, v, ALiBi(4), Positions.arange(1, length), impl=impl)
    torch.testing.assert_close(attend(q, k, v, ALiBi(4), at, impl=impl), of_integers)


@pytest.mark.parametrize("make", [ALiBi, T5])
def test_decoding_token_by_token(make):
    """Prompt, chunk and single tokens through a growing cache: the same as all at once, on this path at every step."""
    encoding = make(4).double()
    q, k, v = heads(2, 4, 2, 12, 12)
    whole = attend(q, k, v, encoding, Positions.arange(2, 12), impl="reference")
    cached, begin = [], 0
    for size in (5, 3, 1, 1, 2):
        at = Positions.decode([begin] * 2) if size == 1 else Positions.arange(2, size, begin)
        cached = [Positions.cat([*cached, at])]
        end = begin + size
        part = attend_rotated(q[:, :, begin:end], k[:, :, :end], v[:, :, :end], encoding, at, cached[0], impl="toeplitz")
        torch.testing.assert_close(part, whole[:, :, begin:end], rtol=1e-12, atol=1e-12)
        begin = end


# Compilers


@pytest.mark.acceptance
@pytest.mark.parametrize("learned", [True, False])
def test_one_graph_over_lengths(learned):
    encoding = (T5 if learned else ALiBi)(4)
    graphs = []

    def counting(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(lambda q, at: attend(q, q, q, encoding, at), backend=counting, fullgraph=True, dynamic=True)
    for length in (6, 16, 40, 300):
        q, at = torch.randn(2, 4, length, 8), Positions.arange(2, length)
        torch.testing.assert_close(compiled(q, at), attend(q, q, q, encoding, at))
    assert len(graphs) == 1
    assert "posenc.toeplitz_attention" in str(graphs[0].graph)


@pytest.mark.acceptance
def test_export():
    """Packed documents as inputs: other documents of the same length may come later."""

    class Module(torch.nn.Module):
        def forward(self, q, at):
            return attend(q, q, q, ALiBi(4), at)

    q = torch.randn(1, 4, 9, 8)
    program = torch.export.export(Module(), (q, Positions.packed([0, 4, 9])))
    later = Positions.packed([0, 1, 7, 9])
    torch.testing.assert_close(program.module()(q, later), attend(q, q, q, ALiBi(4), later))


# Memory

MEASURE = """
import resource, sys, torch
from posenc import Positions, attend
from posenc.encodings.t5 import T5
torch.set_num_threads(1)
n = int(sys.argv[1])
encoding = T5(8)
def step(n):
    q, k, v = (torch.zeros(1, 8, n, 32, requires_grad=True) for _ in range(3))
    attend(q, k, v, encoding, Positions.arange(1, n), impl="toeplitz").sum().backward()
step(300)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
step(n)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.acceptance
def test_memory_grows_with_keys_not_with_pairs():
    """8 heads of 8192 tokens, forward and a learned table's backward: a tenth of the 2 GiB of a mask."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, "8192"], capture_output=True, text=True, check=True, env=environment
    )
    tensors = 16 * 8 * 8192 * 32 * 4 / 2**20  # inputs, gradients, reversed keys, …: 16 of the size of q
    assert float(done.stdout) < tensors + 80


@pytest.mark.parametrize("impl", ["reference", "sdpa", "toeplitz", "auto"])
@pytest.mark.parametrize("length", [3, 300])
@pytest.mark.parametrize("n_heads", [2, 8])
@pytest.mark.parametrize("name", ["alibi", "t5"])
def test_bias_of_other_heads_than_those_of_q_is_refused(name, n_heads, length, impl):
    x = torch.randn(1, 4, length, 16, requires_grad=True)
    with pytest.raises(ValueError, match=f"built for n_heads={n_heads}, got a tensor with 4 as q: make it with n_heads=4"):
        posenc.attend(x, x, x, posenc.create(name, n_heads=n_heads), Positions.arange(1, length), impl=impl)


def test_subclasses_with_another_bias_are_computed_by_their_bias():
    """Whoever overrides `bias` alone no longer declares terms of the distance; whoever declares them again does."""

    class ByKey(ALiBi):
        def bias(self, q, k, at_q, at_k):
            inherited = super().bias(q, k, at_q, at_k)
            return lambda b, h, i, j: inherited(b, h, i, j) + j

    class NotAnEncoding:
        def bias(self, q, k, at_q, at_k):
            return lambda b, h, i, j: 0.5 * j + 0 * (b + h + i)

    class Mixed(NotAnEncoding, T5):
        pass

    class Below(ByKey):
        pass

    class Again(ByKey):
        def structure(self):
            return ALiBi.structure(self)

    class OtherDistances(ALiBi):
        def at_distance(self, delta):
            return 2 * super().at_distance(delta)

    q, k, v = heads(2, 4, 2, 9, 9)
    at = Positions.arange(2, 9)
    for kind in (ByKey, Mixed, Below):
        for encoding in (kind(4), Stack(RoPE(4), kind(4))):
            assert toeplitz.refuses(encoding, encoding.structure()) == "its bias is not one of the distance alone"
            torch.testing.assert_close(attend(q, k, v, encoding, at), attend(q, k, v, encoding, at, impl="reference"))
    for kind in (ALiBi, T5, Again, OtherDistances):
        assert toeplitz.refuses(kind(4), kind(4).structure()) is None
    doubled = OtherDistances(4)
    torch.testing.assert_close(
        attend(q, k, v, doubled, at, impl="toeplitz"), attend(q, k, v, doubled, at, impl="reference")
    )
