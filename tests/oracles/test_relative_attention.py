"""Attention with vectors of the distance, by blocks of queries, against loops over queries and keys in fp64.

logits_ij = (q_i·k_j + p_i·keys_r) · scale,   out_i = Σ_j softmax_ij · (v_j + values_r),   r = clip(row - i + j, 0, R-1)
"""

import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch

from posenc import PositionalEncoding, Positions, attend, attend_rotated
from posenc.attention.backends import BACKENDS
from posenc.attention.backends import relative as backend
from posenc.attention.backends.relative import attention as module
from posenc.attention.call import Call
from posenc.attention.plan import backend_of, reason
from posenc.combined import Stack
from posenc.encodings.alibi import ALiBi
from posenc.encodings.cope import CoPE
from posenc.encodings.of_families.funnel import Funnel
from posenc.encodings.shaw import Shaw
from posenc.encodings.transformer_xl import TransformerXL
from posenc.encodings.xlnet import XLNet
from sampling import one_in, only

from .by_hand import add, attention, close, draw, near_once_rounded, products

OPERATOR = torch.ops.posenc.relative_attention
SCALE = 0.3


def inputs(b=2, h=4, g=2, i=7, j=7, d=3, dv=3, c=2, rows=5, table=(1, 1), values=True, row=4, seen=0, seed=0):
    """Arrays for the operator: `table` is how many tables there are for the batch and for the heads."""
    sizes = [(b, h, i, d), (b, g, j, d), (b, g, j, dv), (b, h, i, c), (*table, rows, c), (*table, rows, dv)]
    arrays = [draw(seed + n, *size) for n, size in enumerate(sizes)]
    return [*arrays[:5], arrays[5] if values else None, np.atleast_1d(row), None if seen is None else np.atleast_1d(seen)]


def by_loops(q, k, v, p, keys, values, row, seen, scale=SCALE):
    def of(vector, b):
        return vector[b if len(vector) > 1 else 0]

    def at(b, h, i, j):
        return (
            b if keys.shape[0] > 1 else 0,
            h if keys.shape[1] > 1 else 0,
            max(0, min(keys.shape[2] - 1, of(row, b) - i + j)),
        )

    logits = add(products(q, k, scale), lambda b, h, i, j: float(p[b, h, i] @ keys[at(b, h, i, j)]) * scale)
    addend = None if values is None else lambda b, h, i, j: values[at(b, h, i, j)]
    return attention(logits, v, lambda b, i, j: seen is None or j <= i + of(seen, b), addend)


