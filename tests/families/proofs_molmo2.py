"""posenc.configs.families.molmo2, compared with the models' own code in transformers."""

from __future__ import annotations

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, config_of, frequencies, proof, rotary, spec_of
from families.proofs_composites import assembled
from families.proofs_siglip import made, nothing_after
from families.turning import YARN
from posenc.configs.weights import with_weights


@proof("molmo2_vision")
def molmo2_vision(model_type: str) -> Proof:
    result = Proof(model_type, "learned table, one row for each patch")
    config = made(model_type, image_size=[8, 6], head_dim=16, num_key_value_heads=2)
    spec, model = spec_of(config), build(config, "Molmo2VisionModel")
    seen: list[Tensor] = []
    model.layers[0].register_forward_pre_hook(lambda layer, given: seen.append(given[0]))
    with torch.no_grad():
        torch.nn.init.normal_(model.positional_embedding)
        patches = torch.randn(2, 12, 12)
        model(pixel_values=patches)
        got = with_weights(spec, 0, model.state_dict()).embed(
            model.patch_embedding(patches), posenc.Positions.arange(2, 12)
        )
    result.close("what enters the first layer", got, seen[0])
    nothing_after(result, spec, model, 2)
    return result


@proof("molmo2_text")
def molmo2_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; scaled in some layers, unscaled in the others")
    config = config_of(model_type, head_dim=16, rope_parameters=YARN, rope_scaling_layers=[1, 2], additional_vocab_size=0)
    model, spec = build(config, "Molmo2TextModel"), spec_of(config)
    rotary(result, config, spec, model, most=2.0)
    frequencies(result, model.rotary_emb_unscaled, spec, 0)
    frequencies(result, model.rotary_emb, spec, 2)
    return result


@proof("molmo2")
def molmo2(model_type: str) -> Proof:
    parts = {"text_config": "language_model", "vision_config": "vision_tower", "adapter_config": "multi_modal_projector"}
    return assembled(model_type, "a text model that counts patches like words, a vision tower, a pooling", parts)[0]
