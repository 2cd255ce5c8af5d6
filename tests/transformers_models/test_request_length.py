"""posenc.transformers.length on tiny random models with dynamic NTK and LongRoPE."""

import pytest
import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

import posenc.transformers as pt
from families.harness import config_of

transformers.logging.set_verbosity_error()
IDS = torch.randint(3, 30, (2, 40), generator=torch.Generator().manual_seed(0))
TRAINED = 16  # positions
SETTINGS = {
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "longrope": {
        "rope_type": "longrope",
        "factor": 4.0,
        "original_max_position_embeddings": TRAINED,
        "short_factor": [1.0] * 8,
        "long_factor": [1.0 + i / 2 for i in range(8)],
    },
}


def model_of(kind, dtype=torch.float32):
    torch.manual_seed(0)
    settings = {"rope_theta": 10000.0, **SETTINGS[kind]}
    longest = TRAINED if kind == "dynamic" else 64
    config = config_of("llama", max_position_embeddings=longest, rope_parameters=settings, initializer_range=0.5)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


@torch.no_grad()
def logits(model, ids=IDS):
    return model(input_ids=ids, use_cache=False).logits


@torch.no_grad()
def decoded(model):
    """Twelve tokens, then one at a time."""
    step = model(input_ids=IDS[:, :12], use_cache=True)
    found = [step.logits]
    for t in range(12, IDS.shape[1]):
        step = model(input_ids=IDS[:, t : t + 1], past_key_values=step.past_key_values, use_cache=True)
        found.append(step.logits)
    return torch.cat(found, dim=1)


@pytest.mark.parametrize("kind", SETTINGS)
def test_decoding_equals_one_pass_inside_and_does_not_outside(kind):
    model = model_of(kind, torch.float64)
    alone = logits(model)
    assert (decoded(model) - alone).abs().max() > 0.1  # transformers' own: cached keys keep the old frequencies
    with pt.length(model, 40) as same:
        assert same is model
        whole = logits(model)
        torch.testing.assert_close(decoded(model), whole, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(whole, alone, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("n", [5, 16, 17, 40])
def test_frequencies_are_those_of_the_length_and_stay(kind, n):
    model = model_of(kind)
    rotary = model.model.rotary_emb
    expected, scale = ROPE_INIT_FUNCTIONS[kind](model.config, seq_len=torch.tensor(n))
    with pt.length(model, n):
        for ids in (IDS[:, :3], IDS, IDS[:, :3]):
            logits(model, ids)
            torch.testing.assert_close(rotary.inv_freq, expected, rtol=1e-6, atol=0)
            assert rotary.attention_scaling == pytest.approx(scale)


def test_each_kind_of_layer_has_its_own():
    """Layers with a window stay as they are."""
    kinds = {
        "full_attention": {"rope_theta": 20000.0, **SETTINGS["dynamic"]},
        "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
    }
    sizes = {"layer_types": [*kinds] * 2, "rope_parameters": kinds, "max_position_embeddings": TRAINED, "head_dim": 16}
    model = transformers.AutoModelForCausalLM.from_config(config_of("gemma3_text", **sizes)).eval()
    rotary = model.model.rotary_emb
    still = rotary.sliding_attention_inv_freq.clone()
    expected, _ = ROPE_INIT_FUNCTIONS["dynamic"](model.config, seq_len=torch.tensor(40), layer_type="full_attention")
    with pt.length(model, 40):
        for ids in (IDS[:, :3], IDS, IDS[:, :3]):
            logits(model, ids)
            torch.testing.assert_close(rotary.full_attention_inv_freq, expected, rtol=1e-6, atol=0)
            assert torch.equal(rotary.sliding_attention_inv_freq, still)
    assert rotary.rope_type == {"full_attention": "dynamic", "sliding_attention": "default"}


def test_generation_holds_its_frequencies():
    model = model_of("dynamic")
    settings = {"do_sample": False, "pad_token_id": 0, "eos_token_id": None, "max_new_tokens": 24}
    with pt.length(model, 36):
        cached = model.generate(input_ids=IDS[:, :12], **settings)
        assert torch.equal(model.generate(input_ids=IDS[:, :12], **settings, use_cache=False), cached)


@pytest.mark.parametrize("kind", SETTINGS)
def test_the_model_is_as_it_was_afterwards(kind):
    model = model_of(kind)
    logits(model)  # transformers' own history
    rotary = model.model.rotary_emb
    before = {name: value for name, value in vars(rotary).items() if not name.startswith("_")}
    buffers = {name: (buffer, buffer.clone()) for name, buffer in rotary.named_buffers()}

    def check():
        assert {name: value for name, value in vars(rotary).items() if not name.startswith("_")} == before
        for name, buffer in rotary.named_buffers():
            assert buffer is buffers[name][0]
            assert torch.equal(buffer, buffers[name][1])

    with pt.length(model, 10):
        logits(model)
    check()
    with pytest.raises(RuntimeError, match="stop"), pt.length(model, 64):
        raise RuntimeError("stop")
    check()
    with pt.length(model, 64), pt.length(model, 20):
        pass
    check()


def test_refused():
    plain = transformers.AutoModelForCausalLM.from_config(config_of("llama"))
    with pytest.raises(ValueError, match="frequencies of this LlamaForCausalLM do not depend on length: default"):
        pt.length(plain, 10).__enter__()
    with pytest.raises(ValueError, match="n: expected a whole number from 1, got 0"):
        pt.length(model_of("dynamic"), 0).__enter__()
    with pytest.raises(pt.Unsupported, match="GPT2Model has no rotary embedding"):
        pt.length(transformers.GPT2LMHeadModel(config_of("gpt2")), 10).__enter__()


def test_one_number_on_cosines_for_the_whole_request():
    """Phi-3.5-MoE reads short_mscale or long_mscale anew in every pass."""
    settings = {"rope_theta": 10000.0, **SETTINGS["longrope"], "short_mscale": 1.1, "long_mscale": 1.4}
    config = config_of("phimoe", max_position_embeddings=64, rope_parameters=settings)
    rotary = transformers.AutoModelForCausalLM.from_config(config).eval()
    own, x = rotary.model.rotary_emb, torch.zeros(1, 1, 16)

    def size(length):
        cos, sin = own(x, torch.arange(length)[None])
        return float((cos**2 + sin**2).sqrt().mean())

    assert (size(5), size(40)) == pytest.approx((1.1, 1.4))
    for n, expected in ((12, 1.1), (40, 1.4)):
        with pt.length(rotary, n):
            assert (size(5), size(40)) == pytest.approx((expected, expected))
    assert (size(5), size(40)) == pytest.approx((1.1, 1.4))
    assert own.config is rotary.model.config
