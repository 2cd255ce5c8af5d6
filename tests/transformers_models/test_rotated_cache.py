"""Keys are rotated once, by the call that brings them; positions and tables are computed once a call."""

import pytest
import torch

import posenc
import posenc.transformers as pt
from posenc.encodings.rope import RoPE
from transformers_models.test_attach import IDS, WIDTH, logits, made, model_of, near

LAYERS = 4


@torch.no_grad()
def test_a_decoded_token_rotates_one_key_a_layer(monkeypatch):
    model = model_of()
    pt.attach(model, made("rope"))
    turned = []
    rotate = RoPE.rotate

    def counted(self, x, at, side, out=None):
        if side == "key":
            turned.append(x.shape[2])
        return rotate(self, x, at, side, out)

    monkeypatch.setattr(RoPE, "rotate", counted)
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
    assert calls == {"tables": 1, "positions": 2}  # of the new token, and of all keys


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
    pt.attach(model, posenc.create("xpos", d_head=WIDTH))
    whole = logits(model)
    first = model(input_ids=IDS[:, :6], use_cache=True)
    rest = model(input_ids=IDS[:, 6:], past_key_values=first.past_key_values).logits
    near(torch.cat([first.logits, rest], dim=1), whole)


@torch.no_grad()
def test_a_mask_without_padding_costs_no_fast_path(monkeypatch):
    """generate() passes a mask of ones: positions stay consecutive, so that ALiBi is served by the Toeplitz backend."""
    from posenc.backends import BACKENDS

    model = model_of()
    pt.attach(model, made("alibi"))
    served = []
    attend = BACKENDS["toeplitz"].attend
    monkeypatch.setattr(BACKENDS["toeplitz"], "attend", lambda *given: served.append(1) or attend(*given))
    settings = {"max_new_tokens": 2, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    model.generate(input_ids=IDS, attention_mask=torch.ones_like(IDS), **settings)
    assert len(served) == 2 * LAYERS
