"""Tokens dropped from a cache: what follows is what follows the kept tokens."""

import math

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from transformers_models.test_attach import IDS, WIDTH, logits, made, model_of, near

transformers.logging.set_verbosity_error()
KEEP = [0, 1, 4, 6, 7]
MOVED = ("rope", "xpos", "rope and alibi", "rope and log_n", "log_n and rope and alibi", *("values too", "values alone"))
LIVELY = {"log_n": {"trained_length": 2}, "llama4_temperature": {"scale": 0.5, "trained_length": 2}}
STILL = ("alibi", "t5", "shaw", "nope", "cope", "ssmax", "mistral_large4_temperature")
SIDES = {"values too": ("query", "key", "value", "output"), "values alone": ("value", "output")}


def encoding_of(name):
    if name in SIDES:
        return posenc.create("rope", d_head=WIDTH, layout="half", base=50.0, sides=SIDES[name])
    parts = [posenc.create(part, **LIVELY[part]) if part in LIVELY else made(part) for part in name.split(" and ")]
    return parts[0] if len(parts) == 1 else posenc.Stack(posenc.Stack(*parts[:2]), *parts[2:])


def read(model, ids=IDS[:, :8], **given):
    with torch.no_grad():
        return model(input_ids=ids, use_cache=True, **given).past_key_values


def after_kept_tokens(model, **given):
    return logits(model, torch.cat([IDS[:, KEEP], IDS[:, 8:]], dim=1), **given)[:, len(KEEP) :]


@pytest.mark.parametrize("name", [*MOVED, *LIVELY, *STILL])
def test_one_layer_goes_on_as_after_the_kept_tokens_alone(name):
    """The keys of a first layer hold nothing of other tokens, so this is exact there."""
    model = model_of(num_hidden_layers=1)
    pt.attach(model, encoding_of(name))
    expected = after_kept_tokens(model)
    cache = pt.evict(model, read(model), KEEP)
    assert cache.get_seq_length() == len(KEEP)
    near(logits(model, IDS[:, 8:], past_key_values=cache), expected)
    left = read(model)
    for layer in left.layers:
        layer.keys, layer.values = layer.keys[:, :, KEEP], layer.values[:, :, KEEP]
    matters = (logits(model, IDS[:, 8:], past_key_values=left) - expected).abs().max() > 1e-4
    assert matters == (name in MOVED)


def test_keys_of_every_layer_stand_at_their_new_places_by_hand():
    """Pair i of RoPE at p has the angle p·10000^(-2i/d): a key moves by the angle of its move, values stay."""
    model = model_of()
    pt.attach(model, posenc.create("rope", d_head=WIDTH, layout="half"))
    before, after = read(model), pt.evict(model, read(model), torch.tensor(KEEP))
    half = WIDTH // 2
    for old, new in zip(before.layers, after.layers, strict=True):
        assert torch.equal(new.values, old.values[:, :, KEEP])
        for place, token in enumerate(KEEP):
            for i in range(half):
                angle = (place - token) * 10000.0 ** (-2 * i / WIDTH)
                x, y = old.keys[:, :, token, i], old.keys[:, :, token, half + i]
                near(new.keys[:, :, place, i], x * math.cos(angle) - y * math.sin(angle))
                near(new.keys[:, :, place, half + i], y * math.cos(angle) + x * math.sin(angle))


def test_layers_of_irope_move_where_they_rotate():
    """Layers 0 to 2 rotate; layer 3 multiplies its queries only, so that its keys stay bit for bit."""
    model = model_of()
    pt.attach(model, posenc.create("irope", d_head=WIDTH, n_layers=4, layout="half"))
    before, after = read(model), pt.evict(model, read(model), KEEP)
    stays = [torch.equal(new.keys, old.keys[:, :, KEEP]) for old, new in zip(before.layers, after.layers, strict=True)]
    assert stays == [False, False, False, True]


def test_padding_that_is_kept():
    """The first row has two tokens of padding on its left."""
    model = model_of(num_hidden_layers=1)
    pt.attach(model, made("rope"))
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[0, :2] = 0
    cache = pt.evict(model, read(model, attention_mask=mask), KEEP)
    longer = torch.cat([mask[:, KEEP], mask.new_ones(2, 2)], dim=1)
    near(
        logits(model, IDS[:, 8:], past_key_values=cache, attention_mask=longer),
        after_kept_tokens(model, attention_mask=longer),
    )


@pytest.mark.parametrize("keep", [[], [3, 3], [4, 1], [-1, 2], [5, 8], [0.0, 1.0], [[0, 1]]], ids=str)
def test_indices_that_there_are_not(keep):
    model = model_of()
    pt.attach(model, made("alibi"))
    cache = read(model)
    with pytest.raises(ValueError, match="keep: expected"):
        pt.evict(model, cache, keep)
    assert cache.get_seq_length() == 8


def test_what_cannot_be_moved_is_refused():
    model = model_of()
    with pytest.raises(ValueError, match="nothing is attached"):
        pt.evict(model, read(model), KEEP)
    pt.attach(model, made("alibi"), layers=[0])
    with pytest.raises(ValueError, match="layer 1 has the model's own encoding"):
        pt.evict(model, read(model), KEEP)
    for name in ("sinusoidal", "fox"):
        other = pt.attach(model_of(), made(name))
        with pytest.raises(ValueError, match="hold more than a rotation of their position"):
            pt.evict(other, read(other), KEEP)
    other = pt.attach(model_of(), made("pope"))
    with pytest.raises(TypeError, match=r"layer 0 holds .* are not moved"):
        pt.evict(other, read(other), KEEP)
    windows = pt.attach(model_of("mistral", sliding_window=4), made("alibi"))
    for cache in (
        read(windows),
        transformers.StaticCache(config=model.config, max_cache_len=8),
        transformers.DynamicCache(),
    ):
        with pytest.raises(TypeError, match="cache: expected a dynamic cache"):
            pt.evict(windows, cache, KEEP)
