"""Weights of 8 and 4 bits by torchao, with an encoding attached: target other-libraries of tools/acceptance.py."""

import copy

import pytest
import torch
from torch import nn

import posenc.transformers as pt
from transformers_models.test_attach import IDS, logits, made, model_of

quantization = pytest.importorskip("torchao.quantization")
WEIGHTS = {
    "int8": lambda: quantization.Int8WeightOnlyConfig(version=2),
    "int4": lambda: quantization.IntxWeightOnlyConfig(weight_dtype=torch.int4, version=2),
}
NAMES = ["rope", "alibi", "t5", "shaw", "cope", "xpos", "sinusoidal"]


def quantised(model, bits):
    quantization.quantize_(model, WEIGHTS[bits]())
    return model


def dequantised(model):
    """A copy with plain weights that have the values of the quantised ones."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, nn.Linear) and type(module.weight) is not nn.Parameter:
            module.weight = nn.Parameter(module.weight.dequantize())
    return model


@pytest.mark.parametrize("bits", WEIGHTS)
@pytest.mark.parametrize("name", NAMES)
def test_attached_to_quantised_weights_is_attached_to_what_they_stand_for(name, bits):
    model = quantised(model_of(), bits)
    plain = dequantised(model)
    kinds = [type(one.model.layers[0].self_attn.q_proj.weight) for one in (model, plain)]
    assert kinds[0] is not nn.Parameter
    assert kinds[1] is nn.Parameter
    assert (logits(model) - logits(model_of())).abs().max() > 1e-4
    own, encoding = logits(model), made(name)
    pt.attach(model, encoding)
    pt.attach(plain, copy.deepcopy(encoding))
    torch.testing.assert_close(logits(model), logits(plain), rtol=2e-6, atol=2e-6)
    assert all(parameter.dtype == torch.float32 for parameter in pt.parameters(model))
    with torch.no_grad():
        first = model(input_ids=IDS[:, :6], use_cache=True)
        rest = model(input_ids=IDS[:, 6:], past_key_values=first.past_key_values).logits
    torch.testing.assert_close(rest, logits(model)[:, 6:], rtol=2e-5, atol=2e-5)
    pt.detach(model)
    assert torch.equal(logits(model), own)


@pytest.mark.parametrize("bits", WEIGHTS)
@pytest.mark.parametrize("name", ["rope", "alibi", "sinusoidal"])
def test_before_and_after_are_the_same(name, bits):
    before, after = quantised(pt.attach(model_of(), made(name)), bits), pt.attach(quantised(model_of(), bits), made(name))
    assert torch.equal(logits(before), logits(after))
