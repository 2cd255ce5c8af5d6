"""The drop-in module by loops: projections, grouped heads, memory, and a cache that grows."""

import math
import re
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import posenc
from posenc import Attention, KeyValueCache, PerLayer, Positions, Stack, create, replace_encoding
from posenc.catalogue.lookup import ENTRIES
from posenc.encodings.alibi import ALiBi
from posenc.encodings.cope import CoPE
from posenc.encodings.learned import Learned
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal

from .by_hand import add, attention, close, draw, each, products, sees, turned

D_MODEL, HEADS, SHARED = 12, 4, 2


def filled(encoding, **options) -> Attention:
    module = Attention(D_MODEL, HEADS, encoding, n_kv_heads=SHARED, **options).double()
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(torch.from_numpy(draw(60 + seed, *parameter.shape)) * 0.4)
    return module


def projected(x, linear, d_head) -> np.ndarray:
    """[b, t, d] -> [b, heads, t, d_head]: head h has rows h·d_head … of the weight."""
    weight = linear.weight.detach().numpy()
    shift = np.zeros(len(weight)) if linear.bias is None else linear.bias.detach().numpy()
    out = np.zeros((x.shape[0], len(weight) // d_head, x.shape[1], d_head))
    for b, h, t, c in each(*out.shape):
        out[b, h, t, c] = weight[h * d_head + c] @ x[b, t] + shift[h * d_head + c]
    return out


def merged(heads, linear) -> np.ndarray:
    batch, _, tokens, _ = heads.shape
    flat = np.array([[heads[b, :, t].reshape(-1) for t in range(tokens)] for b in range(batch)])
    shift = 0 if linear.bias is None else linear.bias.detach().numpy()
    return flat @ linear.weight.detach().numpy().T + shift


def by_loops(module, x, source, may, bias=None, turn=None):
    d_head = module.d_head
    q, k, v = (
        projected(y, linear, d_head) for y, linear in ((x, module.query), (source, module.key), (source, module.value))
    )
    if turn is not None:
        q, k = turn(q), turn(k)
    logits = products(q, k)
    return merged(attention(logits if bias is None else add(logits, bias), v, may), module.out)


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("d_head", [None, 4])
def test_self_attention(d_head, bias, impl):
    module, x, rows = filled(ALiBi(HEADS), d_head=d_head, bias=bias), draw(1, 2, 5, D_MODEL), [range(5)] * 2
    assert module.d_head == (d_head or D_MODEL // HEADS)
    assert module.key.weight.shape == (SHARED * module.d_head, D_MODEL)
    assert all(linear.bias is None for linear in Attention(D_MODEL, HEADS, NoPE()).children() if hasattr(linear, "weight"))
    slopes = [2.0 ** (-2 * (h + 1)) for h in range(HEADS)]
    for causal in (True, False):
        expected = by_loops(module, x, x, sees(rows, rows, causal=causal), lambda b, h, i, j: -slopes[h] * abs(i - j))
        close(module(torch.from_numpy(x), Positions.arange(2, 5, 3), causal=causal, impl=impl), expected)


@pytest.mark.parametrize("name", ["fox", "cable", "carope", "path_fox", "selective_rope", "wall", "alibi"])
def test_a_token_after_drafts_that_one_row_rejected(name):
    """Of three drafts the first row keeps all, the second one: others become padding, and what was read of them stays."""
    sizes = {"d_model": 32, "n_heads": HEADS, "n_kv_heads": SHARED, "d_head": 8}
    module = Attention(32, HEADS, create(name, **sizes), n_kv_heads=SHARED).double()
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(torch.from_numpy(draw(60 + seed, *parameter.shape)) * 0.4)
    x = torch.from_numpy(draw(1, 2, 10, 32))
    _, cache = module.decode(x[:, :6], Positions.arange(2, 6))
    _, cache = module.decode(x[:, 6:9], Positions.arange(2, 3, 6), cache)
    document = torch.zeros(2, 9, dtype=torch.long)
    document[1, 7:] = -1
    held = Positions(cache.at.coords, cache.at.order, document, tables=cache.at.tables, states=cache.at.states)
    out, _ = module.decode(x[:, 9:], Positions.decode([9, 7]), KeyValueCache(cache.k, cache.v, held))
    for row, kept in enumerate((range(10), [0, 1, 2, 3, 4, 5, 6, 9])):
        expected = module(x[row : row + 1, kept], Positions.arange(1, len(kept)))[:, -1:]
        close(out[row : row + 1], expected.detach())


def test_rotary_self_attention_is_causal_unless_said():
    module, x, rows = filled(RoPE(4, layout="half"), d_head=4), draw(1, 1, 4, D_MODEL), [range(7, 11)]

    def turn(y):
        out = np.empty_like(y)
        for b, h, t in each(*y.shape[:3]):
            out[b, h, t] = turned(y[b, h, t], [rows[b][t] * 10000 ** (-2 * i / 4) for i in range(2)], "half")
        return out

    close(module(torch.from_numpy(x), Positions.arange(1, 4, 7)), by_loops(module, x, x, sees(rows, rows), turn=turn))


def test_embeds_before_the_projections():
    module, x, rows = filled(Sinusoidal(D_MODEL)), draw(1, 1, 4, D_MODEL), [range(4)]
    omega = [10000 ** (-2 * i / D_MODEL) for i in range(6)]
    sine = np.array([[[f(p * w) for w in omega for f in (math.sin, math.cos)] for p in range(9, 13)]])
    close(module(torch.from_numpy(x), Positions.arange(1, 4, 9)), by_loops(module, x + sine, x + sine, sees(rows, rows)))


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_cross_attention_to_a_memory_embedded_at_its_own_positions(impl):
    module = filled(Learned(D_MODEL, 20))
    table = module.encoding.table.detach().numpy()
    x, memory = draw(1, 1, 3, D_MODEL), draw(2, 1, 5, D_MODEL)
    at, at_memory = [7, 2, 2], [19, 0, 3, 4, 8]
    expected = by_loops(module, x + table[at][None], memory + table[at_memory][None], lambda b, i, j: True)
    got = module(
        torch.from_numpy(x),
        Positions.at(torch.tensor([at])),
        torch.from_numpy(memory),
        Positions.at(torch.tensor([at_memory])),
        causal=False,
        impl=impl,
    )
    close(got, expected)


def test_cross_attention_is_causal_only_if_said():
    """A mask by the order of two different sequences hid the memory's later tokens from the first tokens."""
    module, x, memory = filled(ALiBi(HEADS)), draw(1, 1, 3, D_MODEL), draw(2, 1, 5, D_MODEL)
    slopes = [2.0 ** (-2 * (h + 1)) for h in range(HEADS)]
    given = torch.from_numpy(x), Positions.arange(1, 3), torch.from_numpy(memory), Positions.arange(1, 5)

    def expected(visible):
        return by_loops(module, x, memory, visible, lambda b, h, i, j: -slopes[h] * abs(i - j))

    close(module(*given), expected(lambda b, i, j: True))
    close(module(*given, causal=False), expected(lambda b, i, j: True))
    close(module(*given, causal=True), expected(lambda b, i, j: j <= i))


PADDED = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]])


