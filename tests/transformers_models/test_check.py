"""posenc.transformers.model_laws: correct models pass, and what is wrong with a model is named."""

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
    assert report["decode_equals_prefill"].verdict == "passed"
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


@pytest.mark.parametrize(
    ("model_type", "attention", "why"),
    [
        ("llama", "eager", "its attention, eager, takes no position_bias; sdpa and flex_attention do"),
        ("gemma2", "eager", "its attention, eager, takes no position_bias"),
        ("stablelm", None, "its layers hand no position_bias to their attention"),
        ("nemotron", None, "its layers hand no position_bias to their attention"),
        ("mamba", None, "its forward takes no position_bias"),
    ],
)
def test_a_position_bias_that_a_model_does_not_take_is_not_declared(model_type, attention, why):
    result = pt.check(model_of(model_type, attention))["position_bias_is_not_ignored"]
    assert result.verdict == "not declared"
    assert why in result.detail


@pytest.mark.parametrize("model_type", ["gemma2", "stablelm", "nemotron"])
def test_models_that_ignore_a_position_bias_pass(model_type):
    report = pt.check(model_of(model_type))
    assert report.passed, report


def test_attention_that_documents_a_position_bias_and_ignores_it_is_found(monkeypatch):
    def ignores(module, query, key, value, attention_mask, position_bias=None, **named):
        return sdpa(module, query, key, value, attention_mask, **named)

    functions = transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS
    sdpa = functions["sdpa"]
    monkeypatch.setitem(functions._global_mapping, "sdpa", ignores)
    report = pt.check(model_of(attention="sdpa"))
    assert [result.law for result in report.failures] == ["position_bias_is_not_ignored"]
    assert report.failures[0].bug.threads == ("https://github.com/huggingface/transformers/pull/47014",)


OVER_A_CACHE = {
    "decode_equals_prefill",
    "chunked_equals_whole",
    "padded_decoding_equals_alone",
    "decode_equals_prefill_past_the_trained_length",
}


class Hiding(transformers.LlamaForCausalLM):
    """Returns no cache, as a model whose output names it in a new way would look."""

    def forward(self, *args, **named):
        out = super().forward(*args, **named)
        return type(out)(logits=out.logits)


class Refusing(transformers.LlamaForCausalLM):
    """Cannot run with a cache."""

    def forward(self, *args, use_cache=None, **named):
        if use_cache:
            raise RuntimeError("no cache today")
        return super().forward(*args, use_cache=False, **named)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Hiding, "it is made to decode and returns no cache, only logits"),
        (Refusing, "with a cache it raises RuntimeError: no cache"),
    ],
)
def test_what_could_not_be_tried_is_not_passed(kind, why):
    model = kind(config_of("llama")).eval()
    report = pt.check(model)
    assert {result.law for result in report.untried} == OVER_A_CACHE
    assert not report.failures
    assert not report.passed
    assert report.to_dict()["passed"] is False
    assert f"? decode_equals_prefill: not tried, because {why}" in str(report)
    assert pt.check(model, allow_untried=True).passed


def test_a_cache_of_another_name_is_tried():
    """mamba calls it cache_params before transformers 5.24, rwkv has a state: whatever a model returns and takes."""
    for model_type in ("mamba", "rwkv"):
        report = pt.check(model_of(model_type), laws=["decode_equals_prefill", "chunked_equals_whole"])
        assert {result.verdict for result in report.results} <= {"passed", "failed"}


class Renamed(transformers.LlamaForCausalLM):
    """A decoder whose cache is called so in what it takes and in what it returns."""

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, kept=None, use_cache=None):
        out = super().forward(input_ids, attention_mask, position_ids, kept, use_cache=use_cache)
        (cache,) = [one for name, one in out.items() if name != "logits"] or [None]
        return transformers.utils.ModelOutput(logits=out.logits, kept=cache)


def test_a_cache_of_an_unheard_name_is_tried():
    report = pt.check(Renamed(config_of("llama")).eval())
    assert report.passed, report
    assert {report[law].verdict for law in OVER_A_CACHE} == {"passed"}


ENCODERS = {
    "bert": "AutoModelForMaskedLM",
    "roberta": "AutoModelForMaskedLM",
    "modernbert": "AutoModelForMaskedLM",
    "distilbert": "AutoModel",
}


