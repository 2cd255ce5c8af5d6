"""FlexAttention against loops in fp64. A case compiles for seconds: `make test` tries a few, `make acceptance` all."""

import math
import shutil

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import posenc
from posenc import PositionalEncoding, Positions, Stack, attend
from posenc.attention.backends import BACKENDS, flex
from posenc.attention.call import Call
from posenc.attention.plan import backend_of
from posenc.checking import laws
from posenc.encodings.alibi import ALiBi
from posenc.encodings.cope import CoPE
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.shaw import Shaw
from posenc.encodings.t5 import T5
from sampling import WITHOUT_STATES, one_in

from .by_hand import add, attention, close, draw, products, sees, turned

H, D = 4, 16
FP32 = 3e-6  # sums of a hundred terms of size one in fp32
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="FlexAttention on the CPU needs a C++ compiler")


@pytest.fixture(autouse=True)
def fresh():
    """Shapes compiled by other tests do not count towards the limit."""
    torch._dynamo.reset()
    with torch.no_grad():
        yield


# (of queries, of keys): rows of coordinates, of causal order, of documents


def run(begin, end, rows=1):
    return [list(range(begin, end))] * rows, [list(range(begin, end))] * rows, [[0] * (end - begin)] * rows


def packed(*ends):
    spans = list(zip((0, *ends), ends, strict=False))
    coords = [[n - begin for begin, end in spans for n in range(begin, end)]]
    return coords, [list(range(ends[-1]))], [[d for d, (begin, end) in enumerate(spans) for _ in range(begin, end)]]


PADDED = ([[0] * 4 + list(range(16)), [*range(9), *[8] * 11]],) * 2 + ([[-1] * 4 + [0] * 16, [0] * 9 + [-1] * 11],)
PLACES = {
    "run": (Positions.arange(2, 20), run(0, 20, 2), None),
    "long": (Positions.arange(1, 150), run(0, 150), None),
    "packed": (Positions.packed([0, 40, 150]), packed(40, 150), None),
    "padded": (Positions.from_mask(torch.tensor([[0] * 4 + [1] * 16, [1] * 9 + [0] * 11])), PADDED, None),
    "decode": (Positions.arange(2, 1, 149), run(149, 150, 2), (Positions.arange(2, 150), run(0, 150, 2))),
    "chunk": (Positions.arange(1, 30, 120), run(120, 150), (Positions.arange(1, 150), run(0, 150))),
}


def alibi(b, h, delta):
    return -(2.0 ** (-8 * (h + 1) / H)) * abs(delta)


TABLE = draw(9, 8, H)


def t5(b, h, delta):
    """Eight buckets: distances 0 … 3, then 4 + ⌊4·ln(n/4) / ln(9/4)⌋ up to the last; the future is 0."""
    n = max(delta, 0)
    return TABLE[n if n < 4 else 4 + int(math.log(n / 4) / math.log(9 / 4) * 4 + 1e-9) if n < 9 else 7, h]


def filled_t5():
    encoding = T5(H, n_buckets=8, max_distance=9)
    encoding.table.copy_(torch.from_numpy(TABLE))
    return encoding


KEYS = draw(10, 7, D)


def filled_shaw():
    encoding = Shaw(D, max_distance=3, values=False)
    encoding.keys.copy_(torch.from_numpy(KEYS))
    return encoding


