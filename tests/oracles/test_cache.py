"""What is done to a cache: values that stay as they were, memory that is not copied or freed, and what is refused by name.

That the results are right is for the laws of checking/laws/caches.py.
"""

import copy

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from posenc import Attention, KeyValueCache, Positions, Stack, create
from posenc.attention.cache import RingCache, StaticCache

SIZES = {"d_model": 32, "n_heads": 4, "max_positions": 64}
PADDED = torch.tensor([[0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])


def decoded(name="rope", at=None, tokens=6, dtype=torch.float32):
    torch.manual_seed(0)
    module = Attention(32, 4, create(name, **SIZES)).to(dtype)
    x = torch.randn(2, tokens, 32, dtype=dtype)
    _, cache = module.decode(x, Positions.arange(2, tokens) if at is None else at)
    return module, x, cache


def parts(cache):
    at = cache.at
    return [cache.k, cache.v, at.coords, at.order, at.document, *(x for of in at.states.values() for x in of)]


@pytest.mark.parametrize(
    ("method", "given", "error", "message"),
    [
        ("crop", [6, 3], ValueError, r"^lengths: row 0 holds 5 tokens, expected 0 to 5, got 6"),
        ("crop", 5, ValueError, r"^lengths: row 1 holds 4 tokens, expected 0 to 4, got 5"),
        ("crop", -1, ValueError, r"^lengths: expected a whole number from 0, got -1"),
        ("crop", [1, 2, 3], ValueError, r"^lengths: expected one for each of 2 rows, got 3"),
        ("crop", [1.0, 2.0], ValueError, r"^lengths: expected integers"),
        ("reorder", [0, 2], IndexError, r"^rows: the cache has rows 0 … 1, got 2"),
        ("reorder", [-1], IndexError, r"^rows: the cache has rows 0 … 1, got -1"),
        (
            "evict",
            torch.ones(2, 5, dtype=torch.bool),
            ValueError,
            r"^keep: expected bool \[2, 6\] or \[1, 6\], .* \[2, 5\]",
        ),
        ("evict", torch.ones(2, 6), ValueError, r"^keep: expected a tensor .* of booleans, got Tensor torch.float32"),
        ("ring", 0, ValueError, r"^capacity: expected a whole number from 1"),
    ],
)
def test_bad_input_is_one_error_and_the_cache_is_as_it_was(method, given, error, message):
    _, _, cache = decoded("fox", Positions.from_mask(PADDED))
    before = [x.clone() for x in parts(cache)]
    with pytest.raises(error, match=message):
        getattr(cache, method)(given)
    assert all(map(torch.equal, parts(cache), before))


@pytest.mark.parametrize("name", ["rope", "fox", "selective_rope"])
def test_every_operation_leaves_the_cache_as_it_was(name):
    module, x, cache = decoded(name)
    before = [part.clone() for part in parts(cache)]
    keep = torch.tensor([[True, False, True, True, True, True]])
    for other in (cache.crop([2, 4]), cache.reorder([1, 1, 0]), cache.evict(keep), cache.ring(5, sinks=1)):
        module.decode(
            x[:1, :1].expand(len(other.k), -1, -1),
            Positions.decode(other.at.coords.masked_fill(other.at.document < 0, -1).amax(1) + 1),
            other,
        )
    assert all(map(torch.equal, parts(cache), before))


def test_a_crop_and_rows_that_follow_one_another_copy_no_key():
    _, _, cache = decoded()
    for other in (cache.crop(4), cache.crop([4, 2]), cache.reorder([0, 1]), cache.reorder([1])):
        assert other.k.untyped_storage().data_ptr() == cache.k.untyped_storage().data_ptr()
        assert other.v.untyped_storage().data_ptr() == cache.v.untyped_storage().data_ptr()
    assert cache.crop([4, 2]).k.shape[2] == 4  # columns that no row needs are cut off
    assert cache.crop(0).k.shape[2] == 0
    assert cache.crop([4, 2]).lengths.tolist() == [4, 2]


def test_what_is_dropped_gives_its_memory_back():
    _, _, cache = decoded()
    keep = torch.zeros(1, 6, dtype=torch.bool)
    keep[:, :3] = True
    kept = cache.evict(keep)
    assert kept.k.untyped_storage().nbytes() == cache.k.untyped_storage().nbytes() // 2
    holes = cache.crop([1, 3])  # rejected tokens are padding until they are dropped
    assert holes.evict(torch.ones(1, 3, dtype=torch.bool)).at.document.tolist() == [[0, -1, -1], [0, 0, 0]]


def test_the_memory_of_a_ring_is_its_capacity():
    module, x, cache = decoded("rope")
    ring = cache.ring(4, sinks=1)
    for n in range(6, 12):
        _, ring = module.decode(x[:, :1], Positions.decode([n, n]), ring)
        assert isinstance(ring, RingCache)
        assert ring.k.shape[2] == 4
        assert ring.k.untyped_storage().nbytes() == ring.k.nbytes
        assert ring.at.coords.tolist() == [[0, n - 2, n - 1, n]] * 2


def test_rows_of_a_ring_fill_up_by_themselves():
    module, x, cache = decoded("rope", Positions.from_mask(PADDED))
    ring = cache.ring(5)
    for n in range(3):
        _, ring = module.decode(x[:, :1], Positions.decode([5 + n, 4 + n]), ring)
        assert ring.k.shape[2] <= 5
    assert [sorted(row) for row in ring.at.coords.tolist()] == [[3, 4, 5, 6, 7], [2, 3, 4, 5, 6]]


def test_a_full_ring_is_not_rolled_back_and_says_what_to_do():
    module, x, cache = decoded("rope")
    ring = cache.ring(8).crop(5)
    assert ring.lengths.tolist() == [5, 5]
    with pytest.raises(ValueError, match=r"^lengths: a row of the ring is full, .* go back to the cache as it was"):
        cache.ring(6).crop(5)
    with pytest.raises(ValueError, match=r"^sinks: expected fewer than capacity=4"):
        cache.ring(4, sinks=4)
    with pytest.raises(ValueError, match=r"^mask: a ring has no columns that stay"):
        module.decode(x[:, :1], Positions.decode([5, 5]), ring, mask=torch.ones(1, 1, 1, 6, dtype=torch.bool))


def test_a_method_that_cannot_refuses_by_name():
    everything = torch.ones(1, 6, dtype=torch.bool)
    for name in ("sinusoidal", "floater", "learned"):
        _, _, cache = decoded(name)
        assert cache.evict(everything).lengths.tolist() == [6, 6]
        with pytest.raises(ValueError, match=r"^renumber: keys of \w+\(.* hold more than a rotation"):
            cache.evict(everything, renumber=True)
    last = everything.clone()
    last[:, -1] = False
    _, _, cache = decoded("fox")
    with pytest.raises(ValueError, match=r"^keep: the next token's state of FoX\(.* goes on from the latest 1 "):
        cache.evict(last)
    _, _, cache = decoded("path")
    last[:, -2:] = torch.tensor([False, True])
    with pytest.raises(ValueError, match=r"^keep: the next token's state of PaTH\(.* the latest 2 "):
        cache.evict(last)
    with pytest.raises(ValueError, match=r"^capacity: PaTH\(.* goes on from the 2 latest tokens of a row, got room for 1"):
        cache.ring(2, sinks=1)
    _, _, cache = decoded("pope")
    with pytest.raises((TypeError, ValueError), match=r"PoPE"):
        cache.evict(everything, renumber=True)


@pytest.mark.parametrize("name", ["rope", "xpos", "alibi", "t5", "nope", "yarn", "cope"])
def test_what_can_be_numbered_anew_is(name):
    """So that the law of dropped tokens is not held by refusing."""
    module, x, cache = decoded(name)
    keep = torch.tensor([[True, False, False, True, True, True], [True, True, False, True, True, True]])
    moved = cache.evict(keep, renumber=True)
    assert moved.at.coords.masked_fill(moved.at.document < 0, -1).tolist() == [[0, 1, 2, 3, -1], [0, 1, 2, 3, 4]]
    module.decode(x[:, :1], Positions.decode(moved.lengths), moved)


def test_a_temperature_needs_no_turn_of_keys():
    torch.manual_seed(0)
    encoding = Stack(create("rope", d_head=8), create("log_n", trained_length=4))
    module, x = Attention(32, 4, encoding), torch.randn(2, 7, 32)
    _, cache = module.decode(x[:, :6], Positions.arange(2, 6))
    keep = torch.tensor([[True, True, False, False, True, True]])
    out, _ = module.decode(x[:, 6:], Positions.decode([4, 4]), cache.evict(keep, renumber=True))
    expected = module(x[:, [0, 1, 4, 5, 6]], Positions.arange(2, 5))[:, -1:]
    torch.testing.assert_close(out, expected)


def test_a_cache_of_another_encoding_or_dtype_is_refused():
    module, x, cache = decoded("rope")
    other, _, _ = decoded("alibi")
    with pytest.raises(ValueError, match=r"^cache: was written with RoPE\(.*\), and this block has ALiBi\("):
        other.decode(x[:, :1], Positions.decode([6, 6]), cache)
    with pytest.raises(TypeError, match=r"^k: expected torch.float32 on cpu as in the cache, got .*float64"):
        copy.deepcopy(module).double().decode(x[:, :1].double(), Positions.decode([6, 6]), cache)
    copy.deepcopy(module).decode(x[:, :1], Positions.decode([6, 6]), cache)  # a copy of the same configuration goes on
    unknown = KeyValueCache(cache.k, cache.v, cache.at)
    module.decode(x[:, :1], Positions.decode([6, 6]), unknown)
    with pytest.raises(ValueError, match=r"^renumber: this cache does not know what rotated its keys"):
        unknown.evict(torch.ones(1, 6, dtype=torch.bool), renumber=True)


@pytest.mark.parametrize("name", ["rope", "fox"])
def test_rows_and_drafts_of_cross_attention(name):
    """The memory stays whole; rows go with their memory, and what was read of rejected tokens is rolled back."""
    torch.manual_seed(0)
    module, x, memory = Attention(32, 4, create(name, **SIZES)), torch.randn(2, 6, 32), torch.randn(2, 5, 32)
    along = {"causal": True}
    _, cache = module.decode(x[:, :3], Positions.arange(2, 3), None, memory, Positions.arange(2, 5), **along)
    _, longer = module.decode(torch.randn(2, 2, 32), Positions.arange(2, 2, 3), cache, **along)
    expected = module(x.flip(0)[:, :4], Positions.arange(2, 4), memory.flip(0), Positions.arange(2, 5), **along)[:, 3:]
    out, _ = module.decode(x.flip(0)[:, 3:4], Positions.decode([3, 3]), longer.crop(3).reorder([1, 0]), **along)
    torch.testing.assert_close(out, expected)
    with pytest.raises(ValueError, match="holds a memory, which does not grow"):
        cache.ring(4)


def test_packed_documents_are_numbered_anew_each_by_itself():
    torch.manual_seed(0)
    module, x = Attention(32, 4, create("rope", **SIZES)), torch.randn(1, 7, 32)
    _, cache = module.decode(x, Positions.packed([0, 3, 7]))
    keep = torch.tensor([[True, False, True, False, True, True, True]])
    moved = cache.evict(keep, renumber=True)
    assert moved.at.coords.tolist() == [[0, 1, 0, 1, 2]]
    assert moved.at.document.tolist() == [[0, 0, 1, 1, 1]]
    keys = module.encoding.rotate(module._split(module.key(x))[:, :, [0, 2, 4, 5, 6]], moved.at, "key")
    torch.testing.assert_close(moved.k, keys)


@torch.no_grad()
def test_a_growing_cache_copies_its_keys_once_and_forks_do_not_see_each_other():
    module, x, cache = decoded()
    _, first = module.decode(x[:, :1], Positions.decode([6, 6]), cache)
    before = [part.clone() for part in parts(first)]
    _, longer = module.decode(x[:, 1:2], Positions.decode([7, 7]), first)
    assert longer.k.untyped_storage().data_ptr() == first.k.untyped_storage().data_ptr()
    kept = [part.clone() for part in parts(longer)]
    _, fork = module.decode(x[:, 2:3], Positions.decode([7, 7]), first)  # the same place, taken already
    _, cut = module.decode(x[:, 3:4], Positions.decode([6, 6]), longer.crop(6))
    for other in (fork, cut):
        assert other.k.untyped_storage().data_ptr() != first.k.untyped_storage().data_ptr()
    assert all(map(torch.equal, parts(first), before))
    assert all(map(torch.equal, parts(longer), kept))
    again = first
    for n in range(7, 7 + 200):
        _, again = module.decode(x[:, 1:2], Positions.decode([n, n]), again)
    assert again.k.untyped_storage().nbytes() < 1.5 * again.k.nbytes
    assert torch.equal(again.k[:, :, :8], longer.k)


def test_tokens_that_are_learnt_from_are_not_written_over():
    module, x, cache = decoded()
    out, longer = module.decode(x[:, :1], Positions.decode([6, 6]), cache)
    with torch.no_grad():
        module.decode(x[:, :1], Positions.decode([7, 7]), longer)
    with torch.inference_mode():
        _, inferred = module.decode(x[:, :1], Positions.decode([7, 7]), longer)
    with torch.no_grad():
        module.decode(x[:, :1], Positions.decode([8, 8]), inferred)
    out.sum().backward()
    assert module.key.weight.grad.isfinite().all()


@torch.no_grad()
@pytest.mark.parametrize("name", ["rope", "alibi", "fox"])
def test_one_graph_over_all_steps_of_a_static_cache(name):
    """Rows of other lengths, and rows that are rolled back, share one graph, and no memory is made for keys."""
    torch._dynamo.reset()
    module, x, cache = decoded(name, Positions.from_mask(PADDED))
    graphs = CompileCounter()
    step = torch.compile(module.decode, backend=graphs, fullgraph=True)
    static, start = cache.static(24), torch.tensor([5, 4])
    memory = [part.data_ptr() for part in (static.k, static.v)]
    for n in range(12):
        if n == 6:
            start = torch.tensor([7, 3])
            static, cache = static.crop(start), cache.crop(start)
        at = Positions.decode(start + n % 6)
        out, static = step(x[:, n % 6, None], at, static)
        expected, cache = module.decode(x[:, n % 6, None], at, cache)
        torch.testing.assert_close(out, expected)
        assert static.lengths.tolist() == cache.lengths.tolist()
    assert graphs.frame_count == 1
    assert [part.data_ptr() for part in (static.k, static.v)] == memory


def test_rows_of_a_static_cache_that_was_reordered_are_written_apart():
    """Three drafts of one prompt, of which each keeps another number; the cache that they came from stays as it was."""
    layer = Attention(32, 4, create("rope", d_head=8))
    x = torch.randn(3, 12, 32)
    with torch.no_grad():
        _, prompt = layer.decode(x[:1, :4], Positions.arange(1, 4))
        static, growing = prompt.static(16), prompt.reorder([0, 0, 0])
        beams, before = static.reorder([0, 0, 0]), [x.clone() for x in parts(static)]
        _, beams = layer.decode(x[:, 4:7], Positions.arange(3, 3, start=4), beams)
        _, growing = layer.decode(x[:, 4:7], Positions.arange(3, 3, start=4), growing)
        lengths = [4, 7, 5]
        beams, growing = beams.crop(lengths).reorder([0, 1, 2]), growing.crop(lengths)
        for start in (7, 8):  # each row at a place of its own
            at = Positions.decode(lengths)
            got, beams = layer.decode(x[:, start : start + 1], at, beams)
            expected, growing = layer.decode(x[:, start : start + 1], at, growing)
            torch.testing.assert_close(got, expected)
            lengths = [n + 1 for n in lengths]
        assert beams.lengths.tolist() == lengths
    assert static.lengths.tolist() == [4]
    assert all(torch.equal(a, b) for a, b in zip(parts(static), before, strict=True))


def layer_of_memory():
    """What cross-attention keeps of its memory."""
    at = Positions.arange(1, 3)
    return Attention(32, 4, create("nope")).decode(
        torch.randn(1, 3, 32), at, None, torch.randn(1, 5, 32), Positions.arange(1, 5)
    )[1]


@pytest.mark.parametrize("memory", [lambda cache: cache.static(16), lambda cache: cache.paged(4, 16).reserve([7, 7])])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask": torch.ones(2, 1, 1, 5, dtype=torch.bool)}, "^mask: expected 4 axes"),
        ({"sinks": torch.zeros(3)}, "^sinks: expected one floating number for each of 4"),
        ({"softcap": -1.0}, "^softcap: expected a positive number"),
        ({"impl": "flash"}, "^impl: expected 'auto'"),
        ({"impl": "toeplitz"}, "^impl='toeplitz' cannot express"),
    ],
)
def test_a_call_that_is_refused_has_written_to_no_memory(memory, options, message):
    module, x, cache = decoded()
    held = memory(cache)
    before = [part.clone() for part in parts(held)]
    with torch.no_grad(), pytest.raises(ValueError, match=message):
        module.decode(x[:, :1], Positions.decode(held.lengths), held, **options)
    assert all(map(torch.equal, before, parts(held)))


