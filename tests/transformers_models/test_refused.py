"""Bad input: one clear error, and the model, its hooks, configuration and outputs as they were."""

import copy

import pytest
import torch
import transformers
from transformers.cache_utils import DynamicCache, QuantizedLayer

import posenc
import posenc.transformers as pt
from posenc.encodings.rope import RoPE
from transformers_models import tiny
from transformers_models.test_attach import IDS, logits, made, model_of
from transformers_models.test_versions import HERE


def state(model):
    """All that attach could change, without running the model."""
    hooks = {name: (dict(one._forward_pre_hooks), dict(one._forward_hooks)) for name, one in model.named_modules()}
    held = {name: (id(tensor), tensor.clone()) for name, tensor in model.state_dict(keep_vars=True).items()}
    forwards = {name: vars(one).get("forward") for name, one in model.named_modules()}
    names = {name: sorted(vars(one)) for name, one in model.named_modules()}
    config = (copy.deepcopy(model.config.to_dict()), model.config._attn_implementation)
    return hooks, held, forwards, names, config, model.training


def assert_same(before, after):
    for one, other in zip(before[:1] + before[2:], after[:1] + after[2:], strict=True):
        assert one == other
    assert before[1].keys() == after[1].keys()
    for name, (identity, value) in before[1].items():
        assert after[1][name][0] == identity
        assert torch.equal(after[1][name][1], value)


def flash(model):
    model.config._attn_implementation_internal = "flash_attention_2"


def attached(model):
    pt.attach(model, made("alibi"))


# model type, what is done to it before, what is attached, the error, what it says
REFUSED = {
    "heads": ("llama", None, lambda: posenc.create("alibi", n_heads=8), ValueError, "n_heads=8, layer 0 has 4 query heads"),
    "channels": ("llama", None, lambda: posenc.create("rope", d_head=8), ValueError, "d_head=8, layer 0 has heads of 16"),
    "width": ("llama", None, lambda: posenc.create("sinusoidal", d_model=32), ValueError, "not fit layer 0: .*d_model"),
    "an encoder and a decoder": (
        "t5",
        None,
        lambda: posenc.create("t5", n_heads=4),
        ValueError,
        r"not fit layer 0: causal=False: .* causal attention only \(in the encoder; {'encoder': …, 'decoder': …} gives",
    ),
    "flash attention": ("llama", flash, lambda: made("alibi"), pt.Unsupported, "attends with 'flash_attention_2'"),
    "attached already": ("llama", attached, lambda: made("alibi"), ValueError, r"\[0, 1, 2, 3\] have an encoding attached"),
    "a scale": ("granite", None, lambda: made("self_extend"), pt.Unsupported, "layer 0, whose attention has scale of the"),
    "a soft cap": (
        "gemma2",
        None,
        lambda: posenc.create("rerope", d_head=256),
        pt.Unsupported,
        "layer 0, whose attention has .*softcap of the model's",
    ),
    "sinks": ("gpt_oss", None, lambda: made("stick_breaking"), pt.Unsupported, "whose attention has sinks of the model's"),
    "too few layers": (
        "llama",
        None,
        lambda: posenc.PerLayer([made("alibi")] * 2),
        ValueError,
        r"encoding: a PerLayer of 2 layers has none for the model's layers \[2, 3\]",
    ),
    "no encoding": ("llama", None, lambda: "rope", TypeError, "encoding: expected a PositionalEncoding"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_attach_refuses_and_leaves_the_model_as_it_was(what):
    model_type, prepare, encoding, error, said = REFUSED[what]
    if model_type == "t5":
        sizes = {"vocab_size": 32, "d_model": 64, "num_layers": 1, "num_heads": 4, "d_kv": 16, "d_ff": 32}
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes)).eval()
        inputs = {"decoder_input_ids": IDS}
    else:
        model, inputs = model_of(model_type), {}
    if prepare is not flash:
        own = logits(model, **inputs)
    if prepare is not None:
        prepare(model)
        own = None if prepare is flash else logits(model, **inputs)
    before = state(model)
    with pytest.raises(error, match=said):
        pt.attach(model, encoding())
    assert_same(before, state(model))
    if own is not None:
        assert torch.equal(logits(model, **inputs), own)