def rotated(x, coords):
    angles = [10000.0 ** (-2 * pair / D) for pair in range(D // 2)]
    turn = [
        [
            [turned(row, [coords[b][t] * angle for angle in angles], "interleaved") for t, row in enumerate(head)]
            for head in heads
        ]
        for b, heads in enumerate(x)
    ]
    return np.array(turn)


def of_distance(bias):
    return lambda q, k, at_q, at_k: add(products(q, k), lambda b, h, i, j: bias(b, h, at_q[b][i] - at_k[b][j]))


def of_shaw(q, k, at_q, at_k):
    clipped = lambda b, i, j: max(-3, min(3, at_k[b][j] - at_q[b][i])) + 3  # noqa: E731
    return add(products(q, k), lambda b, h, i, j: q[b, h, i] @ KEYS[clipped(b, i, j)] / math.sqrt(D))


def of_rope(q, k, at_q, at_k):
    return products(rotated(q, at_q), rotated(k, at_k))


def of_stack(q, k, at_q, at_k):
    both = lambda b, h, i, j: alibi(b, h, at_q[b][i] - at_k[b][j]) + t5(b, h, at_q[b][i] - at_k[b][j])  # noqa: E731
    return add(of_rope(q, k, at_q, at_k), both)


ENCODINGS = {
    "nope": (NoPE, lambda q, k, at_q, at_k: products(q, k)),
    "rope": (lambda: RoPE(D), of_rope),
    "alibi": (lambda: ALiBi(H), of_distance(alibi)),
    "t5": (filled_t5, of_distance(t5)),
    "shaw keys": (filled_shaw, of_shaw),
    "stack": (lambda: Stack(RoPE(D), ALiBi(H), filled_t5()), of_stack),
}
QUICK = [("t5", "decode", True, 4), ("nope", "padded", True, 1)]
CASES = [
    (name, place, causal, shared)
    for name in ENCODINGS
    for place in PLACES
    for causal in (True, False)
    for shared in (2,)
    if (causal or place in ("run", "packed", "padded")) and (causal or name not in ("t5", "stack"))
]


def check(name, place, causal, shared, dtype=torch.float32, atol=FP32):
    at_q, of_q, keys = PLACES[place]
    at_k, of_k = keys or (at_q, of_q)
    q = draw(1, at_q.batch, H, at_q.length, D)
    k, v = draw(2, at_q.batch, shared, at_k.length, D), draw(3, at_q.batch, shared, at_k.length, D)
    q, k, v = (torch.from_numpy(x).to(dtype).double().numpy() for x in (q, k, v))
    encoding, logits = ENCODINGS[name]
    got = attend(*(torch.from_numpy(x).to(dtype) for x in (q, k, v)), encoding(), at_q, at_k, causal=causal, impl="flex")
    may = sees(of_q[1], of_k[1], of_q[2], of_k[2], causal)
    close(got.double(), attention(logits(q, k, of_q[0], of_k[0]), v, may), atol)
    return got


@pytest.mark.acceptance
@needs_compiler
@pytest.mark.parametrize(("name", "place", "causal", "shared"), one_in(2, QUICK))
def test_by_loops(name, place, causal, shared):
    check(name, place, causal, shared)


@needs_compiler
@pytest.mark.acceptance
@pytest.mark.parametrize(("name", "place", "causal", "shared"), CASES)
def test_every_case_by_loops(name, place, causal, shared):
    """What is refused at these positions is refused with a reason."""
    check(name, place, causal, shared)


@needs_compiler
@pytest.mark.acceptance
@pytest.mark.parametrize(("dtype", "atol"), [(torch.bfloat16, 2e-2), (torch.float16, 3e-3)])
@pytest.mark.parametrize("name", ["alibi", "shaw keys"])
def test_16_bits_are_rounded_once_at_the_end(name, dtype, atol):
    """Outputs of size up to three, of a product of weights that are rounded to the dtype themselves."""
    check(name, "run", True, 2, dtype, atol)


@needs_compiler
def test_queries_that_see_nothing_give_zeros():
    got = check("nope", "padded", True, 1)
    assert not got[0, :, :4].any()
    assert not got[1, :, 9:].any()


@needs_compiler
@pytest.mark.acceptance
def test_heads_in_groups_of_three():
    """The kernel for few queries knows groups of 2, 4, 8 … only."""
    q, k, v = draw(1, 1, 6, 5, D), draw(2, 1, 2, 5, D), draw(3, 1, 2, 5, D)
    got = attend(*(torch.from_numpy(x).float() for x in (q, k, v)), NoPE(), Positions.arange(1, 5), impl="flex")
    close(got, attention(products(q, k), v, sees([range(5)], [range(5)])), FP32)


@needs_compiler
@pytest.mark.acceptance
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in WITHOUT_STATES
        if "bias" in str(posenc.create(name, d_model=64, n_heads=4, max_positions=64).seams).lower()
    ],
)
def test_every_bias_of_the_catalogue_agrees_with_the_reference_or_is_refused(name):
    encoding = laws.draw_parameters(posenc.create(name, d_model=64, n_heads=4, max_positions=64), seed=1)
    q, k, v = (torch.from_numpy(draw(n, 1, 4, 30, D)).float() for n in range(3))
    for at in (Positions.arange(1, 30), Positions.packed([0, 11, 30])):
        if flex.refuses(encoding, encoding.structure()) or flex.refuses_call(Call.of(q, q, q, encoding, at, at, True)):
            continue
        expected = attend(q, k, v, encoding, at, impl="reference")
        torch.testing.assert_close(attend(q, k, v, encoding, at, impl="flex"), expected, atol=1e-5, rtol=1e-5)