def test_what_a_static_cache_refuses():
    module, x, cache = decoded("fox", Positions.from_mask(PADDED))
    with pytest.raises(ValueError, match=r"capacity: row 0 holds a token of order 4, got 4 columns"):
        cache.static(4)
    double = KeyValueCache(cache.k, cache.v, Positions(*[torch.zeros(2, 6, dtype=torch.int64)] * 3), module.encoding)
    with pytest.raises(ValueError, match="two tokens of a row have the same order"):
        double.static(8)
    static = cache.static(6)
    before = [part.clone() for part in parts(static)]
    with pytest.raises(RuntimeError, match="written in place, without gradients"):
        module.decode(x[:, :1], Positions.decode([5, 4]), static)
    with torch.no_grad():
        with pytest.raises(ValueError, match=r"at: row 1 goes on at position 5, and the cache ends at position 3"):
            module.decode(x[:, :1], Positions.decode([5, 5]), static)
        with pytest.raises(ValueError, match=r"at: the static cache has columns for order 0 … 5, .* got order 6"):
            module.decode(x[:, :2], Positions.arange(2, 2, torch.tensor([5, 4])), static)
        with pytest.raises(ValueError, match="carries other states than the cache holds"):
            static.extend(static.k[:, :, :1], static.v[:, :, :1], Positions.decode([5, 4]))
    for call in (lambda: static.evict(torch.ones(2, 6, dtype=torch.bool)), lambda: static.ring(4)):
        with pytest.raises(ValueError, match="cache: a static cache"):
            call()
    assert all(map(torch.equal, parts(static), before))
    assert type(static.reorder([1, 1])) is StaticCache
    assert static.reorder([1, 0]).lengths.tolist() == [4, 5]
    memory = layer_of_memory()
    with pytest.raises(ValueError, match="holds a memory, whose size is fixed already"):
        memory.static(8)