def by_tensors(q, k, v, p, keys, values, row, seen, scale=SCALE):
    """The same by gathering every pair, for gradients: torch differentiates it."""
    b, h, i, j = *q.shape[:3], k.shape[2]
    k, v = (x.repeat_interleave(h // k.shape[1], dim=1) for x in (k, v))
    grid = torch.arange(j) - torch.arange(i)[:, None]
    index = (row[:, None, None] + grid).clamp(0, keys.shape[2] - 1).expand(b, i, j)

    def pairs(table):
        return torch.stack([table.expand(b, h, -1, -1)[n][:, index[n]] for n in range(b)])  # [b, h, i, j, c]

    logits = (torch.einsum("bhid,bhjd->bhij", q, k) + torch.einsum("bhic,bhijc->bhij", p, pairs(keys))) * scale
    may = torch.ones(1, 1, i, j, dtype=torch.bool) if seen is None else (grid <= seen[:, None, None])[:, None]
    probs = logits.masked_fill(~may, -torch.inf).softmax(-1).masked_fill(~may, 0.0)
    out = torch.einsum("bhij,bhjd->bhid", probs, v)
    return out if values is None else out + torch.einsum("bhij,bhijd->bhid", probs, pairs(values))


def tensors(arrays, grad=False):
    made = [None if x is None else torch.from_numpy(x) for x in arrays]
    return [x.requires_grad_() if grad and x is not None and x.is_floating_point() else x for x in made]


CASES = {
    "square": {},
    "without values": {"values": False},
    "both ways": {"seen": None},
    "both ways without values": {"seen": None, "values": False},
    "a table for every head": {"table": (1, 4), "values": False},
    "a table for every row": {"table": (2, 1), "row": [4, 1]},
    "a table for every row alike": {"table": (2, 1)},
    "a table for every row and head": {"table": (2, 4), "values": False},
    "rows elsewhere": {"row": [9, -3], "seen": [2, 0], "i": 5},
    "rows see alike, stand elsewhere": {"row": [2, 5]},
    "rows stand alike, see otherwise": {"seen": [-2, 3]},
    "nobody sees anything": {"seen": -7},
    "the first queries see nothing": {"seen": -3, "values": False},
    "one row sees nothing": {"seen": [-9, 0]},
    "far before the table": {"row": -20, "seen": None},
    "far after the table": {"row": 40, "seen": None},
    "whole table": {"rows": 13, "row": 6, "seen": None, "values": False},
    "causal half of a table": {"rows": 7, "row": 6, "values": False},
    "one row in the table": {"rows": 1},
    "chunk": {"i": 3, "j": 9, "row": 8, "seen": 6},
    "fewer keys than queries": {"i": 9, "j": 4, "row": 2, "seen": 1},
    "one query": {"i": 1, "seen": 6},
    "one key": {"j": 1, "seen": None},
    "wide values": {"dv": 5},
    "wide values, none of the distance": {"dv": 5, "values": False},
    "one head of keys": {"g": 1, "values": False},
    "six heads, three of keys": {"h": 6, "g": 3, "table": (1, 6), "b": 3, "i": 4},
    "a head of keys each": {"g": 4, "b": 1},
}


BLOCKS = [(1, 1), (3, 50), (64, 2**18)]


@pytest.fixture(params=BLOCKS, ids="block {0[0]} room {0[1]}".format)
def block(request, monkeypatch):
    """Queries and pairs at a time: one head and query, some, all."""
    monkeypatch.setattr(module, "BLOCK", request.param[0])
    monkeypatch.setattr(module, "ROOM", request.param[1])


@pytest.mark.parametrize("case", CASES)
def test_the_formula_by_loops(case, block):
    arrays = inputs(**CASES[case])
    close(OPERATOR(*tensors(arrays), SCALE), by_loops(*arrays))


@pytest.mark.parametrize("case", CASES)
def test_gradients_of_everything(case, block):
    arrays = inputs(**CASES[case])
    mine, theirs = tensors(arrays, grad=True), tensors(arrays, grad=True)
    expected = by_tensors(*theirs)
    close(expected, by_loops(*arrays))
    got = OPERATOR(*mine, SCALE)
    upstream = torch.from_numpy(draw(99, *got.shape))
    wanted = [n for n in range(6) if mine[n] is not None]
    found = torch.autograd.grad(got, [mine[n] for n in wanted], upstream)
    right = torch.autograd.grad(expected, [theirs[n] for n in wanted], upstream)
    for one, other in zip(found, right, strict=True):
        close(one, other)


@pytest.mark.parametrize("case", ["square", "without values", "both ways", "rows elsewhere", "a table for every head"])
def test_gradients_by_differences(case, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 2)
    small = {"b": 2, "h": 2, "g": 1, "i": 4, "j": 4, "d": 2, "dv": 2, "rows": 3} | CASES[case]
    small |= {"table": (1, 2)} if "head" in case else {}
    given = tensors(inputs(**small), grad=True)
    assert torch.autograd.gradcheck(lambda *x: OPERATOR(*x, SCALE), given, fast_mode=True)


@pytest.mark.parametrize(("dtype", "bits"), [(torch.float32, 24), (torch.bfloat16, 8), (torch.float16, 11)])
@pytest.mark.parametrize("case", ["square", "without values", "wide values"])
def test_one_rounding(case, dtype, bits):
    """Arithmetic in fp32 whatever the dtype, queries in fp32 beside keys in 16 bits; the output has the dtype of v."""
    given = [x.to(dtype) if x is not None and x.is_floating_point() else x for x in tensors(inputs(**CASES[case]))]
    exact = by_loops(*(x if x is None else x.double().numpy() if x.is_floating_point() else x.numpy() for x in given))
    given[0] = given[0].float()
    got = OPERATOR(*given, SCALE)
    assert got.dtype == dtype
    near_once_rounded(got.double().numpy(), exact, bits, 4.0)


@pytest.mark.parametrize(("dtype", "bits"), [(torch.float32, 24), (torch.bfloat16, 8), (torch.float16, 11)])
def test_gradients_are_rounded_once(dtype, bits, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 2)
    given = [x.to(dtype) if x is not None and x.is_floating_point() else x for x in tensors(inputs())]
    mine = [x.clone().requires_grad_() if x.is_floating_point() else x for x in given]
    wide = [x.double().requires_grad_() if x.is_floating_point() else x for x in given]
    upstream = torch.from_numpy(draw(99, *given[0].shape)).to(dtype)
    found = torch.autograd.grad(OPERATOR(*mine, SCALE), mine[:6], upstream)
    right = torch.autograd.grad(by_tensors(*wide), wide[:6], upstream.double())
    assert all(x.dtype == dtype for x in torch.ops.posenc.relative_attention_backward(upstream, *given, SCALE))
    for one, other in zip(found, right, strict=True):
        near_once_rounded(one.double().numpy(), other.numpy(), bits, 8.0)


def test_the_same_bits_every_time():
    given, runs = tensors(inputs(i=130, j=130, rows=9), grad=True), []
    for _ in range(2):
        out = OPERATOR(*given, SCALE)
        runs.append([out, *torch.autograd.grad(out.sum(), given[:6])])
    assert all(map(torch.equal, *runs))


@pytest.mark.parametrize("case", CASES)
def test_every_entry_is_written(case):
    """New memory holds NaN: nothing is read that nobody wrote."""
    given = tensors(inputs(**CASES[case]), grad=True)
    wanted = [x for x in given[:6] if x is not None]

    def run():
        out = OPERATOR(*given, SCALE)
        return [out, *torch.autograd.grad(out.sum(), wanted)]

    plain, strict = run(), torch.are_deterministic_algorithms_enabled()
    try:
        torch.use_deterministic_algorithms(True)
        assert torch.empty(9).isnan().all()
        poisoned = run()
    finally:
        torch.use_deterministic_algorithms(strict)
    assert all(map(torch.equal, plain, poisoned))


def test_tables_that_do_not_fit():
    given = tensors(inputs())
    given[5] = given[5][:, :, :-1]
    with pytest.raises(ValueError, match=r"keys, values: expected .* got \[1, 1, 5, 2\] and \[1, 1, 4, 3\]"):
        OPERATOR(*given, SCALE)


@pytest.mark.parametrize("case", CASES)
def test_transforms_and_second_derivatives(case):
    """jvp, grad, vmap and the Hessian: of the operator by torch.func and by backward, of gathered pairs by torch."""
    given = tensors(inputs(**CASES[case]))
    which = [n for n, x in enumerate(given) if x is not None and x.is_floating_point()]
    leaves = [given[n].clone().requires_grad_() for n in which]
    plain, along = [given[n] for n in which], [torch.cos(given[n] + 1) for n in which]

    def within(function):
        return lambda *some: function(*(some[which.index(n)] if n in which else x for n, x in enumerate(given)), SCALE)

    of, pairs, everything = within(OPERATOR), within(by_tensors), tuple(range(len(which)))
    equal = lambda got, expected: torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11)  # noqa: E731
    square = lambda function: lambda *some: function(*some).square().sum()  # noqa: E731
    equal(torch.func.jvp(of, tuple(plain), tuple(along)), torch.func.jvp(pairs, tuple(plain), tuple(along)))
    expected = torch.autograd.grad(square(pairs)(*leaves), leaves)
    equal(torch.func.grad(square(of), argnums=everything)(*plain), expected)
    hessians = []
    for function in (of, pairs):
        gradients = torch.autograd.grad(square(function)(*leaves), leaves, create_graph=True)
        equal(gradients, expected)
        total = sum((g * a).sum() for g, a in zip(gradients, along, strict=True))
        hessians.append(torch.autograd.grad(total, leaves))
    equal(*hessians)
    equal(torch.func.jvp(torch.func.grad(square(of), argnums=everything), tuple(plain), tuple(along))[1], hessians[1])
    twice = [torch.stack([x, x + 1]) for x in plain]
    equal(torch.func.vmap(of)(*twice), torch.stack([of(*(x[n] for x in twice)) for n in (0, 1)]))


@pytest.mark.parametrize(
    "case", only(["square", "without values", "both ways", "rows elsewhere", "a table for every row"], "rows elsewhere")
)
def test_registered_properly(case):
    torch.library.opcheck(OPERATOR, (*tensors(inputs(**CASES[case]), grad=True), SCALE))


# Encodings through attend --------------------------------------------------------------------------------------------


def filled(encoding):
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.double().parameters()):
            parameter.copy_(torch.from_numpy(draw(seed + 30, *parameter.shape)))
    return encoding


