"""Tokens dropped from a cache: what follows is what follows the kept tokens."""

import math

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from transformers_models.test_attach import IDS, WIDTH, logits, made, model_of, near
from transformers_models.test_refused import Rounded

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
    quantised = transformers.DynamicCache()
    quantised.layers = [Rounded() for _ in range(4)]
    other = pt.attach(model_of(), made("alibi"))
    for cache in (
        read(other, past_key_values=quantised),
        transformers.StaticCache(config=model.config, max_cache_len=8),
        transformers.DynamicCache(),
        [(torch.zeros(2, 4, 8, 16),) * 2],
    ):
        with pytest.raises(TypeError, match="cache: expected a dynamic or static cache that has read tokens, got"):
            pt.evict(other, cache, KEEP)
        with pytest.raises(TypeError, match="cache: expected a dynamic or static cache that has read tokens, got"):
            pt.crop(cache, [3, 4])


# Rows of their own: row 0 keeps five tokens and row 1 three, of eight.
ROWS = [KEEP, [0, 5, 7]]
STAYS = torch.tensor([[n in row for n in range(8)] for row in ROWS])


def row_alone(model, row, kept):
    """The logits of the last two tokens of a row that has read these tokens alone."""
    return logits(model, torch.cat([IDS[row, kept], IDS[row, 8:]])[None])[0, -2:]


def after(model, cache, counts):
    """The logits of two more tokens; rows that hold fewer than the longest begin with padding."""
    counts, most = torch.tensor(counts), max(counts)
    mask = torch.cat([torch.arange(most) >= most - counts[:, None], torch.ones(len(counts), 2, dtype=torch.bool)], dim=1)
    return logits(model, IDS[:, 8:], past_key_values=cache, attention_mask=mask.long())


@pytest.mark.parametrize("name", [*MOVED, *LIVELY, *STILL])
def test_each_row_goes_on_as_after_its_own_kept_tokens(name):
    model = model_of(num_hidden_layers=1)
    pt.attach(model, encoding_of(name))
    cache = pt.evict(model, read(model), STAYS)
    assert cache.get_seq_length() == 5
    found = after(model, cache, [5, 3])
    for row, kept in enumerate(ROWS):
        near(found[row], row_alone(model, row, kept))


@pytest.mark.parametrize("keep", ["a mask of padding too", "a mask without padding"])
def test_padding_is_dropped_where_the_attention_mask_is_given(keep):
    """Row 0 begins with two tokens of padding: its tokens 2 to 7 stand at 0 to 5."""
    model = model_of(num_hidden_layers=1)
    pt.attach(model, made("rope"))
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[0, :2] = 0
    stays = STAYS if keep == "a mask of padding too" else STAYS & mask.bool()
    found = after(model, pt.evict(model, read(model, attention_mask=mask), stays, mask), [3, 3])
    near(found[0], row_alone(model, 0, [4, 6, 7]))
    near(found[1], row_alone(model, 1, ROWS[1]))


def static(model, length=12):
    return transformers.StaticCache(config=model.config, max_cache_len=length)


def shorter(model):
    """A window goes on beyond the length of a static cache."""
    return static(model, 7)


def windows(model):
    return transformers.DynamicCache(config=model.config)


LATE = [[0, 2, 4, 5, 6, 7], [1, 3, 5, 6, 7]]  # a window of four sees the last three, and the new token itself
LATE_STAYS = torch.tensor([[n in row for n in range(8)] for row in LATE])


@pytest.mark.parametrize("name", ["rope", "alibi", "xpos"])
@pytest.mark.parametrize(("window", "make"), [(None, static), (4, windows), (4, static), (4, shorter)])
def test_static_and_sliding_caches_go_on_as_after_the_kept_tokens(name, window, make):
    kind = ("llama", {}) if window is None else ("mistral", {"sliding_window": window})
    model = model_of(kind[0], num_hidden_layers=1, **kind[1])
    pt.attach(model, made(name))
    cache = make(model)
    before = None if make is windows else read(model, past_key_values=cache).layers[0].keys
    cache = cache if before is not None else read(model)
    assert type(cache.layers[0]).__name__ != "DynamicLayer"
    assert pt.evict(model, cache, LATE_STAYS) is cache
    assert before is None or cache.layers[0].keys.data_ptr() == before.data_ptr()
    found = after(model, cache, [6, 5])
    for row, kept in enumerate(LATE):
        near(found[row], row_alone(model, row, kept))


