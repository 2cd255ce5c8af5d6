"""The life of a model with an encoding: another dtype, int8 weights, and a cache that is cut back."""

import copy
import warnings

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from transformers_models.test_attach import IDS, logits, made, model_of, near
from transformers_models.test_reads import encoding
from transformers_models.test_versions import HERE

transformers.logging.set_verbosity_error()
FIXED = ["rope", "alibi", "sinusoidal", "xpos"]
LEARNED = ["t5", "shaw", "cope", "transformer_xl"]
READING = ["fox on rope", "path"]


def attached(name, model):
    return pt.attach(model, encoding(name) if name in READING else made(name))


@pytest.mark.parametrize("name", FIXED)
def test_a_model_changed_to_bfloat16_is_one_that_was_so_before(name):
    """Bit for bit: what is attached has no numbers that `to` could round."""
    after = attached(name, model_of()).to(torch.bfloat16)
    before = attached(name, model_of().to(torch.bfloat16))
    assert torch.equal(logits(after), logits(before))
    assert not list(pt.parameters(after))


@pytest.mark.parametrize("name", ["rope", "alibi", "t5"])
def test_in_bfloat16_distances_are_the_same_at_100000_tokens(name):
    """bfloat16 knows no number between 100 000 and 100 352: positions and angles must not be computed in it."""
    model = attached(name, model_of()).to(torch.bfloat16)
    at = torch.arange(IDS.shape[1])[None]
    near(logits(model, position_ids=at + 100_000).float(), logits(model, position_ids=at).float(), 1e-2)
    moved = logits(model, position_ids=at * 7).float() - logits(model, position_ids=at).float()
    assert moved.abs().max() > 2e-2


@pytest.mark.parametrize("name", [*LEARNED, *READING])
def test_in_bfloat16_decoding_equals_one_pass(name):
    model = attached(name, model_of()).to(torch.bfloat16)
    with torch.no_grad():
        first = model(input_ids=IDS[:, :6], use_cache=True)
        rest = model(input_ids=IDS[:, 6:], **{HERE: first.past_key_values}).logits
    near(rest.float(), logits(model)[:, 6:].float(), 2e-2)


def quantised(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)


@pytest.mark.parametrize("name", [*FIXED, "t5"])
def test_int8_weights_before_and_after_are_the_same(name):
    """torch's dynamic int8 packs the weights of projections, which then have no parameters; what is attached stays."""
    after = quantised(attached(name, model_of()))
    before = attached(name, quantised(model_of()))
    assert torch.equal(logits(after), logits(before))
    plain = logits(attached(name, model_of()))
    assert 0 < (logits(after) - plain).abs().max() < 0.1 * plain.abs().max()
    for one, other in zip(pt.parameters(after), pt.parameters(before), strict=True):
        assert one.dtype == torch.float32
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", [*FIXED, *LEARNED, *READING, "nope"])
def test_a_cache_that_is_cut_back_goes_on_as_if_the_rest_had_not_been(name):
    """Speculative decoding: tokens that are not accepted are cropped, others follow."""
    model = attached(name, model_of())
    other = (IDS + 1) % 30
    with torch.no_grad():
        cache = model(input_ids=torch.cat([IDS[:, :6], other[:, 6:]], 1), use_cache=True).past_key_values
        cache.crop(-4)
        rest = model(input_ids=IDS[:, 6:], **{HERE: cache}).logits
    near(rest, logits(model)[:, 6:])
    assert (rest - logits(model, torch.cat([other[:, :6], IDS[:, 6:]], 1))[:, 6:]).abs().max() > 1e-4


def test_a_copy_in_another_dtype_leaves_the_model_as_it_was():
    model = attached("t5", model_of())
    before = logits(model)
    copy.deepcopy(model).to(torch.bfloat16)
    assert torch.equal(logits(model), before)


def test_xpos_agrees_in_float16_within_the_length_that_it_names():
    model = attached("xpos", model_of())
    expected = logits(model)
    near(logits(model.to(torch.float16)).float(), expected, 1e-2)
    assert posenc.create("xpos", d_head=16).largest_position(torch.float16) > IDS.shape[1]