ENCODINGS = {
    "shaw": lambda: Shaw(4, max_distance=3),
    "shaw keys": lambda: Shaw(4, max_distance=3, values=False),
    "shaw zero": lambda: Shaw(4, max_distance=2, right=1, outside="zero"),
    "shaw right": lambda: Shaw(4, max_distance=4, right=1),
    "shaw 0": lambda: Shaw(4, max_distance=0),
    "txl": lambda: TransformerXL(6, 4, d_head=4),
    "txl interleaved": lambda: TransformerXL(6, 4, d_head=4, layout="interleaved", base=50.0),
}
PLACES = {
    "square": (Positions.arange(2, 7), None),
    "rows elsewhere": (Positions.arange(2, 7, torch.tensor([5, 0])), None),
    "chunk": (Positions.arange(2, 3, 6), Positions.arange(2, 9)),
    "chunk of rows elsewhere": (Positions.arange(2, 3, torch.tensor([6, -2])), Positions.arange(2, 9)),
    "keys elsewhere": (Positions.arange(2, 4, 3), Positions.arange(2, 4, torch.tensor([3, 0]))),
    "before all keys": (Positions.arange(2, 5, -30), Positions.arange(2, 3)),
    "after all keys": (Positions.arange(2, 5, 30), Positions.arange(2, 3)),
    "one query": (Positions.arange(2, 1, 5), Positions.arange(2, 6)),
    "one query of rows elsewhere": (Positions.arange(2, 1, torch.tensor([5, 3])), Positions.arange(2, 6)),
    "one key": (Positions.arange(2, 6), Positions.arange(2, 1, 2)),
    "coordinates shifted, order not": (Positions.arange(2, 5).shift(2), Positions.arange(2, 5)),
}


