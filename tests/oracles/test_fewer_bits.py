"""Keys and values stored in bfloat16, float16 and int8, against rounding by the formula and the exact cache.

int8 by the formula: n = round(x / scale), scale = max|x| / 127 over the channels of one head and token.
"""

import pytest
import torch

from posenc import Attention, Positions, create

SIZES = {"d_model": 32, "n_heads": 4, "d_head": 8, "max_positions": 64}
PADDED = torch.tensor([[0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
LARGEST = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.int8: 1 / 254}  # of |x|; of max|x| in int8


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def decoded(name="rope", dtype=torch.float32):
    torch.manual_seed(0)
    module, x = Attention(32, 4, create(name, **SIZES)).to(dtype), torch.randn(2, 14, 32, dtype=dtype)
    _, cache = module.decode(x[:, :6], Positions.from_mask(PADDED))
    return module, x, cache


def rounded(x, dtype):
    """By loops over rows, heads and tokens."""
    if dtype is not torch.int8:
        return x.to(dtype).to(x.dtype)
    out = torch.empty_like(x)
    for index in torch.cartesian_prod(*map(torch.arange, x.shape[:3])).tolist():
        row = x[tuple(index)].double()
        scale = row.abs().max() / 127
        out[tuple(index)] = ((row / scale).round() * scale).to(x.dtype)
    return out


@pytest.mark.parametrize("dtype", LARGEST, ids=str)
def test_numbers_are_rounded_by_the_formula_and_no_further_off_than_it_says(dtype):
    module, x, cache = decoded()
    stored = cache.stored_in(dtype)
    _, cache = module.decode(x[:, 6:9], Positions.arange(2, 3, cache.lengths), cache)
    _, stored = module.decode(x[:, 6:9], Positions.arange(2, 3, stored.lengths), stored)
    assert stored.k.dtype == stored.v.dtype == dtype
    for got, exact in zip(stored.read(), (cache.k, cache.v), strict=True):
        assert got.dtype == torch.float32
        torch.testing.assert_close(got, rounded(exact, dtype), rtol=1e-6, atol=1e-8)
        size = exact.abs().amax(-1, keepdim=True) if dtype is torch.int8 else exact.abs()
        assert bool(((got - exact).abs() <= LARGEST[dtype] * size * 1.0001).all())
    size = cache.k.shape[-1] * dtype.itemsize + 4 * (dtype is torch.int8)
    assert stored.k.nbytes == cache.k.shape[0] * cache.k.shape[1] * cache.k.shape[2] * size


@pytest.mark.parametrize("dtype", LARGEST, ids=str)
@pytest.mark.parametrize("kind", ["growing", "static", "paged", "ring", "static ring"])
def test_every_kind_of_memory_reads_what_a_cache_of_rounded_keys_reads(kind, dtype):
    """So that scales go with their tokens, whatever is done: rows of other lengths, rolled back, reordered, dropped."""
    module, x, cache = decoded("alibi", torch.float64)

    def in_memory(cache):
        if "ring" in kind:
            cache = cache.ring(5, sinks=1)
        return (
            cache.paged(4, 12)
            if kind == "paged"
            else cache.static(16)
            if "static" in kind and "ring" not in kind
            else (cache.static() if kind == "static ring" else cache)
        )

    def step(memory, tokens, lengths):
        memory = memory.reserve([n + tokens.shape[1] for n in lengths]) if kind == "paged" else memory
        return module.decode(tokens, Positions.arange(2, tokens.shape[1], torch.tensor(lengths)), memory)

    stored = in_memory(cache.crop([5, 3]).stored_in(dtype))
    out, stored = step(stored, x[:, 6:9], [5, 3])
    if "ring" not in kind:
        stored = stored.crop([7, 4])
        stored = stored.reorder([1, 0])
        out, stored = step(stored, x[:, 9:10], [4, 7])
        heads = [torch.cat([x[0, 1:6], x[0, 6:8]]), torch.cat([x[1, :3], x[1, 6:7]])]
        heads = [torch.cat([heads[1], x[0, 9:10]]), torch.cat([heads[0], x[1, 9:10]])]
    else:
        heads = [torch.cat([x[0, 1:6], x[0, 6:9]])[[0, 4, 5, 6, 7]], torch.cat([x[1, :3], x[1, 6:9]])[[0, 2, 3, 4, 5]]]
    for row, tokens in enumerate(heads):
        total = len(tokens)
        q, k, v = (module._split(linear(tokens[None])) for linear in (module.query, module.key, module.value))
        k, v = rounded(k, dtype), rounded(v, dtype)
        ahead = total - 1 - torch.arange(total)
        if "ring" in kind:
            ahead[0] = (7, 5)[row]  # the sink stands where it stood
        slopes = 2.0 ** (-2.0 * torch.arange(1, 5, dtype=torch.float64))
        scores = (q[0, :, -1:] @ k[0].transpose(1, 2))[:, 0] / 8**0.5 - slopes[:, None] * ahead
        expected = module.out(torch.einsum("hj,hjd->hd", scores.softmax(-1), v[0]).flatten())
        torch.testing.assert_close(out[row, -1], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["rope", "yarn", "alibi"])
def test_kept_tokens_are_numbered_anew_and_rounded_once_more(name):
    _, _, cache = decoded(name)
    keep = torch.tensor([[True, True, False, True, True, True]])
    moved, exact = cache.stored_in(torch.int8).evict(keep, renumber=True), cache.evict(keep, renumber=True)
    assert torch.equal(moved.at.coords, exact.at.coords)
    apart = (moved.read()[0] - exact.k).abs().max() / exact.k.abs().max()
    assert 0 < apart <= 2 / 254 * 1.5  # a pair turns, so that an error of both its channels may come to one


def test_one_graph_over_all_steps_of_a_static_cache_in_int8():
    torch._dynamo.reset()
    module, x, cache = decoded("alibi")
    step = torch.compile(module.decode, backend="eager", fullgraph=True)
    static, growing = cache.stored_in(torch.int8).static(16), cache.stored_in(torch.int8)
    for n in range(6, 9):
        at = Positions.decode(growing.lengths)
        expected, growing = module.decode(x[:, n : n + 1], at, growing)
        out, static = step(x[:, n : n + 1], at, static)
        torch.testing.assert_close(out, expected)


def test_cross_attention_reads_a_memory_in_fewer_bits():
    torch.manual_seed(0)
    module, x, memory = Attention(32, 4, create("nope")), torch.randn(1, 3, 32), torch.randn(1, 5, 32)
    expected, cache = module.decode(x, Positions.arange(1, 3), None, memory, Positions.arange(1, 5))
    out, _ = module.decode(x, Positions.arange(1, 3), cache.stored_in(torch.int8))
    assert 0 < float((out - expected).abs().max()) < 0.02 * float(expected.abs().max())


def test_zeros_stay_zeros():
    module, x, cache = decoded("nope")
    none = type(cache)(torch.zeros_like(cache.k), torch.zeros_like(cache.v), cache.at, cache.encoding)
    assert not any(bool(part.any()) for part in none.stored_in(torch.int8).read())
    module.decode(x[:, :1], Positions.decode([5, 4]), none.stored_in(torch.int8))


def test_what_it_refuses():
    module, x, cache = decoded("xpos")
    for dtype in (torch.float16, torch.int8):
        with pytest.raises(ValueError, match=r"^dtype: pairs of a key of XPos\(.* grow apart .*; store torch.bfloat16"):
            cache.stored_in(dtype)
    cache.stored_in(torch.bfloat16)
    module, x, cache = decoded("rope")
    for wrong in (torch.float64, torch.int16, "int8", None):
        with pytest.raises((ValueError, TypeError), match=r"^dtype: expected"):
            cache.stored_in(wrong)
    stored = cache.stored_in(torch.int8)
    with pytest.raises(ValueError, match=r"for keys in torch.int8 already"):
        stored.stored_in(torch.bfloat16)
    with pytest.raises(ValueError, match=r"^cache: a static cache stays as it is stored"):
        cache.static(8).stored_in(torch.int8)
    with pytest.raises(TypeError, match=r"^k: expected torch.float32 on cpu as in the cache, got .*float64"):
        module.double().decode(x[:, :1].double(), Positions.decode([5, 4]), stored)
    with torch.enable_grad():
        module, x, cache = decoded("rope")
        with pytest.raises(RuntimeError, match=r"^cache: int8 has no gradients"):
            cache.stored_in(torch.int8)
        out, _ = module.decode(x[:, :1], Positions.decode([5, 4]), cache.stored_in(torch.bfloat16))
        out.sum().backward()
        assert module.key.weight.grad.isfinite().all()