@pytest.mark.parametrize("name", ["rope", "fox", "cope"])
def test_the_memory_of_a_ring_is_its_capacity_without_gradients_too(name):
    """Outputs are those with gradients; a fork goes on from what the ring was. A static ring stays in one memory."""
    torch.manual_seed(0)
    module, _, cache = decoded(name, Positions.from_mask(PADDED))
    ring = copied = cache.ring(7, sinks=2)
    with torch.no_grad():
        static = ring.static()
    size, memory = 2 * 4 * 7 * 8 * 4, static.k.data_ptr()
    for n in range(40):
        x, at = torch.randn(2, 1, 32), Positions.decode([5 + n, 4 + n])
        expected, copied = module.decode(x, at, copied)
        with torch.no_grad():
            earlier, (out, ring) = ring, module.decode(x, at, ring)
            of_static, static = module.decode(x, at, static)
            if n == 30:
                before = [part.clone() for part in parts(earlier)]
                fork, _ = module.decode(x + 1.0, at, earlier)
                again, _ = module.decode(x, at, earlier)
                torch.testing.assert_close(again, out)
                assert not torch.allclose(fork, out)
                assert all(map(torch.equal, parts(earlier), before))
        torch.testing.assert_close(out, expected)
        torch.testing.assert_close(of_static, expected)
        assert ring.lengths.tolist() == copied.lengths.tolist() == static.lengths.tolist()
        assert ring.k.untyped_storage().nbytes() <= size
        assert (static.k.untyped_storage().nbytes(), static.k.data_ptr()) == (size, memory)


