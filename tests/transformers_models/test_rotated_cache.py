"""Keys are rotated once, by the call that brings them; positions and tables are computed once a call."""

import copy
import pickle

import pytest
import torch
from transformers.cache_utils import DynamicCache

import posenc
import posenc.transformers as pt
from posenc.encodings.rope import RoPE
from posenc.kernels.rotation import few_tokens
from transformers_models.test_attach import IDS, WIDTH, logits, made, model_of, near
from transformers_models.test_refused import Rounded

LAYERS = 4


@torch.no_grad()
def test_a_decoded_token_rotates_one_key_a_layer(monkeypatch):
    model = model_of()
    pt.attach(model, made("rope"))
    turned = []
    rotate, rotate_both = RoPE.rotate, RoPE._rotate_both

    def counted(self, x, at, side, out=None):
        if side == "key":
            turned.append(x.shape[2])
        return rotate(self, x, at, side, out)

    def counted_both(self, q, k, at_q, at_k):
        turned.append(k.shape[2])
        return rotate_both(self, q, k, at_q, at_k)

    monkeypatch.setattr(RoPE, "rotate", counted)
    monkeypatch.setattr(RoPE, "_rotate_both", counted_both)
    first = model(input_ids=IDS[:, :9], use_cache=True)
    assert turned == [9] * LAYERS
    model(input_ids=IDS[:, 9:], past_key_values=first.past_key_values)
    assert turned == [9] * LAYERS + [1] * LAYERS


@torch.no_grad()
def test_tables_and_positions_are_computed_once_a_call(monkeypatch):
    model = model_of()
    pt.attach(model, made("rope"))
    first = model(input_ids=IDS[:, :9], use_cache=True)
    calls = {"tables": 0, "positions": 0}
    tables, positions = RoPE.tables, pt.positions.Call._positions

    def counted_tables(self, at, dtype):
        calls["tables"] += 1
        return tables(self, at, dtype)

    def counted_positions(self, keys):
        calls["positions"] += 1
        return positions(self, keys)

    monkeypatch.setattr(RoPE, "tables", counted_tables)
    monkeypatch.setattr(pt.positions.Call, "_positions", counted_positions)
    model(input_ids=IDS[:, 9:], past_key_values=first.past_key_values)
    assert calls == {"tables": 0, "positions": 2}  # of the new token, whose rotation needs no tables, and of all keys
    monkeypatch.setattr(few_tokens, "FEW", 0)
    model(input_ids=IDS[:, 9:], past_key_values=first.past_key_values)
    assert calls == {"tables": 1, "positions": 4}


@torch.no_grad()
def test_the_cache_holds_what_the_model_itself_would_cache():
    """With the model's own RoPE attached, cached keys are the model's own cached keys."""
    model = model_of()
    own = model(input_ids=IDS, use_cache=True).past_key_values
    base = model.config.rope_parameters["rope_theta"]
    pt.attach(model, posenc.create("rope", d_head=WIDTH, base=base, layout="half"))
    ours = model(input_ids=IDS, use_cache=True).past_key_values
    for mine, theirs in zip(ours.layers, own.layers, strict=True):
        near(mine.keys, theirs.keys, 1e-5)
        near(mine.values, theirs.values, 1e-5)


KINDS = ["full_attention", "sliding_attention"] * 2
KEYS = {
    "mistral": {"sliding_window": 4},
    "gemma3n_text": {"layer_types": KINDS, "num_kv_shared_layers": 2, "hidden_size_per_layer_input": 8, "laurel_rank": 8,
                     "sliding_window": 4, "head_dim": WIDTH, "vocab_size_per_layer_input": 32},
}  # fmt: skip


@torch.no_grad()
@pytest.mark.parametrize("model_type", KEYS)
def test_shared_keys_and_windows(model_type):
    """Layers that take the keys of another layer, and caches that forget: chunks equal one pass."""
    model = model_of(model_type, **KEYS[model_type])
    pt.attach(model, posenc.create("xpos", d_head=WIDTH, layout="half"))
    whole = logits(model)
    first = model(input_ids=IDS[:, :6], use_cache=True)
    rest = model(input_ids=IDS[:, 6:], past_key_values=first.past_key_values).logits
    near(torch.cat([first.logits, rest], dim=1), whole)


