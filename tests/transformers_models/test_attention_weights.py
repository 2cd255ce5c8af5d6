"""output_attentions=True on a model with an encoding attached: the weights that its attention has."""

import copy
import math

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from posenc.configs.stacked import stacked
from transformers_models import judge, tiny
from transformers_models.test_attach import HEADS, IDS, WIDTH, made, model_of, near

transformers.logging.set_verbosity_error()
MASK = torch.ones_like(IDS)
MASK[0, :3] = 0


@torch.no_grad()
def weights(model, ids=IDS, **inputs):
    return model(input_ids=ids, output_attentions=True, **inputs).attentions


def eager(model):
    plain = copy.deepcopy(model)
    plain.set_attn_implementation("eager")
    return plain


@pytest.mark.parametrize("model_type", ["llama", "gemma2", "gpt_oss", "deepseek_v3"])  # soft cap and window, sinks, latent
def test_they_are_those_of_the_model_s_own_code(model_type):
    model = tiny.model_of(model_type)
    expected = weights(eager(model)), weights(eager(model), attention_mask=MASK)
    spec = posenc.read_config(model.config.to_dict(), defaults=True)
    for n in range(model.config.num_hidden_layers):
        uses = [use for use in spec.layers[n].uses if use.rotation]
        pt.attach(model, stacked([judge.as_handed_over(use).build("float64") for use in uses]), layers=[n])
    for one, own in zip((weights(model), weights(model, attention_mask=MASK)), expected, strict=True):
        assert len(one) == len(own) == model.config.num_hidden_layers
        for layer, of_own in zip(one, own, strict=True):
            near(layer[1], of_own[1])
            near(layer[0, :, 3:], of_own[0, :, 3:])


def test_those_of_a_bias_by_loops_over_a_cache_too():
    model = model_of()
    plain = copy.deepcopy(model)
    pt.attach(model, posenc.create("alibi", n_heads=HEADS))
    inner, x = plain.model.layers[0], plain.model.embed_tokens(IDS)
    normed = inner.input_layernorm(x)
    q, k = (
        project(normed).unflatten(-1, (-1, WIDTH)).transpose(1, 2)
        for project in (inner.self_attn.q_proj, inner.self_attn.k_proj)
    )
    first = weights(model)[0]
    for h in range(HEADS):
        slope = 2 ** (-8 * (h + 1) / HEADS)
        for i in range(IDS.shape[1]):
            group = h * k.shape[1] // HEADS
            raw = [
                math.exp((q[1, h, i] @ k[1, group, j]).item() / math.sqrt(WIDTH) - slope * (i - j)) for j in range(i + 1)
            ]
            near(first[1, h, i, : i + 1], torch.tensor(raw) / sum(raw))
            assert not first[1, h, i, i + 1 :].any()
    with torch.no_grad():
        begun = model(input_ids=IDS[:, :6], use_cache=True)
    later = weights(model, IDS[:, 6:], past_key_values=begun.past_key_values)
    near(later[0], first[:, :, 6:])


@pytest.mark.parametrize("name", ["cope", "path", "stick_breaking", "fox"])
def test_those_of_an_encoding_that_reads_or_replaces_the_softmax_give_the_output(name):
    """The first layer's weights times its values are what its output projection is given."""
    model = model_of()
    pt.attach(model, made(name))
    given = {}
    inner = model.model.layers[0].self_attn
    inner.o_proj.register_forward_pre_hook(lambda module, args: given.update(out=args[0]))
    inner.v_proj.register_forward_hook(lambda module, args, out: given.update(v=out))
    (first, *_) = weights(model)
    v = given["v"].unflatten(-1, (-1, WIDTH)).transpose(1, 2).repeat_interleave(HEADS // (given["v"].shape[-1] // WIDTH), 1)
    near((first @ v).transpose(1, 2).flatten(2), given["out"], 1e-4)


def test_none_are_computed_unless_they_are_wanted():
    model = eager(model_of())
    pt.attach(model, made("rope"))
    with torch.no_grad():
        assert model(input_ids=IDS).attentions is None
    other = eager(model_of())
    other.config.output_attentions = True
    pt.attach(other, made("rope"))
    with torch.no_grad():
        assert len(other(input_ids=IDS).attentions) == other.config.num_hidden_layers
