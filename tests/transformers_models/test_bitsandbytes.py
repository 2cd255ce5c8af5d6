"""Weights of 8 and 4 bits by bitsandbytes, with an encoding attached: target other-libraries of tools/acceptance.py.

On a CPU its kernels round inputs too, so that no model with plain weights has the same values: the quantised model is
compared with itself, as it is and with a mask that says what ALiBi adds.
"""

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from transformers_models.test_attach import HEADS, IDS, logits, made, model_of

bitsandbytes = pytest.importorskip("bitsandbytes")
BITS = {8: bitsandbytes.nn.Linear8bitLt, 4: bitsandbytes.nn.Linear4bit}
NEAR = {"rtol": 1e-3, "atol": 1e-3}  # a last bit of an input may round to another of 255 steps


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    model_of(intermediate_size=128).save_pretrained(folder)  # rows must be whole blocks of 64 weights
    return folder


def loaded(folder, bits):
    by = transformers.BitsAndBytesConfig(load_in_8bit=bits == 8, load_in_4bit=bits == 4)
    kind = transformers.AutoModelForCausalLM
    model = kind.from_pretrained(folder, dtype=torch.float32, device_map="cpu", quantization_config=by).eval()
    assert type(model.model.layers[0].self_attn.q_proj) is BITS[bits]
    return model


def own(model):
    return posenc.read_config(model.config.to_dict()).encoding(0)


@pytest.mark.parametrize("bits", BITS)
def test_the_models_own_encoding_and_a_cache(bits, folder):
    model = loaded(folder, bits)
    expected = logits(model)
    pt.attach(model, own(model))
    torch.testing.assert_close(logits(model), expected, **NEAR)
    with torch.no_grad():
        first = model(input_ids=IDS[:, :6], use_cache=True)
        rest = model(input_ids=IDS[:, 6:], past_key_values=first.past_key_values).logits
    torch.testing.assert_close(rest, expected[:, 6:], **NEAR)
    pt.detach(model)
    assert torch.equal(logits(model), expected)


@pytest.mark.parametrize("bits", BITS)
def test_alibi_is_what_a_mask_with_alibis_bias_gives(bits, folder):
    model = loaded(folder, bits)
    place = torch.arange(IDS.shape[1])
    distance = place[:, None] - place
    slopes = torch.tensor([2.0 ** (-8 * (n + 1) / HEADS) for n in range(HEADS)])[:, None, None]
    mask = (-slopes * distance).masked_fill(distance < 0, torch.finfo(torch.float32).min)
    expected = logits(model, attention_mask=mask.expand(2, -1, -1, -1))
    plain = logits(model)
    pt.attach(model, posenc.Stack(own(model), made("alibi")))
    torch.testing.assert_close(logits(model), expected, **NEAR)
    assert (expected - plain).abs().max() > 10 * NEAR["atol"]


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("name", ["t5", "shaw", "cope", "sinusoidal"])
def test_learned_encodings_stay_in_float32(name, bits, folder):
    model = pt.attach(loaded(folder, bits), made(name))
    assert all(parameter.dtype == torch.float32 for parameter in pt.parameters(model))
    assert logits(model).isfinite().all()