@pytest.mark.parametrize("wrong", [[5, 5, 5], [3, 5, 0], [2, 4, 0], [3, 4, 1]])
def test_decode_refuses_lengths_that_the_cache_contradicts(wrong):
    """Real tokens 3, 4 and 0 of a batch padded to 5; the padded length was off by .18 in a RoPE's output."""
    module, x = filled(RoPE(4), d_head=4), torch.from_numpy(draw(1, 3, 6, D_MODEL))
    _, cache = module.decode(x[:, :5], Positions.from_mask(PADDED))
    row = next(n for n, (got, real) in enumerate(zip(wrong, [3, 4, 0], strict=True)) if got != real)
    message = rf"^at: row {row} goes on at position {wrong[row]}, .* without padding: Positions.decode\(\[3, 4, 0\]\)"
    with pytest.raises(ValueError, match=message):
        module.decode(x[:, 5:], Positions.decode(wrong), cache)
    _, cache = module.decode(x[:, 5:], Positions.decode([3, 4, 0]), cache)
    module.decode(x[:, 5:], Positions.decode([4, 5, 1]), cache)
    with pytest.raises(ValueError, match=r"row 0 goes on at position 3, and the cache ends at position 3"):
        module.decode(x[:, 5:], Positions.decode([3, 4, 0]), cache)