def encoder_of(model_type, loader):
    torch.manual_seed(0)
    return getattr(transformers, loader).from_config(config_of(model_type), dtype=torch.float32).eval()


@pytest.mark.parametrize("model_type", ENCODERS)
def test_encoders_are_tried_without_a_cache(model_type):
    report = pt.check(encoder_of(model_type, ENCODERS[model_type]))
    assert report.passed, report
    assert report["left_padded_equals_alone"].verdict == report["right_padded_equals_alone"].verdict == "passed"
    for law in {*OVER_A_CACHE, "later_tokens_do_not_matter"}:
        assert report[law].verdict == "not applicable"


def test_an_encoder_that_lets_padding_in_is_found():
    model = encoder_of("bert", "AutoModel")
    model.encoder.layer[0].output = Leaking(model.encoder.layer[0].output)
    failed = {result.law for result in pt.check(model).failures}
    assert {"left_padded_equals_alone", "right_padded_equals_alone"} <= failed


class Leaking(torch.nn.Module):
    def __init__(self, own):
        super().__init__()
        self.own = own

    def forward(self, x, rest):
        return self.own(x, rest) + rest.mean(1, keepdim=True)


@pytest.mark.parametrize(
    ("model_type", "loader", "why"),
    [
        ("vit", "AutoModel", "ViTModel reads no tokens: its configuration has no vocab_size"),
        ("clip", "AutoModel", "CLIPModel does not run on input_ids alone: NotImplementedError"),
        ("bert", "AutoModelForSequenceClassification", "has no logits or hidden states for each token"),
        (
            "t5",
            "AutoModelForSeq2SeqLM",
            "T5ForConditionalGeneration is an encoder with a decoder, where one stack of layers is expected",
        ),
    ],
)
def test_models_that_cannot_be_tried_are_refused(model_type, loader, why):
    with pytest.raises(pt.Unsupported, match=why):
        pt.check(encoder_of(model_type, loader))


def test_a_base_model_is_tried_over_its_cache():
    report = pt.check(encoder_of("llama", "AutoModel"))
    assert report.passed, report
    assert {report[law].verdict for law in OVER_A_CACHE} == {"passed"}


def test_dynamic_ntk_depends_on_history():
    model = model_of(rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0})
    report = pt.check(model)
    assert [result.law for result in report.failures] == ["decode_equals_prefill_past_the_trained_length"]
    assert "25104" in report.failures[0].bug.threads[0]
    with pt.length(model, 4096):
        assert pt.check(model, laws=["decode_equals_prefill_past_the_trained_length"]).passed


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
    assert {"decode_equals_prefill", "chunked_equals_whole", "padded_decoding_equals_alone"} <= failed


class Longest(torch.nn.Module):
    """A rotary embedding whose positions are squeezed by the farthest that it has seen, and stay so."""

    def __init__(self, own):
        super().__init__()
        self.own, self.farthest = own, 16

    def forward(self, x, position_ids=None, **named):
        self.farthest = max(self.farthest, int(position_ids.max()) + 1)
        return self.own(x, position_ids * (16 / self.farthest), **named)


def test_a_state_that_earlier_requests_leave_is_found():
    model = model_of()
    model.model.rotary_emb = Longest(model.model.rotary_emb)
    assert "earlier_calls_do_not_matter" in {result.law for result in pt.check(model).failures}


def test_noise_of_the_model_s_own_hides_nothing():
    """Rows that mix, and dropout that is never off, would widen what is allowed."""

    def mixed(module, given, found):
        return found + 0.1 * found.mean(0, keepdim=True) if len(found) > 1 else found

    def dropped(module, given, found):
        return torch.nn.functional.dropout(found, 0.1)

    for hook, law in ((mixed, "batch_mates_do_not_matter"), (dropped, "the_same_call_gives_the_same")):
        model = model_of()
        model.model.layers[0].mlp.register_forward_hook(hook)
        assert law in {result.law for result in pt.check(model).failures}


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
    with pytest.raises(pt.Unsupported, match="expected a language model or an encoder"):
        pt.check(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="laws: model has no law 'padding'"):
        pt.check(model_of(), laws=["padding"])
    with pytest.raises(ValueError, match="seed"):
        pt.check(model_of(), seed=-1)
