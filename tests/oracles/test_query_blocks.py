"""Long causal rows of Wall and PaTH by blocks of queries, against recursions from token to token in numpy."""

import math

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from posenc import Attention, Positions, Stack, attend, create
from posenc.attention.backends import BACKENDS
from posenc.attention.call import Call
from posenc.attention.plan import backend_of
from posenc.checking import laws
from posenc.encodings import path, wall
from posenc.encodings.bases.content_dependent import entries
from posenc.encodings.fox import FoX
from posenc.encodings.path import PaTH
from posenc.encodings.rope import RoPE
from posenc.encodings.wall import Wall

from .by_hand import close, draw

M, H, G, D = 7, 4, 2, 6
BLOCK = wall.BLOCK
LENGTHS = (2 * BLOCK, 2 * BLOCK + 37)  # blocks that are all full, and two with a part of a third
NAMES = ("wall", "path", "path_fox")


def made(name: str):
    """An encoding with drawn parameters in fp64. Gates stay near 1 and reflections near whole ones, so that keys are far
    from 0 after two blocks, and a query shows which blocks they have passed."""
    options = {} if name == "wall" else {"n_kv_heads": G}
    encoding = create(name, d_model=M, n_heads=H, d_head=D, **options).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(70 + seed, *parameter.shape)))
        for part in encoding if isinstance(encoding, Stack) else [encoding]:
            of_gate = (part.turn, part.turn_offset) if isinstance(part, PaTH) else (part.weight, part.offset)
            of_gate[0].mul_(0.2)
            of_gate[1].add_(6.0)
    return encoding


def tensors(length: int):
    """q, k, v of two key heads and the hidden states, in fp64."""
    sizes = ((2, H, length, D), (2, G, length, D), (2, G, length, D), (2, length, M))
    return [torch.from_numpy(draw(seed, *size)) for seed, size in enumerate(sizes, start=1)]


def log_gates(part, x: np.ndarray) -> np.ndarray:
    weight, offset = part.weight.detach().numpy(), part.offset.detach().numpy()
    return -np.logaddexp(0, -(x @ weight.T + offset))  # [b, t, gates]


def logits_of_wall(encoding, q, k, x, on=0) -> np.ndarray:
    """Keys fade from token to token. on=1: a token's own gate acts on its own key too, which is a mistake."""
    logits, keys = np.full((*q.shape[:3], q.shape[2]), -np.inf), np.zeros_like(k)
    gates = np.exp(log_gates(encoding, x)).reshape(*x.shape[:2], H, D)
    for t in range(q.shape[2]):
        keys = keys * gates[:, t, :, None]
        keys[:, :, t] = k[:, :, t] * (gates[:, t] if on else 1)
        logits[:, :, t, : t + 1] = np.einsum("bhd,bhjd->bhj", q[:, :, t], keys[:, :, : t + 1]) / math.sqrt(D)
    return logits