# What is refused, and what "auto" takes


def qkv(dtype=torch.float32, d=D):
    return [torch.zeros(1, H, 5, d, dtype=dtype) for _ in range(3)]


@pytest.mark.parametrize(("encoding", "why"), [(CoPE(D), "reads the logits"), (Shaw(D), "attention probabilities")])
def test_what_reads_logits_or_probabilities(encoding, why):
    with pytest.raises(ValueError, match=f"impl='flex' cannot express .*{why}.*; use impl='reference' or 'auto'"):
        attend(*qkv(), encoding, Positions.arange(1, 5), impl="flex")


def test_float64():
    with pytest.raises(ValueError, match="does not compute in float64"):
        attend(*qkv(torch.float64), NoPE(), Positions.arange(1, 5), impl="flex")


def test_gradients_on_the_cpu():
    """Of the queries, of the keys and values, and of a learned table."""
    q, k, v = qkv()
    at = Positions.arange(1, 5)
    with torch.enable_grad():
        for tensor in (q, k, v):
            tensor.requires_grad_()
            with pytest.raises(ValueError, match="no gradient on the CPU"):
                attend(q, k, v, NoPE(), at, impl="flex")
            tensor.requires_grad_(False)
        with pytest.raises(ValueError, match="no gradient on the CPU"):
            attend(q, k, v, T5(H), at, impl="flex")


@pytest.mark.acceptance
def test_inside_a_graph_on_the_cpu():
    compiled = torch.compile(lambda q, k, v: attend(q, k, v, NoPE(), Positions.arange(1, 5), impl="flex"), backend="eager")
    with pytest.raises(Exception, match="right for fixed sizes only"):
        compiled(*qkv())


def test_inside_a_graph_only_vectors_of_distances_are_known_to_be_elementwise(monkeypatch):
    """What a graph on CUDA asks; nothing can be tried there."""
    q, run, scattered = torch.zeros(1, H, 5, D), Positions.arange(1, 5), Positions.at(torch.tensor([[0, 2, 3, 7, 9]]))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert flex._is_elementwise(Call.of(q, q, q, ALiBi(H), run, run))
    assert not flex._is_elementwise(Call.of(q, q, q, ALiBi(H), scattered, scattered))
    transformer_xl = posenc.create("transformer_xl", d_model=H * D, n_heads=H)
    assert not flex._is_elementwise(Call.of(q, q, q, transformer_xl, run, run))


def test_distances_between_scattered_positions():
    """The bias reshapes what it is asked for: Inductor would compute it wrongly, without a word."""
    at = Positions.at(torch.tensor([[0, 3, 4, 9, 11]]))
    for encoding in (ALiBi(H), T5(H), Stack(RoPE(D), ALiBi(H)), ALiBi(1).heads(0, 1)):
        q = torch.zeros(1, 1 if encoding.configuration.get("n_heads") == 1 else H, 5, D)
        with pytest.raises(ValueError, match="more than arithmetic and look-ups of single pairs"):
            attend(q, q, q, encoding, at, impl="flex")