@torch.no_grad()
def test_a_ring_that_fills_up_copies_nothing():
    module, x, cache = decoded("rope", tokens=3)
    ring, memory = cache.ring(20), set()
    for n in range(3, 20):
        _, ring = module.decode(x[:, :1], Positions.decode([n, n]), ring)
        memory.add(ring.k.untyped_storage().data_ptr())
    assert len(memory) == 1


@torch.no_grad()
def test_one_graph_over_all_steps_of_a_static_ring():
    torch._dynamo.reset()
    module, x, cache = decoded("rope", Positions.from_mask(PADDED))
    graphs = CompileCounter()
    step = torch.compile(module.decode, backend=graphs, fullgraph=True)
    ring, static = cache.ring(6, sinks=2), cache.ring(6, sinks=2).static()
    for n in range(9):
        at = Positions.decode([5 + n, 4 + n])
        expected, ring = module.decode(x[:, n % 6, None], at, ring)
        out, static = step(x[:, n % 6, None], at, static)
        torch.testing.assert_close(out, expected)
    assert graphs.frame_count == 1


@torch.no_grad()
def test_a_static_ring_drops_the_oldest_where_positions_were_left_out():
    """Columns follow the order of tokens, not their numbers: 0, 1, 20, 21 and then 40 drops 0."""
    module, x, cache = decoded("rope", tokens=2)
    ring = cache.ring(4).static()
    for n in (20, 21, 40, 41, 42):
        at = Positions(torch.tensor([[n], [n]]), torch.tensor([[n], [n]]), torch.zeros(2, 1, dtype=torch.int64))
        _, ring = module.decode(x[:, :1], at, ring)
        assert len(set(ring.at.order[0].tolist())) == 4 or n == 20
    assert sorted(ring.at.order[0].tolist()) == [21, 40, 41, 42]