def logits_of_path(encoding, q, k, x, on=0) -> np.ndarray:
    """Keys are reflected from token to token. on=1: by a token's own reflection too, which is a mistake."""
    down, up, taps, turn, offset = (one.detach().numpy() for one in encoding.parameters())
    plain = np.pad(x @ down.T @ up.T, ((0, 0), (2, 0), (0, 0)))
    w = sum(plain[:, back : back + x.shape[1]] * taps[:, back] for back in range(3))
    w = (w / (1 + np.exp(-w))).reshape(*x.shape[:2], G, D)
    w = w / np.sqrt((w**2).sum(axis=-1, keepdims=True) + 1e-6)
    beta = 2 / (1 + np.exp(-(x @ turn.T + offset)))
    w, beta = np.repeat(w, H // G, axis=2), np.repeat(beta, H // G, axis=2)
    logits, keys = np.full((*q.shape[:3], q.shape[2]), -np.inf), np.zeros_like(k)
    for t in range(q.shape[2]):
        keys[:, :, t] = k[:, :, t] * on
        met = np.einsum("bhjd,bhd->bhj", keys, w[:, t]) * beta[:, t, :, None]
        keys = keys - met[..., None] * w[:, t, :, None]
        if not on:
            keys[:, :, t] = k[:, :, t]
        logits[:, :, t, : t + 1] = np.einsum("bhd,bhjd->bhj", q[:, :, t], keys[:, :, : t + 1]) / math.sqrt(D)
    return logits


def expected(encoding, q, k, v, x, on=0) -> np.ndarray:
    q, (k, v), x = q.numpy(), (np.repeat(one.numpy(), H // G, axis=1) for one in (k, v)), x.numpy()
    if isinstance(encoding, Wall):
        logits = logits_of_wall(encoding, q, k, x, on)
    elif isinstance(encoding, PaTH):
        logits = logits_of_path(encoding, q, k, x, on)
    else:
        first, fox = encoding
        sums = log_gates(fox, x).cumsum(axis=1).transpose(0, 2, 1)
        logits = logits_of_path(first, q, k, x, on) + sums[..., None] - sums[:, :, None]
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", NAMES)
def test_blocks_by_recursions(name, length):
    encoding, (q, k, v, x) = made(name), tensors(length)
    at = encoding.read_hidden(x, Positions.arange(2, length, 40))
    close(attend(q, k, v, encoding, at, impl="blocks"), expected(encoding, q, k, v, x), atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_the_recursions_see_a_step_too_many(name):
    encoding, (q, k, v, x) = made(name), tensors(LENGTHS[1])
    got = attend(q, k, v, encoding, encoding.read_hidden(x, Positions.arange(2, LENGTHS[1])), impl="blocks")
    with pytest.raises(AssertionError):
        close(got, expected(encoding, q, k, v, x, on=1), atol=1e-3)


@pytest.mark.parametrize(("name", "module"), [("wall", wall), ("path", path)])
def test_the_recursions_see_keys_that_go_on_by_the_wrong_block(name, module, monkeypatch):
    """The first two blocks stay right: the third is the first that sees keys which have passed a block."""
    carried = module.carried
    monkeypatch.setattr(module, "carried", lambda *given: carried(*given[:3], lambda held, n: given[3](held, n - 1)))
    encoding, (q, k, v, x) = made(name), tensors(LENGTHS[1])
    got = attend(q, k, v, encoding, encoding.read_hidden(x, Positions.arange(2, LENGTHS[1])), impl="blocks")
    right = expected(encoding, q, k, v, x)
    close(got[:, :, : 2 * BLOCK], right[:, :, : 2 * BLOCK], atol=1e-10)
    with pytest.raises(AssertionError):
        close(got, right, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_blocks_are_those_of_the_definition(name):
    encoding, (q, k, v, x) = made(name), tensors(LENGTHS[1])
    found = {}
    for impl in ("blocks", "reference"):
        inputs = [one.clone().requires_grad_() for one in (q, k, v, x)]
        out = attend(*inputs[:3], encoding, encoding.read_hidden(inputs[3], Positions.arange(2, LENGTHS[1])), impl=impl)
        found[impl] = torch.autograd.grad(
            (out * v.repeat_interleave(2, 1).flip(2)).sum(), [*inputs, *encoding.parameters()]
        )
    for mine, theirs in zip(found["blocks"], found["reference"], strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11 * max(1.0, theirs.abs().max().item()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_blocks_round_no_more_than_the_definition(name, dtype):
    encoding, inputs = made(name), [one.to(dtype) for one in tensors(LENGTHS[1])]
    low, errors = made(name).float(), {}
    at = encoding.read_hidden(inputs[3].double(), Positions.arange(2, LENGTHS[1]))
    exact = attend(*(one.double() for one in inputs[:3]), encoding, at, impl="reference")
    at = low.read_hidden(inputs[3], Positions.arange(2, LENGTHS[1]))
    for impl in ("blocks", "reference"):
        errors[impl] = (attend(*inputs[:3], low, at, impl=impl) - exact).abs().max().item()
    assert errors["blocks"] <= 2 * errors["reference"] + torch.finfo(dtype).eps


def test_closed_gates_do_not_overflow():
    """Sums fall by 30 000 within a row: exp of them apart from each other is 0 or infinite."""
    encoding, (q, k, v, x) = made("wall"), tensors(LENGTHS[1])
    x = 400 * x
    at = encoding.read_hidden(x, Positions.arange(2, LENGTHS[1]))
    assert encoding.sums(at).min() < -1000
    close(attend(q, k, v, encoding, at, impl="blocks"), expected(encoding, q, k, v, x), atol=1e-10)


class Largest(TorchDispatchMode):
    """The most entries that a tensor made inside has."""

    def __init__(self):
        super().__init__()
        self.entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.entries = max(
            [self.entries, *(one.numel() for one in torch.utils._pytree.tree_leaves(out) if torch.is_tensor(one))]
        )
        return out


@pytest.mark.parametrize("name", NAMES)
def test_blocks_hold_no_matrix_of_all_pairs(name):
    length = 8 * BLOCK
    encoding, (q, k, v, x) = made(name), (one[:1] for one in tensors(length))
    entries = {}
    for impl in ("blocks", "sdpa"):
        with torch.no_grad(), Largest() as largest:
            attend(q, k, v, encoding, encoding.read_hidden(x, Positions.arange(1, length)), impl=impl)
        entries[impl] = largest.entries
    assert entries["blocks"] <= H * length * BLOCK
    assert entries["sdpa"] >= H * length * length


@pytest.mark.parametrize("name", ["wall", "path"])
def test_decoding_after_a_long_row_is_the_prefill(name):
    layer = Attention(24, H, create(name, d_model=24, n_heads=H, d_head=6), n_kv_heads=H).double()
    length = LENGTHS[1]
    x = torch.from_numpy(draw(5, 1, length, 24))
    whole = layer(x, Positions.arange(1, length))
    _, cache = layer.decode(x[:, : length - 3], Positions.arange(1, length - 3))
    last, _ = layer.decode(x[:, length - 3 :], Positions.arange(1, 3, length - 3), cache)
    close(last, whole[:, length - 3 :].detach(), atol=1e-10)


def test_auto_takes_blocks_for_long_causal_rows_alone():
    def taken(encoding, at_q, at_k, causal=True):
        q = torch.zeros(1, H, at_q.length, D)
        return next(
            name for name, one in BACKENDS.items() if one is backend_of(Call.of(q, q, q, encoding, at_q, at_k, causal))
        )

    short, long, later = (Positions.arange(1, n) for n in (BLOCK, BLOCK + 1, BLOCK + 1))
    assert path.QUERIES == BLOCK
    assert [taken(Wall(M, H, D), at, at) for at in (short, long)] == ["sdpa", "blocks"]
    assert taken(Wall(M, H, D), long, later) == "sdpa"
    documents = Positions.packed([0, 50, BLOCK + 1])
    assert taken(Wall(M, H, D), documents, documents) == "sdpa"
    assert [taken(PaTH(M, H, D), at, at) for at in (short, long)] == ["sdpa", "blocks"]
    with_wall = (
        Stack(RoPE(D), Wall(M, H, D)),
        Stack(Wall(M, H, D), FoX(M, H)),
        Stack(Wall(M, H, D), create("cope", d_head=D)),
    )
    assert [taken(stack, long, long) for stack in with_wall] == ["blocks", "blocks", "reference"]
    assert taken(Stack(Wall(M, H, D), PaTH(M, H, D)), long, long) == "sdpa"
    q = torch.zeros(1, H, BLOCK + 1, D)
    with pytest.raises(ValueError, match=r"impl='blocks' cannot express .*the same consecutive tokens"):
        attend(q, q, q, Wall(M, H, D), documents, impl="blocks")


def test_entries_of_a_large_matrix_are_those_of_its_indices():
    """Ranges are views of the matrix; what counts otherwise, or is no range, is looked up."""
    matrix = torch.from_numpy(draw(8, 2, 2, 128, 130))
    rows, heads = torch.arange(2).view(-1, 1, 1, 1), torch.arange(2).view(1, -1, 1, 1)
    i, j = torch.arange(5, 128).view(1, 1, -1, 1), torch.arange(120).view(1, 1, 1, -1)
    of_pair = entries(matrix)
    assert of_pair(rows, heads, i, j).data_ptr() == matrix[:, :, 5:].data_ptr()
    for index in (
        (rows, heads, i, j),
        (rows, heads, i.flip(2), j),
        (rows.flip(0), heads, i, j),
        (rows[0], heads[0], i, 2 * j[..., :50]),
    ):
        expected = matrix.numpy()[tuple(one.numpy() for one in index)]
        close(of_pair(*index), expected, atol=0)
    close(of_pair(*map(torch.tensor, (1, 0, 7, 9))), matrix[1, 0, 7, 9], atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_no_queries_or_no_keys_give_zeros(name):
    encoding = made(name)
    for queries, keys in ((0, 0), (0, 3), (3, 0)):
        at_q, at_k = (
            encoding.read_hidden(torch.ones(2, n, M).double(), Positions.at(torch.arange(n)[None])) for n in (queries, keys)
        )
        q, k = (torch.ones(2, H, n, D, dtype=torch.float64) for n in (queries, keys))
        out = attend(q, k, k, encoding, at_q, at_q if queries == keys else at_k)
        assert out.shape == q.shape
        assert not out.any()


def test_the_law_of_the_module_holds_by_name():
    encoding = laws.draw_parameters(create("wall", d_model=32, n_heads=4, d_head=8))
    (found,) = laws.report(encoding, laws.Setting(impl="blocks"), ["module_equals_attend"])
    assert (found.verdict, found.backends) == ("passed", ("blocks",))


def test_a_subclass_with_another_bias_has_no_blocks():
    class Doubled(Wall):
        def bias(self, q, k, at_q, at_k):
            term = super().bias(q, k, at_q, at_k)
            return lambda b, h, i, j: 2 * term(b, h, i, j)

    assert Wall(M, H, D).structure().beyond == BLOCK
    assert Doubled(M, H, D).structure() is None