@pytest.mark.parametrize(  # each place of each encoding in one of the blocks, and in all of them in make acceptance
    ("block", "name", "place", "causal"),
    one_in(3, itertools.product(BLOCKS, ENCODINGS, PLACES, (True, False))),
    indirect=["block"],
    ids=str,
)
def test_encodings_agree_with_the_definition(name, place, causal, block):
    """Output and all gradients; the definition is held to loops in test_shaw.py and test_transformer_xl.py."""
    encoding, (at_q, at_k) = filled(ENCODINGS[name]()), PLACES[place]
    at_k = at_q if at_k is None else at_k
    given = [
        torch.from_numpy(draw(seed, 2, heads, at.length, 4)).requires_grad_()
        for seed, (heads, at) in enumerate(((4, at_q), (2, at_k), (2, at_k)))
    ]
    found = {}
    for impl in ("relative", "reference"):
        out = attend(*given, encoding, at_q, at_k, causal=causal, impl=impl)
        wanted = [*given, *encoding.parameters()]
        found[impl] = [out, *torch.autograd.grad(out.square().sum(), wanted)]
    for mine, theirs in zip(found["relative"], found["reference"], strict=True):
        close(mine, theirs.detach(), atol=1e-11)


def test_far_positions_in_fp32():
    """The vectors are those of distances, whatever the positions."""
    encoding = filled(TransformerXL(6, 4, d_head=4)).float()
    q, k, v = (torch.from_numpy(draw(seed, 1, 4, 9, 4)).float() for seed in range(3))
    near, far = (attend(q, k, v, encoding, Positions.arange(1, 9, start), impl="relative") for start in (0, 10**9))
    assert torch.equal(near, far)


def test_who_is_served():
    at, q = Positions.arange(1, 4), torch.zeros(1, 4, 4, 4)
    for encoding in (Shaw(4), Shaw(4, values=False), TransformerXL(8, 4, d_head=4)):
        assert backend_of(Call.of(q, q, q, encoding, at, at, True)) is backend
        for other in (Positions.from_mask(torch.ones(1, 4)), Positions.packed([0, 2, 4]), Positions.at(at.coords)):
            for pair in ((at, other), (other, at)):
                assert backend_of(Call.of(q, q, q, encoding, *pair, True)) is not backend
                with pytest.raises(ValueError, match=r"impl='relative' cannot express .* positions are not consecutive"):
                    attend(q, q, q, encoding, *pair, impl="relative")
    real = at.shift(0.5)
    for pair in ((real, at), (at, real)):
        assert "not whole numbers" in reason(backend, Call.of(q, q, q, TransformerXL(8, 4, d_head=4), *pair, True))
    assert "on meta" in reason(backend, Call.of(q.to("meta"), q.to("meta"), q.to("meta"), Shaw(4), at, at, True))
    for encoding in (PositionalEncoding(), CoPE(4), Stack(Shaw(4), ALiBi(4)), XLNet(8, 4), Funnel(8, 4)):
        assert backend.refuses(encoding, encoding.structure()) == "it declares no vectors of the distance"