class Summing(PositionalEncoding):
    """A bias that is no function of its own pair alone."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def bias(self, q, k, at_q, at_k):
        term = q[..., :1] + k[..., 0][:, :, None, :]
        return lambda b, h, i, j: self.how(term, b, h, i, j)


@pytest.mark.parametrize(
    ("how", "plain"),
    [
        (lambda term, b, h, i, j: term[b, h, i, j], True),
        (lambda term, b, h, i, j: term[b, h, i, j] * 2.0 + torch.tensor(1.0), True),
        (lambda term, b, h, i, j: (2 * term)[b, h, i, j], False),
        (lambda term, b, h, i, j: term[b, h, i, j].reshape(-1).cumsum(0).view(term[b, h, i, j].shape), False),
        (lambda term, b, h, i, j: torch.stack([term[b, h, i, j]]).sum(0), False),
    ],
)
def test_only_arithmetic_on_single_pairs_goes_into_the_kernel(how, plain):
    at, q = Positions.arange(1, 5), torch.zeros(1, H, 5, D)
    assert (flex.refuses_call(Call.of(q, q, q, Summing(how), at, at, True)) is None) == plain


def test_other_devices():
    q = torch.zeros(1, H, 5, D, device="meta")
    at = Positions.arange(1, 5)
    assert "not on meta" in flex.refuses_call(Call.of(q, q, q, NoPE(), at, at))


def test_auto_waits_for_no_compiler_on_the_cpu():
    at = Positions.arange(1, 5)
    assert "flex" in BACKENDS
    for encoding in (NoPE(), ALiBi(H), Shaw(D, values=False)):
        q = torch.zeros(1, H, 5, D)
        call = Call.of(q, q, q, encoding, at, at)
        assert not flex.suits(call)
        assert backend_of(call) is not flex
        assert backend_of(call, "flex") is flex


def test_on_cuda_a_bias_is_for_flex_and_none_for_the_plain_kernel():
    """The queries on CUDA are fake: choosing reads their shape, dtype and device."""
    with FakeTensorMode():
        q = torch.zeros(1, H, 5, 16, device="cuda")
    at = Positions.arange(1, 5)
    with torch.no_grad():
        for encoding, backend in (
            (ALiBi(H), "flex"),
            (Stack(RoPE(16), T5(H)), "flex"),
            (RoPE(16), "sdpa"),
            (NoPE(), "sdpa"),
        ):
            assert backend_of(Call.of(q, q, q, encoding, at, at)) is BACKENDS[backend]


def test_no_compiler_is_said(monkeypatch):
    """Not a longer way round in silence."""
    from torch._inductor import config, cpp_builder

    monkeypatch.setattr(config.cpp, "cxx", ("no-such-compiler",))
    monkeypatch.setattr(cpp_builder, "cpp_compiler_search", cpp_builder.cpp_compiler_search.__wrapped__)
    flex._compiled.cache_clear()
    q = torch.zeros(1, H, 7, D)
    with pytest.raises(RuntimeError, match=r"impl='flex': on the CPU it needs a C\+\+ compiler"):
        attend(q, q, q, NoPE(), Positions.arange(1, 7), impl="flex")


@needs_compiler
@pytest.mark.acceptance
def test_too_many_shapes_are_refused_not_computed_unfused(monkeypatch):
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", 1)
    for length in (5, 6):
        q = torch.zeros(1, H, length, D)
        if length == 5:
            attend(q, q, q, NoPE(), Positions.arange(1, length), impl="flex")
            continue
        with pytest.raises(RuntimeError, match="impl='flex': compiled for as many shapes"):
            attend(q, q, q, NoPE(), Positions.arange(1, length), impl="flex")


@pytest.mark.parametrize("encoding", one_in(3, [ALiBi(H), NoPE(), T5(H)]), ids=lambda encoding: type(encoding).__name__)
def test_its_code_is_one_graph_over_lengths(encoding):
    """As on CUDA inside a compiled model: traced here, and run without a kernel."""
    graphs = []

    def counting(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(
        lambda q, at: flex.attend(Call.of(q, q, q, encoding, at, at, True)), backend=counting, fullgraph=True, dynamic=True
    )
    for length in (8, 16, 24, 40, 64):
        q, at = torch.from_numpy(draw(1, 1, H, length, D)).float(), Positions.arange(1, length)
        torch.testing.assert_close(compiled(q, at), attend(q, q, q, encoding, at, impl="reference"))
    assert len(graphs) == 1
    assert any("flex_attention" in str(node.target) for node in graphs[0].graph.nodes)