def everywhere(then):
    def call(model):
        attached(model)
        before = state(model), logits(model)
        try:
            then(model)
        finally:
            assert_same(before[0], state(model))
            assert torch.equal(logits(model), before[1])
            pt.detach(model)

    return call


OTHERS = {
    "longer, but no layer rotates": (
        everywhere(lambda model: pt.extend(model, 256)),
        ValueError,
        r"every rotary layer of this LlamaForCausalLM has an encoding of posenc's attached.*detach\(model\) first",
    ),
    "an unknown method": (lambda model: pt.extend(model, 256, "rope"), ValueError, "method: expected one of"),
    "a shorter length": (lambda model: pt.extend(model, 8), ValueError, "length: expected more than"),
    "nothing attached": (pt.detach, ValueError, "model: nothing is attached to this LlamaForCausalLM"),
    "no parameters": (pt.parameters, ValueError, "model: nothing is attached to this LlamaForCausalLM"),
    "not fast": (pt.slow, ValueError, "has its own rotation"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_functions_refuse_and_leave_the_model_as_it_was(what):
    call, error, said = OTHERS[what]
    model = model_of()
    own, before = logits(model), state(model)
    with pytest.raises(error, match=said):
        call(model)
    assert_same(before, state(model))
    assert torch.equal(logits(model), own)


class Rounded(QuantizedLayer):
    """A quantised cache that needs no other package: keys and values kept in bfloat16."""

    def _quantize(self, tensor, axis):
        return tensor.bfloat16()

    def _dequantize(self, tensor):
        return tensor.float()


def test_a_quantised_cache_of_states_is_refused_before_it_is_written():
    model = model_of()
    own = logits(model)
    pt.attach(model, posenc.PerLayer([made("alibi"), made("fox"), made("alibi"), made("fox")]))
    expected, before = logits(model), state(model)
    cache = DynamicCache()
    cache.layers = [Rounded() for _ in range(4)]
    with pytest.raises(TypeError, match=rf"{HERE}: a DynamicCache rounds what is cached, and FoX\(.* in layer 1 keeps"):
        model(input_ids=IDS, **{HERE: cache})
    assert all(layer.get_seq_length() == 0 for layer in cache.layers)
    assert_same(before, state(model))
    assert torch.equal(logits(model), expected)
    pt.detach(model)
    assert torch.equal(logits(model), own)


def test_an_attention_set_after_attach_is_refused():
    """It would leave out what is attached without a word."""
    model = model_of()
    attached(model)
    expected = logits(model)
    model.set_attn_implementation("sdpa")
    with pytest.raises(RuntimeError, match=r"the attention of this LlamaModel was set to 'sdpa' after attach"):
        logits(model)
    model.set_attn_implementation("posenc")
    assert torch.equal(logits(model), expected)


def test_a_layer_called_alone_is_refused():
    model = model_of()
    attached(model)
    hidden, tables = torch.zeros(1, 3, 64), (torch.ones(1, 3, 16), torch.zeros(1, 3, 16))
    with pytest.raises(RuntimeError, match="LlamaAttention was called outside of its decoder"):
        model.model.layers[0].self_attn(hidden_states=hidden, position_embeddings=tables, attention_mask=None)


PLAIN = posenc.frequencies.rotary(16, base=10000.0)
SCALED = posenc.frequencies.yarn(PLAIN, 4.0, 16)  # lengthens queries and keys


@torch.no_grad()
@pytest.mark.parametrize(
    ("model_type", "frequencies", "served"),
    [
        ("llama", SCALED, True),
        ("nanochat", PLAIN, True),  # a norm without weights takes the length of queries and keys away
        ("nanochat", SCALED, False),
        ("hunyuan_v1_dense", PLAIN, False),
    ],
)
def test_a_norm_after_the_rotation_is_not_passed_by(model_type, frequencies, served):
    """RoPE of the values too cannot take the place of the model's rotation: it would come after the norm."""
    model = tiny.model_of(model_type)
    own, before = logits(model), state(model)
    encoding = RoPE(16, frequencies=frequencies, layout="half", sides=("query", "key", "value", "output"))
    if served:
        pt.detach(pt.attach(model, encoding))
    else:
        with pytest.raises(pt.Unsupported, match="layer 0 normalises queries and keys after it has rotated them, and RoPE"):
            pt.attach(model, encoding)
    assert_same(before, state(model))
    assert torch.equal(logits(model), own)