@pytest.mark.parametrize("name", ["conditional", "convolutional"])
def test_decode_refuses_an_encoding_that_reads_neighbours(name):
    """The numbers were others than those of forward, without a word."""
    encoding = posenc.create(name, d_model=16)
    at = posenc.Positions.grid(2, 3) if name == "conditional" else posenc.Positions.arange(1, 6)
    module = posenc.Attention(16, 2, encoding)
    with pytest.raises(ValueError, match=r"^encoding: \w+ reads the neighbours of a token, which a cache does not hold"):
        module.decode(torch.zeros(1, 6, 16), at)
    with pytest.raises(ValueError, match=r"^encoding: \w+ reads the neighbours of a token, which a cache does not hold"):
        module.decode(torch.zeros(1, 6, 16), at, None, torch.zeros(1, 6, 16), at)


def test_decode_refuses_a_lost_offset_and_serves_what_is_left_out_on_purpose():
    module, x = filled(RoPE(4), d_head=4), torch.from_numpy(draw(1, 1, 6, D_MODEL))
    _, cache = module.decode(x[:, :4], Positions.arange(1, 4))
    with pytest.raises(ValueError, match=r"row 0 goes on at position 0"):
        module.decode(x[:, 4:], Positions.arange(1, 2), cache)
    listed = torch.tensor([[9]])
    module.decode(x[:, 4:5], Positions(listed, listed, 0 * listed), cache)
    _, packed = module.decode(x[:, :5], Positions.packed([0, 2, 5]))
    module.decode(x[:, 5:], Positions.decode([2]), packed)  # the first document goes on
    _, one_row = module.decode(x[:, :4].expand(3, -1, -1), Positions.arange(1, 4))
    module.decode(x[:, 4:5].expand(3, -1, -1), Positions.decode([4, 4, 4]), one_row)


def test_decoding_turns_values_as_forward_does():
    """A method that turns values and turns outputs back, as the cache holds them turned."""
    module = filled(RoPE(4, sides=("query", "key", "value", "output")), d_head=4)
    x = torch.from_numpy(draw(1, 2, 6, D_MODEL))
    whole = module(x, Positions.arange(2, 6)).detach()
    out, cache = module.decode(x[:, :4], Positions.arange(2, 4))
    parts = [out]
    for t in (4, 5):
        out, cache = module.decode(x[:, t : t + 1], Positions.decode([t, t]), cache)
        parts.append(out)
    close(torch.cat(parts, dim=1), whole)
    plain = filled(RoPE(4), d_head=4)(x, Positions.arange(2, 6)).detach()
    assert (whole - plain).abs().max() > 0.01  # turning the values does something


def test_the_backend_asked_for_is_the_one_that_runs():
    """CoPE reads the logits, which sdpa does not expose: sdpa requested by name raises."""
    module = filled(CoPE(3, n_positions=4))
    x, at = torch.from_numpy(draw(1, 1, 4, D_MODEL)), Positions.arange(1, 4)
    for impl in ("auto", "reference"):
        module(x, at, impl=impl)
        module.decode(x, at, impl=impl)
    for call in (module, module.decode):
        with pytest.raises(ValueError, match="impl='sdpa' cannot express CoPE"):
            call(x, at, impl="sdpa")


def test_a_cache_expands_one_row_of_positions():
    k, v = torch.zeros(3, 2, 4, 5), torch.zeros(3, 2, 4, 5)
    longer = KeyValueCache(k, v, Positions.arange(1, 4)).extend(k[:, :, :1], v[:, :, :1], Positions.arange(1, 1, 4))
    assert longer.at.coords.tolist() == [[0, 1, 2, 3, 4]] * 3
    assert longer.k.shape == longer.v.shape == (3, 2, 5, 5)


def test_gradients_reach_every_parameter():
    module = filled(Learned(D_MODEL, 6), bias=True)
    x = torch.from_numpy(draw(1, 1, 4, D_MODEL)).requires_grad_()
    module(x, Positions.arange(1, 4)).sin().sum().backward()
    assert x.grad.abs().min() > 0
    for name, parameter in module.named_parameters():
        assert parameter.grad.abs().max() > 0, name


