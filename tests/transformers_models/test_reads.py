"""Encodings that read hidden states, attached: those of the catalogue's kind work, others are refused by name."""

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from transformers.cache_utils import StaticCache

import posenc
import posenc.transformers as pt
from posenc.encodings.bases.content_dependent import ReadsHidden
from posenc.encodings.bases.distance_bank import DistanceBank
from posenc.encodings.bases.temperature import TemperedBias
from posenc.encodings.convolutional import Convolutional
from posenc.encodings.fox import FoX
from posenc.encodings.of_families.t5_content import T5OfContent
from posenc.encodings.of_families.t5_gated import GatedT5
from posenc.encodings.of_families.zipformer import ZipformerPositions
from transformers_models.test_attach import HEADS, IDS, WIDTH, by_hand, logits, made, model_of, near

MADE = {
    "t5_content": lambda: T5OfContent(HEADS, HEADS * WIDTH),
    "t5_gated": lambda: GatedT5(HEADS, WIDTH),
    "distance_bank": lambda: DistanceBank(HEADS, HEADS * WIDTH, extent=64),
    "distance_bank with a temperature": lambda: DistanceBank(HEADS, HEADS * WIDTH, extent=64, floor=4),
    "stacked": lambda: posenc.Stack(posenc.create("rope", d_head=WIDTH, layout="half"), T5OfContent(HEADS, HEADS * WIDTH)),
    "fox": lambda: FoX(HEADS * WIDTH, HEADS),
    "per_row_fox": lambda: posenc.create("per_row_fox", d_model=64, n_heads=HEADS),
    "bidirectional_fox": lambda: posenc.create("bidirectional_fox", d_model=64, n_heads=HEADS),
    "fox on rope": lambda: posenc.Stack(posenc.create("rope", d_head=WIDTH, layout="half"), FoX(HEADS * WIDTH, HEADS)),
    "selective_rope": lambda: posenc.create("selective_rope", d_model=64, n_heads=HEADS, n_kv_heads=2, d_head=WIDTH),
    "path": lambda: posenc.create("path", d_model=64, n_heads=HEADS, n_kv_heads=2, d_head=WIDTH),
    "wall": lambda: posenc.create("wall", d_model=64, n_heads=HEADS, n_kv_heads=2, d_head=WIDTH),
    "carope": lambda: posenc.create("carope", d_model=64, n_heads=HEADS, n_kv_heads=2, d_head=WIDTH),
    "grape_ap": lambda: posenc.create("grape_ap", d_model=64, n_heads=HEADS, d_head=WIDTH),
    "repo": lambda: posenc.create("repo", d_model=64, n_heads=HEADS, n_kv_heads=2, d_head=WIDTH),
    "pape": lambda: posenc.create("pape", d_model=64, n_heads=HEADS, axes=1),
    "zipformer": lambda: ZipformerPositions(64, HEADS, pos_dim=8),
    "of queries": lambda: T5OfContent(HEADS, WIDTH, reads="query"),
}


def encoding(name):
    torch.manual_seed(1)
    return posenc.laws.draw_parameters(MADE[name](), std=0.3)


@pytest.mark.parametrize("name", MADE)
def test_cached_and_padded(name):
    """Chunks over a cache equal one pass, a left-padded row equals the row alone, and what is read matters."""
    model = model_of()
    pt.attach(model, encoding(name))
    whole = logits(model)
    with torch.no_grad():
        first = model(input_ids=IDS[:, :6], use_cache=True)
        then = model(input_ids=IDS[:, 6:9], past_key_values=first.past_key_values)
        last = model(input_ids=IDS[:, 9:], past_key_values=then.past_key_values).logits
    near(torch.cat([first.logits, then.logits, last], dim=1), whole, 5e-5)
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), IDS[:1]], dim=1)
    mask = torch.tensor([[0] * 3 + [1] * 10])
    near(logits(model, padded, attention_mask=mask)[:, 3:], whole[:1], 5e-5)
    pt.detach(model)
    pt.attach(model, posenc.create("nope"))
    assert (logits(model) - whole).abs().max() > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("name", [*MADE, "cable", "path_fox"])
def test_after_drafts_that_one_row_rejected(name):
    """The mask hides two cached drafts of the second row: what follows is what follows the kept tokens alone."""
    model = model_of()
    pt.attach(model, encoding(name) if name in MADE else made(name))
    cache = model(input_ids=IDS[:, :5], use_cache=True).past_key_values
    cache = model(input_ids=IDS[:, 5:8], past_key_values=cache).past_key_values
    mask = torch.ones(2, 10, dtype=torch.long)
    mask[1, 6:8] = 0
    out = model(input_ids=IDS[:, 8:], past_key_values=cache, attention_mask=mask).logits
    near(out[:1], logits(model, IDS[:1])[:, 8:], 5e-5)
    kept = mask[1].bool()
    near(out[1:], logits(model, IDS[1:, kept])[:, 6:], 5e-5)
    near(logits(model, attention_mask=mask)[1:, kept], logits(model, IDS[1:, kept]), 5e-5)


@torch.no_grad()
def test_what_is_read_is_what_goes_into_the_projections():
    """A model of one layer, written out: the bias is W x + w at the distance, x the normed hidden state."""
    model = model_of(num_hidden_layers=1)
    reading = encoding("t5_content")
    x = model.model.layers[0].input_layernorm(model.model.embed_tokens(IDS))
    numbers = torch.einsum("btm,hnm->bhtn", x, reading.project) + reading.offset[:, None]
    distance = torch.arange(10)[:, None] - torch.arange(10)  # below 16, every distance has a bucket of its own
    bias = numbers.gather(3, distance.clamp(min=0).expand(*numbers.shape[:2], 10, 10))
    expected = by_hand(model, None, bias)
    pt.attach(model, reading)
    near(logits(model), expected)


