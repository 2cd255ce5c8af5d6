"""posenc.transformers.check: correct models pass, and what is wrong with a model is named."""

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from families.harness import config_of

transformers.logging.set_verbosity_error()


def model_of(model_type="llama", attention=None, dtype=torch.float32, **sizes):
    torch.manual_seed(0)
    config = config_of(model_type, **sizes)
    options = {"attn_implementation": attention} if attention else {}
    return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, **options).eval()


@pytest.mark.parametrize("model_type", ["llama", "mistral", "gpt2"])
def test_correct_models_pass(model_type):
    report = pt.check(model_of(model_type))
    assert report.passed, report
    assert report["cached_equals_uncached"].verdict == "passed"
    assert report["packed_equals_separate"].verdict == "passed"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("model_type", ["llama", "qwen3"])
def test_correct_models_of_16_bits_pass(model_type, dtype):
    """The decoded and the whole pass round differently there, by thousands of float32's steps."""
    report = pt.check(model_of(model_type, dtype=dtype))
    assert report.passed, report


def test_a_leak_is_found_in_16_bits():
    model = model_of(dtype=torch.bfloat16)
    model.model.layers[0].mlp = Uncausal(model.model.layers[0].mlp)
    assert "later_tokens_do_not_matter" in {result.law for result in pt.check(model).failures}


def test_what_is_attached_is_checked_and_named():
    model = pt.attach(model_of(), posenc.create("alibi", n_heads=4))
    report = pt.check(model)
    assert report.passed, report
    assert report.identity.facts["attached"] == ["ALiBi"]


def test_eager_attention_ignores_position_bias():
    report = pt.check(model_of(attention="eager"))
    assert [result.law for result in report.failures] == ["position_bias_is_not_ignored"]
    assert report.failures[0].bug.threads == ("https://github.com/huggingface/transformers/pull/47014",)


def test_dynamic_ntk_depends_on_history():
    model = model_of(rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0})
    report = pt.check(model)
    assert [result.law for result in report.failures] == ["cached_equals_uncached_past_the_trained_length"]
    assert "25104" in report.failures[0].bug.threads[0]
    with pt.length(model, 4096):
        assert pt.check(model, laws=["cached_equals_uncached_past_the_trained_length"]).passed


class Counted(torch.nn.Module):
    """A rotary embedding that counts tokens of the call and ignores the positions: the decode offset is lost."""

    def __init__(self, own):
        super().__init__()
        self.own = own

    def forward(self, x, position_ids=None, **named):
        return self.own(x, torch.arange(x.shape[1])[None].expand(x.shape[0], -1), **named)


def test_a_lost_offset_is_found():
    model = model_of()
    model.model.rotary_emb = Counted(model.model.rotary_emb)
    failed = {result.law for result in pt.check(model).failures}
    assert {"cached_equals_uncached", "chunked_equals_whole", "padded_decoding_equals_alone"} <= failed


class FirstRow(torch.nn.Module):
    """A rotary embedding that takes the first row's positions for all rows."""

    def __init__(self, own):
        super().__init__()
        self.own = own

    def forward(self, x, position_ids=None, **named):
        return self.own(x, position_ids[:1].expand(x.shape[0], -1), **named)


def test_positions_of_another_row_are_found():
    model = model_of()
    model.model.rotary_emb = FirstRow(model.model.rotary_emb)
    assert "left_padded_equals_alone" in {result.law for result in pt.check(model).failures}


class Uncausal(torch.nn.Module):
    """An attention whose output depends on the mean of all tokens: the future leaks."""

    def __init__(self, own):
        super().__init__()
        self.own = own

    def forward(self, x):
        return self.own(x + x.mean(1, keepdim=True))


def test_a_leak_from_the_future_or_from_padding_is_found():
    model = model_of()
    model.model.layers[0].mlp = Uncausal(model.model.layers[0].mlp)
    failed = {result.law for result in pt.check(model).failures}
    assert {"later_tokens_do_not_matter", "left_padded_equals_alone", "right_padded_equals_alone"} <= failed


def test_the_model_is_as_it_was():
    model = model_of().train()
    before = torch.random.get_rng_state(), {name: value.clone() for name, value in model.state_dict().items()}
    pt.check(model)
    assert model.training
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert all(torch.equal(value, before[1][name]) for name, value in model.state_dict().items())


def test_bad_input_is_refused():
    with pytest.raises(pt.Unsupported, match="causal language model"):
        pt.check(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="laws: models have no law 'padding'"):
        pt.check(model_of(), laws=["padding"])
    with pytest.raises(ValueError, match="seed"):
        pt.check(model_of(), seed=-1)