def test_wrong_arguments():
    with pytest.raises(ValueError, match="d_model=10 is not a multiple of n_heads=4; say d_head"):
        Attention(10, 4, NoPE())
    with pytest.raises(ValueError, match="n_heads=4 is not a multiple of n_kv_heads=3"):
        Attention(12, 4, NoPE(), n_kv_heads=3)
    module, x, at = filled(NoPE()), torch.zeros(1, 3, D_MODEL).double(), Positions.arange(1, 3)
    for only in ({"memory": x}, {"at_memory": at}):
        with pytest.raises(ValueError, match="memory, at_memory: expected both or neither"):
            module(x, at, **only)
    with pytest.raises(ValueError, match=r"^at: has positions \[1, 3\] for tokens \[1, 2\] of x"):
        module(x[:, :2], at)


def test_the_dtype_of_the_projections_is_asked_for_except_under_autocast():
    module, at = Attention(8, 2, NoPE()), Positions.arange(1, 3)
    x = torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(0))
    for call in (module, module.decode):
        with pytest.raises(TypeError, match=r"x: expected torch\.float32 as the projections have, got torch\.bfloat16"):
            call(x.bfloat16(), at)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = module(x.bfloat16(), at)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), module(x, at), rtol=0.05, atol=0.05)


# ------------------------------------------------------------------------------------------------ a cache of a memory


def in_steps(module, x, memory, at_memory, sizes, **options):
    """decode over a memory: the first call gives it, the others its cache."""
    outputs, begin, cache, given = [], 0, None, (memory, at_memory)
    for size in sizes:
        at = Positions.arange(x.shape[0], size, begin)
        out, cache = module.decode(x[:, begin : begin + size], at, cache, *given, **options)
        outputs.append(out)
        begin, given = begin + size, (None, None)
    return torch.cat(outputs, dim=1), cache


def test_decoding_over_a_memory_is_cross_attention_by_loops():
    module, x, memory = filled(ALiBi(HEADS)), draw(1, 1, 4, D_MODEL), draw(2, 1, 6, D_MODEL)
    slopes = [2.0 ** (-8 * (h + 1) / HEADS) for h in range(HEADS)]
    expected = by_loops(module, x, memory, lambda b, i, j: True, lambda b, h, i, j: -slopes[h] * abs(i - j))
    got, _ = in_steps(module, torch.from_numpy(x), torch.from_numpy(memory), Positions.arange(1, 6), (2, 1, 1))
    close(got, expected)


FOR_A_MEMORY = [
    entry.name
    for entry in ENTRIES
    if entry.in_a_row or entry.name in ("fox", "repo", "selective_rope", "carope", "rope_pp")
]


@pytest.mark.parametrize("name", FOR_A_MEMORY)
def test_decoding_over_a_memory_equals_the_forward(name):
    """Of every encoding that serves cross-attention; one that refuses it refuses both. Keys are projected once."""
    torch.manual_seed(0)
    encoding = create(name, d_model=64, n_heads=4, max_positions=64).at_layer(0)
    module = Attention(64, 4, encoding, n_kv_heads=None).double()
    x, memory, at_memory = torch.randn(2, 6, 64).double(), torch.randn(2, 9, 64).double(), Positions.arange(2, 9)
    causal = "causal_only" in encoding.traits
    at = Positions.arange(2, 6)
    try:
        expected = module(x, at, memory, at_memory, causal=causal)
    except ValueError as refused:
        with pytest.raises(ValueError, match=re.escape(str(refused)[:20])):
            in_steps(module, x, memory, at_memory, (6,), causal=causal)
        return
    if "local" not in encoding.traits:  # a convolution reads whole rows
        with pytest.raises(ValueError, match=r"^encoding: \w+ reads the neighbours of a token"):
            in_steps(module, x, memory, at_memory, (6,), causal=causal)
        return
    calls = []
    for linear in (module.key, module.value):
        linear.register_forward_hook(lambda *_: calls.append(1))
    got, cache = in_steps(module, x, memory, at_memory, (3, 1, 1, 1), causal=causal)
    assert len(calls) == 2
    assert cache.k.shape[2] == 9
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