def test_parameters_that_read_learn():
    model = model_of()
    pt.attach(model, encoding("t5_content"))
    model.train()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model(input_ids=IDS, labels=IDS, use_cache=False).loss.backward()
    assert all(one.grad is not None and one.grad.abs().max() > 0 for one in pt.parameters(model))


class Moves(posenc.PositionalEncoding):
    """Moves positions, which a cache of transformers does not keep."""

    def read_hidden(self, x, at, past=None):
        return at.replaced(coords=at.coords + 1)


TWO_AXES = posenc.frequencies.axial(posenc.frequencies.rotary(WIDTH // 2))
REFUSED = {
    "other positions": (Moves, pt.Unsupported, "encoding: Moves moves positions as hidden states say"),
    "neighbours": (lambda: Convolutional(64), pt.Unsupported, "encoding: Convolutional reads neighbouring tokens"),
    "another width": (lambda: T5OfContent(HEADS, 48), ValueError, "encoding: T5OfContent does not fit layer 0: .*d_in"),
    "two axes": (
        lambda: posenc.create("rope", d_head=WIDTH, frequencies=TWO_AXES, layout="half"),
        ValueError,
        r"encoding: RoPE does not fit layer 0: .*reads 2 coordinate\(s\)",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_layer_cannot_hand_over_is_refused_before_anything_changes(what):
    make, error, said = REFUSED[what]
    model = model_of()
    own, keys = logits(model), set(model.state_dict())
    with pytest.raises(error, match=said):
        pt.attach(model, make())
    assert torch.equal(logits(model), own)
    assert set(model.state_dict()) == keys


def test_every_encoding_that_reads_hidden_states_is_tried_here():
    """But not what is made of one of them: TemperedBias, Stack, subclasses of FoX and PaTH; nor their base classes."""
    tried = tuple({type(part) for name in MADE for part in MADE[name]().modules()} - {torch.nn.Module})
    reading = {
        kind
        for kind in subclasses(posenc.PositionalEncoding)
        if kind.read_hidden is not posenc.PositionalEncoding.read_hidden
    }
    others = {kind for kind in reading if kind.__module__.startswith("posenc.") and not issubclass(kind, tried)}
    left = {kind for kind in others if not any(issubclass(one, kind) for one in tried)}
    assert left <= {ReadsHidden, TemperedBias}


def subclasses(kind):
    return {kind}.union(*map(subclasses, kind.__subclasses__()))


@torch.no_grad()
@pytest.mark.parametrize("name", ["fox on rope", "path"])
def test_what_was_read_follows_the_keys(name):
    """Beams reorder the cache, assisted decoding cuts it back, a window forgets: tokens are those without a cache."""
    model = model_of()
    pt.attach(model, encoding(name))
    prompt = {"input_ids": IDS, "attention_mask": torch.tensor([[0] * 4 + [1] * 6, [1] * 10])}
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    plain = model.generate(**prompt, **settings, use_cache=False)
    assert torch.equal(model.generate(**prompt, **settings), plain)
    beams = model.generate(**prompt, **settings, num_beams=3)
    assert torch.equal(beams, model.generate(**prompt, **settings, num_beams=3, use_cache=False))
    draft = pt.attach(model_of(num_hidden_layers=2), posenc.create("nope"))
    alone = model.generate(input_ids=IDS[:1], **settings)
    assert torch.equal(model.generate(input_ids=IDS[:1], **settings, assistant_model=draft), alone)
    assert torch.equal(model.generate(**prompt, **settings, cache_implementation="static"), plain)
    half = model.to(torch.bfloat16)
    first = half(input_ids=IDS[:, :6], use_cache=True)
    rest = half(input_ids=IDS[:, 6:], past_key_values=first.past_key_values).logits
    near(rest.float(), logits(half)[:, 6:].float(), 0.05)


@torch.no_grad()
@pytest.mark.parametrize("name", [*MADE, "cable", "path_fox"])
@pytest.mark.parametrize("window", [None, 4])
def test_chunks_over_a_static_cache_equal_one_pass(name, window):
    """Columns that are not written hold zeros, which no state goes on from; a window that is full moves its columns."""
    kind = ("llama", {}) if window is None else ("mistral", {"sliding_window": window})
    model = model_of(kind[0], num_hidden_layers=2, **kind[1])
    pt.attach(model, encoding(name) if name in MADE else made(name))
    whole, cache = logits(model), StaticCache(config=model.config, max_cache_len=14)
    parts = [(0, 3), (3, 4), (4, 7), (7, 8), (8, 10)]
    found = [model(input_ids=IDS[:, first:end], past_key_values=cache).logits for first, end in parts]
    near(torch.cat(found, dim=1), whole, 5e-5)


@torch.no_grad()
@pytest.mark.acceptance
@pytest.mark.parametrize("name", ["fox on rope", "path"])
def test_one_graph_over_a_static_cache_with_states(name):
    model = pt.attach(model_of(num_hidden_layers=2), encoding(name))
    whole, graphs = logits(model), CompileCounter()
    torch._dynamo.reset()
    step = torch.compile(model, fullgraph=True, backend=graphs, dynamic=False)
    cache = StaticCache(config=model.config, max_cache_len=16)
    found = [model(input_ids=IDS[:, :6], past_key_values=cache).logits]
    found += [step(input_ids=IDS[:, n : n + 1], past_key_values=cache).logits for n in (6, 7, 8, 9)]
    near(torch.cat(found, dim=1), whole, 5e-5)
    assert graphs.frame_count == 1