def test_subclasses_that_change_what_is_added_are_refused():
    class Bias(Shaw):
        def bias(self, q, k, at_q, at_k):
            return None

    class Value(Shaw):
        def finish(self, scores):
            return PositionalEncoding.finish(self, scores)

    class Said(Bias):
        def structure(self):
            return Shaw.structure(self)

    class NotAnEncoding:
        def finish(self, scores):
            return PositionalEncoding.finish(self, scores)

    class Mixed(NotAnEncoding, Shaw):
        pass

    class Below(Value):
        pass

    for kind in (Bias, Value, Mixed, Below):
        assert backend.refuses(kind(4), kind(4).structure()) == "it declares no vectors of the distance"
    assert backend.refuses(Said(4), Said(4).structure()) is None


# Compilers and memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", only(["shaw", "txl"], "txl"))
def test_one_graph_forward_and_backward(name):
    encoding, graphs = filled(ENCODINGS[name]()), []

    def counting(graph, _):
        graphs.append(graph)
        return graph.forward

    def run(q, k, v, at_q, at_k):
        return attend(q, k, v, encoding, at_q, at_k, impl="relative")

    torch._dynamo.reset()
    compiled = torch.compile(run, backend=counting, fullgraph=True, dynamic=True)
    for length, keys in ((8, 12), (24, 70), (65, 129)):
        at_q, at_k = Positions.arange(2, length, keys - length), Positions.arange(2, keys)
        given = [
            torch.from_numpy(draw(seed, 2, heads, size, 4)).requires_grad_()
            for seed, (heads, size) in enumerate(((4, length), (2, keys), (2, keys)))
        ]
        outputs = [one(*given, at_q, at_k) for one in (compiled, run)]
        close(outputs[0], outputs[1].detach())
        for mine, theirs in zip(*(torch.autograd.grad(out.sum(), given) for out in outputs), strict=True):
            close(mine, theirs)
    assert len(graphs) == 1


@pytest.mark.parametrize("name", ["shaw", "txl"])
def test_export(name):
    """What this backend computes in eager code is plain torch in an exported graph; asked for by name, it is refused."""

    class Model(torch.nn.Module):
        def __init__(self, impl):
            super().__init__()
            self.encoding, self.impl = filled(ENCODINGS[name]()), impl

        def forward(self, q, k, v, at):
            return attend_rotated(q, k, v, self.encoding, at, at, impl=self.impl)

    given = [torch.from_numpy(draw(seed, 2, 4, 6, 4)) for seed in range(3)]
    at, by_name = Positions.arange(2, 6), Model("relative")
    program = torch.export.export(Model("auto"), (*given, at))
    called = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert called
    assert not [target for target in called if "posenc" in target]
    close(program.module()(*given, at), by_name(*given, at).detach())
    with pytest.raises(ValueError, match=r"impl='relative' cannot express .* a graph for other runtimes cannot contain"):
        torch.export.export(by_name, (*given, at))


MEMORY = """
import resource, sys, torch
from posenc import Positions, attend
from posenc.encodings.shaw import Shaw
from posenc.encodings.transformer_xl import TransformerXL
torch.set_num_threads(1)
name, length = sys.argv[1], int(sys.argv[2])
encoding = Shaw(16) if name == "shaw" else TransformerXL(64, 4)
def step(length):
    q, k, v = (torch.randn(1, 4, length, 16, requires_grad=True) for _ in range(3))
    attend(q, k, v, encoding, Positions.arange(1, length), impl="relative").sum().backward()
step(64)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
step(length)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ["shaw", "txl"])
def test_memory_grows_with_keys_not_with_pairs(name):
    """4 heads of 4096 queries × keys are 256 MiB, forward and backward hold several; a tensor of the inputs is 1 MiB."""
    run = subprocess.run([sys.executable, "-c", MEMORY, name, "4096"], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 64, f"{run.stdout} MiB"
    assert BACKENDS["relative"] is backend
