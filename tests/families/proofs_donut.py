"""Donut's Swin, and Nougat, which stands it beside a text model."""

from __future__ import annotations

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.harness import Proof, build, config_of, proof, spec_of
from families.proofs_vit import picture, places, randomly
from families.proofs_windows import BIAS, STAGES, weights_of
from posenc.dialects.weights import with_weights


@proof("donut-swin")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned number for every head and difference inside a window, shifted in odd layers")
    config = config_of(model_type, **STAGES)
    model, spec = randomly(build(config, attention=None), BIAS), spec_of(config)
    with torch.no_grad():
        model(pixel_values=picture(16, 16, 1))  # which takes the shift from stages no larger than a window
    layers = [layer for stage in model.encoder.layers for layer in stage.blocks]
    assert len(layers) == len(spec.layers)
    for number, (layer, own) in enumerate(zip(spec.layers, layers, strict=True)):
        module, encoding = own.attention.self, with_weights(spec, number, model.state_dict())
        assert (own.shift_size > 0) == (layer.kind == "shifted_window")
        assert encoding.window == tuple(module.window_size) == (own.window_size,) * 2
        x = torch.randn(2, 16, module.all_head_size, generator=torch.Generator().manual_seed(3))
        with torch.no_grad():
            _, theirs = module(x, output_attentions=True)
            q, k = (part(x).unflatten(-1, (module.num_attention_heads, -1)).transpose(1, 2)
                    for part in (module.query, module.key))  # fmt: skip
        at = posenc.Positions.at(places(4, 4).coords.expand(2, -1, -1))
        # logits to 16, whose rounding is a rounding of the logarithm of the weights
        result.close("attention weights in a window, of every layer", weights_of(encoding, q, k, at), theirs, 64.0)
    return result


@proof("nougat")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "Donut's Swin and the text model of mBART")
    sections = {"encoder": {"model_type": "donut-swin"}, "decoder": {"model_type": "mbart"}}
    spec = spec_of(CONFIG_MAPPING[model_type](**sections), defaults=True)
    whole = CONFIG_MAPPING["vision-encoder-decoder"](**sections)  # the class that such models are built with
    with torch.device("meta"):
        model = build(whole, "VisionEncoderDecoderModel", attention=None)
    for part in ("encoder", "decoder"):
        result.equal(f"{part} is {spec[part].family}", getattr(model, part).config.model_type, spec[part].family)
    try:
        CONFIG_MAPPING[model_type]()
    except ValueError:
        return result
    raise AssertionError("NougatConfig makes sections by itself now: its finding is out of date")