@pytest.mark.parametrize("make", [static, windows])
@pytest.mark.parametrize("kept", [[0, 1, 2, 3, 4, 5, 6, 7], [2, 5, 6, 7], [5, 6, 7], [6, 7]], ids=str)
def test_layers_with_and_without_windows_go_on_as_from_a_plain_cache(make, kept):
    """All layers of a model that has both kinds; a plain cache holds all tokens, and the mask of a layer hides them."""
    kinds = {"layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 4}
    model = pt.attach(model_of("qwen2", use_sliding_window=True, num_hidden_layers=4, **kinds), made("rope"))
    cache = make(model)
    read(model, past_key_values=cache)
    assert len({type(layer) for layer in cache.layers}) == 2
    plain = read(model, past_key_values=transformers.DynamicCache())
    if kept == [6, 7]:
        kept = [0, 6, 7]
        with pytest.raises(ValueError, match="keep: the window of layer 0 would see the last 3"):
            pt.evict(model, windows_of(model), kept)
        return
    for one in (cache, plain):
        pt.evict(model, one, kept)
    near(after(model, cache, [len(kept)] * 2), after(model, plain, [len(kept)] * 2))


def windows_of(model):
    return read(model, past_key_values=windows(model))


def test_a_refused_eviction_changes_nothing():
    model = pt.attach(model_of("mistral", sliding_window=4), made("rope"))
    for cache in (windows_of(model), read(model, past_key_values=static(model))):
        before = [(layer.keys.clone(), layer.values.clone()) for layer in cache.layers]
        with pytest.raises(ValueError, match=r"keep: the window of layer 0 would see the last 3 kept tokens, and of all 8"):
            pt.evict(model, cache, [0, 6, 7])
        for wrong in (STAYS[:, :5], STAYS[:1].expand(3, -1)):
            with pytest.raises(ValueError, match=r"keep: expected a mask \[2, 8\] or \[1, 8\]"):
                pt.evict(model, cache, wrong)
        with pytest.raises(ValueError, match=r"attention_mask: expected \[2, 8\]"):
            pt.evict(model, cache, STAYS, torch.ones(2, 9))
        with pytest.raises(ValueError, match="keep: expected at least one token"):
            pt.evict(model, cache, torch.zeros(2, 8, dtype=torch.bool))
        for layer, (keys, values) in zip(cache.layers, before, strict=True):
            assert torch.equal(layer.keys, keys)
            assert torch.equal(layer.values, values)
        assert int(cache.get_seq_length()) == 8


@pytest.mark.parametrize("name", ["rope", "alibi", "t5", "xpos", "cope", "sinusoidal", "fox", "path", "pope"])
@pytest.mark.parametrize("padded", [False, True])
def test_rows_are_cropped_as_if_rejected_drafts_had_never_been_read(name, padded):
    """Exact in every layer, since no token moves: keys may hold what they like."""
    model = pt.attach(model_of(num_hidden_layers=2), made(name))
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[0, : 2 * padded] = 0
    lengths = [3, 7]
    cache = pt.crop(read(model, attention_mask=mask), lengths, mask)
    assert cache.get_seq_length() == 7
    found = after(model, cache, lengths)
    for row, (length, first) in enumerate(zip(lengths, [2 * padded, 0], strict=True)):
        near(found[row], row_alone(model, row, list(range(first, first + length))))


def test_static_rows_and_rows_of_the_models_own_encoding_are_cropped():
    model = model_of(num_hidden_layers=2)
    cache = pt.crop(read(model, past_key_values=static(model)), [3, 6])
    numbers = torch.tensor([[3, 4], [6, 7]])
    mask = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1], [1] * 8])
    found = logits(model, IDS[:, 8:], past_key_values=cache, attention_mask=mask, position_ids=numbers)
    for row, length in enumerate([3, 6]):
        near(found[row], row_alone(model, row, list(range(length))))
    for wrong in ([3], [3, 9], [-1, 2], [3, 2, 1]):
        with pytest.raises(ValueError, match=r"lengths: rows have \[8, 8\] tokens, expected no more of each, got"):
            pt.crop(cache, wrong)
    assert pt.crop(cache, [0, 0]).get_seq_length() == 0
    near(logits(model, past_key_values=cache), logits(model))


def test_a_window_that_has_dropped_tokens_cannot_be_cropped():
    model = pt.attach(model_of("mistral", sliding_window=4), made("rope"))
    with pytest.raises(ValueError, match="the window of layer 0 would see the last 3"):
        pt.crop(windows_of(model), [8, 7])
