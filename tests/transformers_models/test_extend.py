"""posenc.transformers.extend and register_rope on tiny random models, against models that transformers builds itself."""

import copy

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from families.harness import config_of
from posenc.configs import spec_of
from posenc.configs.report.extension import extend

transformers.logging.set_verbosity_error()
IDS = torch.randint(3, 30, (2, 90), generator=torch.Generator().manual_seed(0))
TRAINED = 32  # positions


def model_of(model_type="llama", **sizes):
    torch.manual_seed(0)
    config = config_of(model_type, max_position_embeddings=TRAINED, **sizes)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


@torch.no_grad()
def logits(model):
    return model(input_ids=IDS, use_cache=False).logits


def fresh(model, config):
    """A model that transformers builds from `config`, with the weights of `model`."""
    made = transformers.AutoModelForCausalLM.from_config(copy.deepcopy(config), dtype=torch.float32).eval()
    made.load_state_dict(model.state_dict())
    return made


LONG = {"short_factor": [1.0] * 8, "long_factor": [1.0 + i / 4 for i in range(8)]}
WRITTEN = {  # method, options -> rope_parameters as transformers documents them
    "yarn": ({}, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}),
    "yarn, options": (
        {"factor": 3.0, "beta_fast": 8.0, "attention_factor": 1.5},
        {
            "rope_type": "yarn",
            "factor": 3.0,
            "original_max_position_embeddings": 32,
            "beta_fast": 8.0,
            "attention_factor": 1.5,
        },
    ),
    "linear": ({}, {"rope_type": "linear", "factor": 4.0}),
    "ntk": ({}, {"rope_type": "default", "rope_theta": 10000.0 * 4 ** (16 / 14)}),
    "llama3": (
        {"high_freq_factor": 3.0},
        {
            "rope_type": "llama3",
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 3.0,
            "original_max_position_embeddings": 32,
        },
    ),
    "longrope": (LONG, {"rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 32, **LONG}),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_loaded_model_equals_one_built_from_the_new_configuration(case, tmp_path):
    options, parameters = WRITTEN[case]
    model = model_of()
    own = logits(model)
    config = copy.deepcopy(model.config)
    config.rope_parameters, config.max_position_embeddings = {"rope_theta": 10000.0, **parameters}, 128
    expected = logits(fresh(model, config))
    assert pt.extend(model, 128, case.split(",")[0], **options) is model
    assert torch.equal(logits(model), expected)
    assert not torch.equal(expected, own)
    assert model.config.rope_parameters == config.rope_parameters
    assert model.config.max_position_embeddings == 128
    model.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    assert torch.equal(logits(loaded), expected)


@pytest.mark.parametrize(
    ("model_type", "kind"), [("phi", None), ("gemma3_text", "full_attention"), ("qwen3", None), ("mixtral", None)]
)
def test_partial_heads_and_kinds_of_layers(model_type, kind):
    sizes = {} if kind is None else {"layer_types": ["sliding_attention", "full_attention"] * 2}
    model = model_of(model_type, **sizes)
    before = copy.deepcopy(model.config.rope_parameters)
    own = logits(model)
    pt.extend(model, 128)
    assert torch.equal(logits(model), logits(fresh(model, model.config)))
    assert not torch.equal(logits(model), own)
    changed = model.config.rope_parameters
    assert (changed if kind is None else changed[kind])["rope_type"] == "yarn"
    if kind is not None:
        assert changed["sliding_attention"] == before["sliding_attention"]


def test_extended_twice_starts_from_the_trained_length():
    model, once = model_of(), model_of()
    pt.extend(model, 64)
    pt.extend(model, 128)
    pt.extend(once, 128)
    assert model.config.rope_parameters == once.config.rope_parameters
    assert torch.equal(logits(model), logits(once))
    pt.extend(pt.extend(model_of(), 64, "llama3"), 128, "linear")


REFUSED = {
    "unknown method": ("llama", (128, "dynamic"), {}, ValueError, "method: expected one of 'yarn', 'ntk'"),
    "shorter": ("llama", (32,), {}, ValueError, "length: expected more than the 32 positions of this LlamaForCausalLM"),
    "not a length": ("llama", ("128",), {}, ValueError, "length: expected a whole number from 1"),
    "unknown option": ("llama", (128,), {"beta": 1}, ValueError, "options: 'yarn' takes factor, beta_fast"),
    "no factors": ("llama", (128, "longrope"), {}, ValueError, "options: 'longrope' needs short_factor, long_factor"),
    "wrong factors": (
        "llama",
        (128, "longrope"),
        LONG | {"long_factor": [1.0]},
        ValueError,
        "long_factor: expected one factor for each of 8 pairs",
    ),
    "negative factor": ("llama", (128,), {"factor": -1.0}, ValueError, "factor: expected a positive number"),
    "no rotary": ("gpt2", (2048,), {}, ValueError, "GPT2Model has no rotary embedding"),
    "windows only": ("gemma3_text", (128,), {}, ValueError, "no layer of this Gemma3ForCausalLM would change"),
    "another method's code": ("phi3", (128,), {}, ValueError, "yarn|longrope"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_and_as_it_was(what):
    model_type, given, options, error, said = REFUSED[what]
    model = model_of(model_type) if model_type != "gpt2" else transformers.GPT2LMHeadModel(config_of("gpt2"))
    config = model.config.to_dict()
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with pytest.raises(error, match=said):
        pt.extend(model, *given, **options)
    assert model.config.to_dict() == config
    assert buffers.keys() == dict(model.named_buffers()).keys()
    assert all(torch.equal(buffer, buffers[name]) for name, buffer in model.named_buffers())


def test_a_linear_model_does_not_record_the_trained_length():
    model = pt.extend(model_of(), 64, "linear")
    with pytest.raises(ValueError, match="scaled by 'linear', which does not record the trained length"):
        pt.extend(model, 128)


def test_a_rope_type_of_ones_own():
    plain = posenc.frequencies.rotary(16, 10000.0)
    pt.register_rope("resonant", posenc.frequencies.resonance(plain))
    pt.register_rope("of_config", lambda config: posenc.frequencies.linear(plain, config.rope_parameters["by"]))
    try:
        model = model_of(rope_parameters={"rope_type": "resonant", "rope_theta": 10000.0})
        expected = 2 * torch.pi / torch.round(2 * torch.pi * 10000.0 ** (torch.arange(0, 16, 2) / 16))
        torch.testing.assert_close(model.model.rotary_emb.inv_freq, expected)
        model = model_of(rope_parameters={"rope_type": "of_config", "rope_theta": 10000.0, "by": 2.0})
        torch.testing.assert_close(
            model.model.rotary_emb.inv_freq, 10000.0 ** (-torch.arange(0, 16, 2) / 16) / 2, rtol=1e-6, atol=0
        )
        for name in ("resonant", "yarn", "default", "longrope", "su"):
            with pytest.raises(ValueError, match=f"name: '{name}' is taken"):
                pt.register_rope(name, plain)
        with pytest.raises(ValueError, match="frequencies: 'resonant' has 8 pairs, the heads of LlamaConfig have 16"):
            model_of(head_dim=32, rope_parameters={"rope_type": "resonant", "rope_theta": 10000.0})
    finally:
        pt.unregister_rope("resonant")
        pt.unregister_rope("of_config")
    with pytest.raises(KeyError, match="resonant"):
        model_of(rope_parameters={"rope_type": "resonant", "rope_theta": 10000.0})
    with pytest.raises(ValueError, match="expected one of"):
        pt.unregister_rope("yarn")


@pytest.mark.parametrize(
    ("name", "frequencies", "error", "said"),
    [
        ("my_dynamic", posenc.frequencies.rotary(16), ValueError, "'dynamic' in its name"),
        ("", posenc.frequencies.rotary(16), TypeError, "name: expected a name"),
        ("mine", 3, TypeError, "frequencies: expected Frequencies or a function"),
        ("mine", posenc.frequencies.axial(posenc.frequencies.rotary(8)), ValueError, "no axes and no softmax scale"),
    ],
)
def test_register_rope_refuses(name, frequencies, error, said):
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    before = dict(ROPE_INIT_FUNCTIONS)
    with pytest.raises(error, match=said):
        pt.register_rope(name, frequencies)
    assert before == ROPE_INIT_FUNCTIONS


MSCALE = {"mscale": 0.7, "mscale_all_dim": 1.0, "beta_fast": 24.0, "beta_slow": 2.0}


@pytest.mark.parametrize("model_type", ["deepseek_v2", "deepseek_v3", "minicpm3"])
def test_the_softmax_scale_of_mscale_changes_too(model_type, tmp_path):
    """DeepSeek's attention computes it when it is built; a trained YaRN keeps its constants."""
    trained = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 8, **MSCALE}
    model = model_of(model_type, num_key_value_heads=4, rope_parameters=dict(trained))
    own = logits(model)
    pt.extend(model, 256)
    assert model.config.rope_parameters == {**trained, "factor": 32.0}
    expected = logits(fresh(model, model.config))
    assert torch.equal(logits(model), expected)
    assert not torch.equal(own, expected)
    plain = model_of(model_type, num_key_value_heads=4, rope_parameters={"rope_type": "default", "rope_theta": 1e4})
    pt.extend(plain, 256, mscale=1.0, mscale_all_dim=1.0)
    assert torch.equal(logits(plain), logits(fresh(plain, plain.config)))


def test_an_attention_factor_is_for_its_own_factor():
    trained = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 8}
    model = model_of(rope_parameters={**trained, "attention_factor": 1.5, "truncate": False})
    pt.extend(model, 64)
    assert model.config.rope_parameters == {**trained, "factor": 8.0, "truncate": False}
    assert torch.equal(logits(model), logits(fresh(model, model.config)))


def test_a_softmax_scale_changed_by_hand_is_not_overwritten():
    trained = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 8, **MSCALE}
    model = model_of("deepseek_v3", rope_parameters=trained)
    model.model.layers[0].self_attn.scaling = 0.3
    with pytest.raises(pt.Unsupported, match=r"layers\.0\.self_attn\.scaling is 0\.3"):
        pt.extend(model, 256)
    assert model.config.rope_parameters["factor"] == 4.0


@pytest.mark.parametrize(("window", "suffices"), [(16, True), (32, True), (33, False), (None, False)])
def test_windows_that_suffice_are_refused_with_the_command_s_sentence(window, suffices):
    """No distance beyond those of training is met, so that other frequencies would change near tokens for nothing."""
    model = model_of("mistral", sliding_window=window)
    if not suffices:
        pt.extend(model, 128)
        return
    with pytest.raises(ValueError, match="window") as command:
        extend(model.config.to_dict(), spec_of(model.config.to_dict()), 128)
    with pytest.raises(pt.Unsupported) as function:
        pt.extend(model, 128)
    assert str(command.value).removeprefix("--extend-to: ") == str(function.value).removeprefix("model: ")