def test_a_memory_s_cache_is_checked():
    module, x, at = filled(RoPE(4), d_head=4), torch.zeros(1, 3, D_MODEL).double(), Positions.arange(1, 3)
    _, cache = module.decode(x, at, None, x, at)
    with pytest.raises(ValueError, match=r"^memory: expected none beside a cache"):
        module.decode(x, at, cache, x, at)
    with pytest.raises(ValueError, match=r"^memory, at_memory: expected both or neither"):
        module.decode(x, at, None, x)
    with pytest.raises(ValueError, match=r"^causal: decoding without a memory is causal"):
        module.decode(x, at, causal=False)
    with pytest.raises(ValueError, match=r"^cache: holds a memory"):
        cache.extend(cache.k, cache.v, at)
    with pytest.raises(ValueError, match=r"^cache: expected the KeyValueCache of 2 rows"):
        module.decode(torch.cat([x, x]), at, cache)


# ------------------------------------------------------------------------------------------------ another encoding


class Model(nn.Module):
    def __init__(self, *encodings, added=None):
        super().__init__()
        self.added = added
        self.blocks = nn.ModuleList(Attention(D_MODEL, HEADS, one) for one in encodings)

    def forward(self, x, at):
        x = x if self.added is None else self.added.embed(x, at)
        for block in self.blocks:
            x = x + block(x, at)
        return x


def test_a_second_block_made_with_the_same_adding_encoding_warns(recwarn):
    sinusoids, rope = create("sinusoidal", d_model=32), create("rope", d_head=8)
    blocks = [Attention(32, 4, rope), Attention(32, 4, rope), Attention(32, 4, sinusoids)]
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"another block has it already.*replace_encoding") as told:
        blocks.append(Attention(32, 4, sinusoids))
    assert told[0].filename == __file__
    blocks.clear()
    blocks.append(Attention(32, 4, sinusoids))
    assert not recwarn.list


def test_one_call_changes_every_block_and_no_projection():
    model = Model(*[NoPE()] * 3).double()
    x, at = torch.from_numpy(draw(1, 1, 5, D_MODEL)), Positions.arange(1, 5)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert replace_encoding(model, ALiBi(HEADS)) is model
    expected = Model(*[ALiBi(HEADS)] * 3).double()
    expected.load_state_dict(weights)
    close(model(x, at), expected(x, at).detach())
    assert all(torch.equal(weights[name], tensor) for name, tensor in model.state_dict().items())


def test_a_trained_rope_is_extended_in_one_call():
    model = nn.ModuleList(Attention(8, 4, create("rope", d_head=2)) for _ in range(2))
    longer = create("yarn", d_head=2, factor=4.0, layout="interleaved")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replace_encoding(model, longer)
    assert [block.encoding.identity for block in model] == [longer.identity] * 2


def test_a_rotation_that_pairs_other_channels_than_the_trained_one_is_refused():
    model = nn.ModuleList(Attention(8, 2, one) for one in (NoPE(), create("rope", d_head=4)))
    with pytest.raises(ValueError, match="layout='half', and 1 pairs channels as 'interleaved'; create it with"):
        replace_encoding(model, create("yarn", d_head=4, factor=4.0))
    assert [type(block.encoding) for block in model] == [NoPE, RoPE]


def test_what_is_added_is_added_once():
    """By hand: x + table before the first block, nothing in later ones."""
    table = Sinusoidal(D_MODEL)
    model = replace_encoding(Model(*[NoPE()] * 3).double(), table)
    x, at = torch.from_numpy(draw(1, 1, 5, D_MODEL)), Positions.arange(1, 5)
    bare = [Attention(D_MODEL, HEADS, NoPE()).double() for _ in range(3)]
    for own, block in zip(bare, model.blocks, strict=True):
        own.load_state_dict(block.state_dict())
    h = x + bare[0](table.embed(x, at), at)
    for block in bare[1:]:
        h = h + block(h, at)
    close(model(x, at), h.detach())
    assert model.blocks[0].encoding is table


def test_a_second_adding_is_refused():
    model = Model(NoPE(), NoPE(), added=Learned(D_MODEL, 8))
    with pytest.raises(ValueError, match=r"adds to the embeddings, and the model adds added \(Learned"):
        replace_encoding(model, Sinusoidal(D_MODEL))
    assert [type(block.encoding) for block in model.blocks] == [NoPE, NoPE]
    replace_encoding(model, ALiBi(HEADS))