@torch.no_grad()
def test_what_a_static_ring_refuses():
    module, x, cache = decoded("rope")
    ring = cache.ring(7).static()
    assert ring.crop(5).lengths.tolist() == [5, 5]
    with pytest.raises(ValueError, match=r"^at: a static ring takes one token of a row at a time"):
        ring.extend(ring.k[:, :, :2], ring.v[:, :, :2], Positions.arange(2, 2, 6))
    with pytest.raises(ValueError, match=r"^mask: a ring has no columns that stay"):
        module.decode(x[:, :1], Positions.decode([6, 6]), ring, mask=torch.ones(1, 1, 1, 7, dtype=torch.bool))
    _, ring = module.decode(x[:, :1], Positions.decode([6, 6]), ring)
    with pytest.raises(ValueError, match=r"^lengths: a row of the ring is full"):
        ring.crop(5)
    with pytest.raises(ValueError, match=r"^capacity: the ring has 7, got 8"):
        cache.ring(7).static(8)
    packed = Attention(32, 4, create("rope", **SIZES))
    _, documents = packed.decode(torch.randn(1, 8, 32), Positions.packed([0, 4, 8]))
    with pytest.raises(ValueError, match=r"^cache: its documents hold 8 tokens, got a ring of 5 for one document"):
        documents.ring(5).static()
