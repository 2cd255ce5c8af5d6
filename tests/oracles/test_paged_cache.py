"""A paged cache against a growing one, a forward, and torch's own flex_attention over its store.

Where a token stands is computed here by loops over the table of blocks, as vLLM numbers slots.
"""

import math

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from posenc import Attention, KeyValueCache, Positions, create
from posenc.attention import mask_mod, score_mod
from posenc.attention.cache import PagedCache

SIZES = {"d_model": 32, "n_heads": 4, "d_head": 8, "max_positions": 64}
PADDED = torch.tensor([[0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
SIZE, BLOCKS = 4, 12


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def paged(name, tokens=5):
    """A module, hidden states, a paged cache and a growing one after a prompt of five and four tokens and some more."""
    torch.manual_seed(0)
    module, x = Attention(32, 4, create(name, **SIZES)), torch.randn(2, 6 + tokens, 32)
    _, cache = module.decode(x[:, :6], Positions.from_mask(PADDED))
    memory = cache.paged(SIZE, BLOCKS)
    for n in range(6, 6 + tokens):
        at, memory = Positions.decode(cache.lengths), memory.reserve(memory.lengths + 1)
        expected, cache = module.decode(x[:, n : n + 1], at, cache)
        out, memory = module.decode(x[:, n : n + 1], at, memory)
        torch.testing.assert_close(out, expected)
    return module, x, memory, cache


@pytest.mark.parametrize("name", ["rope", "alibi", "t5", "fox", "nope", "xpos", "sinusoidal"])
def test_it_decodes_as_a_cache_that_grows_and_as_a_forward(name):
    module, x, memory, _ = paged(name)
    at = Positions.decode(memory.lengths)
    new = torch.randn(2, 1, 32)
    out, _ = module.decode(new, at, memory.reserve(memory.lengths + 1))
    for row, tokens in enumerate((x[0, 1:], torch.cat([x[1, :4], x[1, 6:]]))):
        whole = torch.cat([tokens, new[row]])[None]
        torch.testing.assert_close(out[row], module(whole, Positions.arange(1, whole.shape[1]))[0, -1:])


def test_a_token_stands_in_the_slot_that_the_table_says():
    _, _, memory, cache = paged("rope")
    assert [len(block) for block in memory.table.tolist()] == [3, 3]
    for stored, held in zip(memory.store, (cache.k, cache.v), strict=True):
        assert stored.shape == (BLOCKS, SIZE, 4, 8)
        assert stored.is_contiguous()  # as a kernel of vLLM reads it
        for row in range(2):
            columns = (cache.at.document[row] >= 0).nonzero().flatten().tolist()
            for n, column in enumerate(columns):
                block = int(memory.table[row, n // SIZE])
                assert torch.equal(stored[block, n % SIZE], held[row, :, column])


@pytest.mark.parametrize("name", ["alibi", "t5", "rope"])
def test_flex_attention_reads_the_store_through_the_positions_of_its_slots(name):
    """The store is one row of keys for all rows; what is a row's own is said by the positions."""
    module, _, memory, cache = paged(name)
    at_q = Positions.decode(cache.lengths - 1)  # the newest token's query once more
    q = module.encoding.rotate(torch.randn(2, 4, 1, 8), at_q, "query")
    blocks = create_block_mask(mask_mod(at_q, memory.at), 2, None, 1, BLOCKS * SIZE, device="cpu")
    added = score_mod(module.encoding, at_q, memory.at) if name != "rope" else None
    keys, values = (x[:1].expand(2, -1, -1, -1) for x in (memory.k, memory.v))
    out = flex_attention(q, keys, values, score_mod=added, block_mask=blocks)
    for row in range(2):
        real = cache.at.document[row] >= 0
        k, v = cache.k[row, :, real].double(), cache.v[row, :, real].double()
        distance = k.shape[1] - 1 - torch.arange(k.shape[1])
        scores = (q[row].double() @ k.transpose(1, 2))[:, 0] / math.sqrt(8)
        if name == "alibi":
            scores -= torch.tensor([[2.0 ** (-2 * h)] for h in range(1, 5)]) * distance
        elif name == "t5":  # the first sixteen distances have buckets of their own
            scores += module.encoding.table.double()[distance].T
        expected = torch.einsum("hj,hjd->hd", scores.softmax(-1), v)
        torch.testing.assert_close(out[row, :, 0].double(), expected, rtol=2e-6, atol=2e-6)


def test_blocks_are_given_back_and_taken_by_other_rows():
    module, x, memory, _ = paged("alibi")
    assert (memory.table >= 0).sum(dim=1).tolist() == [3, 3]  # ten and nine tokens
    cut = memory.crop([4, 9])
    assert (cut.table >= 0).sum(dim=1).tolist() == [1, 3]
    freed = memory.table[0, 1:].tolist()
    taken = cut.reserve([4, 9 + 3 * SIZE])
    assert set(freed) <= set(taken.table[1].tolist())
    static = cut.static(32)
    for n in range(6):  # rows write to blocks of the other's rejected tokens
        at = Positions.decode(static.lengths)
        expected, static = module.decode(x[:, n : n + 1], at, static)
        out, cut = module.decode(x[:, n : n + 1], at, cut.reserve(cut.lengths + 1))
        torch.testing.assert_close(out, expected)
    alone = cut.reorder([1])
    assert alone.table.tolist() == cut.table[1:].tolist()
    at = Positions.decode(alone.lengths)
    out, _ = module.decode(x[1:, :1], at, alone.reserve([BLOCKS * SIZE]))
    expected, _ = module.decode(x[1:, :1], at, static.reorder([1]))
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("name", ["rope", "alibi"])
def test_one_graph_over_all_steps(name):
    torch._dynamo.reset()
    module, x, memory, cache = paged(name, tokens=1)
    graphs = CompileCounter()
    step = torch.compile(module.decode, backend=graphs, fullgraph=True)
    memory = memory.reserve([20, 20])
    address = memory.store[0].data_ptr()
    for n in range(4):
        at = Positions.decode(cache.lengths)
        out, memory = step(x[:, n : n + 1], at, memory)
        expected, cache = module.decode(x[:, n : n + 1], at, cache)
        torch.testing.assert_close(out, expected)
    assert graphs.frame_count == 1
    assert memory.store[0].data_ptr() == address


def test_what_it_refuses():
    module, x, memory, cache = paged("alibi", tokens=3)
    before = [part.clone() for part in (memory.k, memory.at.document, memory.table)]
    with pytest.raises(
        ValueError, match=r"^at: padding, or a row without a block: call reserve\(lengths\) before, .* order 8"
    ):
        module.decode(x[:, :1], Positions.decode(memory.lengths), memory)
    with pytest.raises(ValueError, match=r"^blocks: 16 more of 4 tokens are needed, and 8 of 12 are free"):
        memory.reserve([40, 40])
    with pytest.raises(ValueError, match=r"^lengths: expected one for each of 2 rows, got 1"):
        memory.reserve([8])
    with pytest.raises(ValueError, match=r"^rows: a row comes twice"):
        memory.reorder([0, 0])
    with pytest.raises(ValueError, match=r"^blocks: 4 more of 4 tokens are needed, and 3 of 3 are free"):
        cache.paged(4, 3)
    with pytest.raises(ValueError, match=r"^size: expected a whole number from 1"):
        cache.paged(0, 3)
    for call in (lambda: memory.evict(torch.ones(2, 48, dtype=torch.bool)), lambda: memory.ring(4)):
        with pytest.raises(ValueError, match="cache: a static cache"):
            call()
    with pytest.raises(ValueError, match="a ring has no blocks"):
        cache.ring(4).paged(4, 8)
    with pytest.raises(ValueError, match=r"^cache: does not know its encoding"):
        KeyValueCache(cache.k, cache.v, cache.at).paged(4, 8)
    assert all(map(torch.equal, (memory.k, memory.at.document, memory.table), before))


@pytest.mark.parametrize("name", ["cope", "dape", "stick_breaking"])
def test_an_encoding_without_a_score_mod_is_refused_by_name(name):
    module, x = Attention(32, 4, create(name, **SIZES)), torch.randn(1, 4, 32)
    _, cache = module.decode(x, Positions.arange(1, 4))
    with pytest.raises(ValueError, match=r"^encoding: no score_mod expresses \w+\(.*use cache.static\(capacity\)"):
        cache.paged(4, 8)


def test_rows_of_a_kind_that_is_reordered_stay_paged():
    module, x, memory, _ = paged("rope", tokens=2)
    turned = memory.reorder([1, 0])
    assert type(turned) is PagedCache
    assert turned.lengths.tolist() == [6, 7]
    out, _ = module.decode(x[:, :1], Positions.decode([6, 7]), turned.reserve([7, 8]))
    assert out.isfinite().all()