def test_layers_of_their_own_and_what_does_not_fit():
    model = Model(NoPE(), NoPE())
    replace_encoding(model, PerLayer([ALiBi(HEADS), NoPE()]))
    assert [type(block.encoding) for block in model.blocks] == [ALiBi, NoPE]
    for wrong, said in [
        (PerLayer([NoPE()] * 3), "^encoding: expected 2 layers as the model has blocks, got 3"),
        (ALiBi(HEADS + 1), r"^encoding: ALiBi\(.* is for n_heads=5, and blocks\.0 has n_heads=4"),
        (Sinusoidal(D_MODEL + 2), r"is for d_model=14, and blocks\.0 has d_model=12"),
        (Stack(NoPE(), ALiBi(2)), r"is for n_heads=2, and blocks\.0 has n_heads=4"),
        (RoPE(8), r"is for d_head=8, and blocks\.0 has d_head=3"),
    ]:
        with pytest.raises(ValueError, match=said):
            replace_encoding(model, wrong)
        assert [type(block.encoding) for block in model.blocks] == [ALiBi, NoPE]
    with pytest.raises(ValueError, match=r"^model: expected posenc\.Attention blocks, found none in Linear"):
        replace_encoding(nn.Linear(2, 2), NoPE())


@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize("name", ["rope", "alibi", "nope"])
def test_tokens_at_any_coordinates_go_on_after_the_cache(name, chunk):
    """The causal order of `Positions.at` starts at 0: it says how many tokens were seen, or is refused, never sees less."""
    torch.manual_seed(0)
    layer = Attention(32, 2, create(name, d_model=32, n_heads=2)).double()
    x, coords = torch.randn(2, 7, 32, dtype=torch.float64), torch.tensor([0, 0.5, 2, 2.5, 4, 7, 7.25])[None].expand(2, 7)
    prompt, rest = coords[:, : 7 - chunk], coords[:, 7 - chunk :]
    _, cache = layer.decode(x[:, : 7 - chunk], Positions.at(prompt))
    out, _ = layer.decode(x[:, 7 - chunk :], Positions.at(rest, seen=7 - chunk), cache)
    torch.testing.assert_close(out, layer(x, Positions.at(coords))[:, 7 - chunk :])
    with pytest.raises(ValueError, match=rf"at: the causal order of row 0 starts again at 0.* seen={7 - chunk}\)"):
        layer.decode(x[:, 7 - chunk :], Positions.at(rest), cache)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, float("nan"), "7", 2**63 - 1, 10**30])
def test_a_wrong_number_of_seen_tokens_is_refused(wrong):
    with pytest.raises(ValueError, match=r"^seen: expected "):
        Positions.at(torch.zeros(1, 2), seen=wrong)


def test_padding_does_not_count_as_an_order_that_starts_again():
    """A row that is over gets padding; the other goes on."""
    layer = Attention(32, 2, ALiBi(2))
    x, at = torch.randn(2, 5, 32), Positions.arange(2, 4)
    _, cache = layer.decode(x[:, :4], at)
    over = Positions(torch.tensor([[4], [0]]), torch.tensor([[4], [0]]), torch.tensor([[0], [-1]]))
    out, _ = layer.decode(x[:, 4:], over, cache)
    torch.testing.assert_close(out[:1], layer(x, Positions.arange(2, 5))[:1, 4:])


def test_an_encoding_of_other_sizes_is_refused_when_the_block_is_made():
    with pytest.raises(
        ValueError, match=r"^encoding: RoPE.* is for d_head=64, and this Attention has d_head=8; create it with"
    ):
        Attention(32, 4, RoPE(64))
    with pytest.raises(ValueError, match=r"^encoding: ALiBi.* is for n_heads=8, and this Attention has n_heads=4"):
        Attention(32, 4, Stack(RoPE(8), ALiBi(8)))


def test_forgotten_positions_are_asked_for():
    layer, x = Attention(32, 4, RoPE(8)), torch.randn(2, 3, 32)
    for call in (layer, layer.decode):
        with pytest.raises(TypeError, match=r"^at: expected Positions, got nothing; Positions.arange\(batch, length\)"):
            call(x)
