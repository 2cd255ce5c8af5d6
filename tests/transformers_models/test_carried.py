"""Models whose layers hand on cos and sin alone: positions travel with these to attention."""

import pytest
import torch

import posenc
import posenc.transformers as pt
from posenc.transformers import interface
from sampling import one_in
from transformers_models import tiny
from transformers_models.test_attach import IDS, logits, near

TYPES = ["nemotron", "stablelm"]


@torch.no_grad()
@pytest.mark.parametrize("model_type", TYPES)
def test_layers_without_an_encoding_stay_themselves(model_type):
    """With their own rotary encoding attached to two layers, a model computes what it computed."""
    model = tiny.model_of(model_type)
    own = logits(model)
    settings = model.config.rope_parameters
    turned = int(16 * settings["partial_rotary_factor"])
    frequencies = posenc.frequencies.rotary(turned, base=settings["rope_theta"])
    encoding = posenc.create("rope", d_head=16, layout="half", frequencies=frequencies)
    pt.attach(model, encoding, layers=[1])
    pt.attach(model, encoding, layers=[3])
    near(logits(model), own)
    with pytest.raises(ValueError, match=r"layers: \[1\] have an encoding"):
        pt.attach(model, encoding, layers=[1])
    pt.detach(model)
    assert torch.equal(logits(model), own)
    assert not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("model_type", TYPES)
def test_gradients_under_checkpointing(model_type):
    model = tiny.model_of(model_type)
    encoding = posenc.laws.draw_parameters(posenc.create("t5", n_heads=4), std=0.3)
    pt.attach(model, encoding)

    def gradient():
        model.zero_grad()
        model(input_ids=IDS, labels=IDS, use_cache=False).loss.backward()
        return torch.cat([one.grad.flatten() for one in pt.parameters(model)])

    expected = gradient()
    assert expected.abs().max() > 0
    model.train()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    near(gradient(), expected)


@pytest.mark.acceptance
@torch.no_grad()
@pytest.mark.parametrize("model_type", one_in(2, TYPES))
def test_one_graph(model_type):
    model = tiny.model_of(model_type)
    pt.attach(model, posenc.create("alibi", n_heads=4))
    compiled = torch.compile(model, fullgraph=True, backend="eager")(input_ids=IDS, use_cache=False).logits
    near(compiled, logits(model))


def test_tables_and_positions_move_together():
    """accelerate moves the arguments of a layer by their method `to`."""
    call = interface.Call.of(IDS, 0)
    carried = interface.Carried((torch.ones(1), torch.zeros(1)), call).to("meta")
    assert carried.call.device.type == "meta"
    assert all(table.is_meta for table in carried.position_embeddings)