@torch.no_grad()
def test_a_mask_without_padding_costs_no_fast_path(monkeypatch):
    """generate() passes a mask of ones: positions stay consecutive, so that ALiBi is served by the Toeplitz backend."""
    from posenc.attention.backends import BACKENDS

    model = model_of()
    pt.attach(model, made("alibi"))
    served = []
    attend = BACKENDS["toeplitz"].attend
    monkeypatch.setattr(BACKENDS["toeplitz"], "attend", lambda *given: served.append(1) or attend(*given))
    settings = {"max_new_tokens": 2, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    model.generate(input_ids=IDS, attention_mask=torch.ones_like(IDS), **settings)
    assert len(served) == 2 * LAYERS


def own_rotation_calls(monkeypatch):
    """Counts how often Llama's own rotation runs in models that look it up from now on."""
    from transformers.models.llama import modeling_llama

    calls, own = [], modeling_llama.apply_rotary_pos_emb

    def counted(q, k, cos, sin, unsqueeze_dim=1):
        calls.append(1)
        return own(q, k, cos, sin, unsqueeze_dim)

    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", counted)
    return calls


@torch.no_grad()
def test_the_models_own_rotation_does_not_run_where_another_is_attached(monkeypatch):
    calls = own_rotation_calls(monkeypatch)
    model = model_of()
    own = logits(model)
    pt.attach(model, made("rope"), layers=[0, 2])
    pt.attach(model, made("alibi"), layers=[3])
    calls.clear()
    expected = logits(model)
    assert len(calls) == 1
    assert torch.equal(logits(copy.deepcopy(model)), expected)
    assert len(calls) == 2
    pt.fast(model)
    calls.clear()
    near(logits(model), expected, 1e-6)
    assert not calls
    pt.slow(model)
    assert torch.equal(logits(model), expected)
    pt.detach(model)
    assert torch.equal(logits(model), own)
    assert not any("forward" in vars(module) for module in model.modules())


@torch.no_grad()
def test_a_forward_that_is_replaced_afterwards_computes_the_same():
    """Pickled models lose the bound forward, and other libraries wrap it: the encoding is then applied in attention."""
    model = model_of()
    pt.attach(model, made("rope"))
    expected = logits(model)
    near(logits(pickle.loads(pickle.dumps(model))), expected)
    for module in model.modules():
        if "forward" in vars(module):
            kept = module.forward
            module.forward = lambda *given, kept=kept, **named: kept(*given, **named)
    near(logits(model), expected)


@torch.no_grad()
@pytest.mark.parametrize("name", ["rope", "xpos"])
def test_values_that_turn_are_turned_in_the_cache(name):
    """The model's rotation has no values: an encoding that turns them goes the other way, with the same laws."""
    model = model_of()
    sides = ("query", "key", "value", "output")
    encoding = posenc.create(name, d_head=WIDTH, layout="half")
    if name == "rope":
        encoding = RoPE(WIDTH, sides=sides, layout="half")
    pt.attach(model, encoding)
    first = model(input_ids=IDS[:, :6], use_cache=True)
    rest = model(input_ids=IDS[:, 6:], past_key_values=first.past_key_values).logits
    near(torch.cat([first.logits, rest], dim=1), logits(model))
    assert any("forward" in vars(module) for module in model.modules()) == (name == "xpos")


class Eighth(Rounded):
    """A quantised cache of eight bits for each number."""

    def _quantize(self, tensor, axis):
        return tensor.to(torch.float8_e4m3fn)


def quantised():
    cache = DynamicCache()
    cache.layers = [Eighth() for _ in range(LAYERS)]
    return cache


def in_parts(model, cache, between=lambda cache: None):
    """The logits of two more calls over the cache of eight tokens; `between` is done after each."""
    model(input_ids=IDS[:, :8], past_key_values=cache)
    found = []
    for n in (8, 9):
        between(cache)
        found.append(model(input_ids=IDS[:, n : n + 1], past_key_values=cache).logits)
    return torch.cat(found, dim=1)


def rounded(cache):
    """What a quantised cache keeps of its first tokens; later ones wait until there are enough of them."""
    for layer in cache.layers:
        for x in (layer.keys, layer.values):
            x[:, :, :8] = x[:, :, :8].to(torch.float8_e4m3fn).float()


@torch.no_grad()
@pytest.mark.parametrize("name", ["alibi", "t5", "nope", "cope", "sinusoidal", "rope", "xpos"])
def test_a_quantised_cache_reads_what_was_rounded(name):
    model = pt.attach(model_of(), made(name))
    found = in_parts(model, quantised())
    near(found, in_parts(model, DynamicCache(), rounded))
    assert (found - in_parts(model, DynamicCache())).abs().max() > 1e-4  # it rounds


@torch.no_grad()
def test_the_models_own_rope_attached_rounds_as_the_model_does():
    model = model_of()
    own = in_parts(model, quantised())
    pt.attach(model, posenc.create("rope", d_head=WIDTH, layout="half"))
    near(in_parts(model, quantised()), own)
