"""posenc.configs.families.granite4_vision, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.harness import Proof, build, made_of, proof, spec_of
from posenc.configs.weights import with_weights


@proof("granite4_vision")
def granite4_vision(model_type: str) -> Proof:
    text: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "vocab_size": 40,
    }
    vision: dict[str, Any] = {
        "model_type": "clip_vision_model",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "image_size": 16,
        "patch_size": 2,
    }
    asking = {
        "model_type": "blip_2_qformer",
        "num_hidden_layers": 1,
        "intermediate_size": 16,
        "cross_attention_frequency": 1,
    }
    config = CONFIG_MAPPING[model_type](
        text_config=text,
        vision_config=vision,
        qformer_config=asking,
        downsample_rate="2/4",
        deepstack_layer_map=[[0, 0], [1, 1]],
    )
    parts = {"text_config": "language_model", "vision_config": "vision_tower", "qformer_config": "qformer"}
    result = made_of(
        model_type, "a text model, a vision encoder, and projectors with a learned table for each window", parts, config
    )
    model, spec = build(config, "Granite4VisionModel", attention=None), spec_of(config)
    projectors = [*model.layerwise_projectors, *model.spatial_projectors]
    assert len(projectors) == len(spec.layers) == 2 + 4
    seen: list[torch.Tensor] = []
    features = torch.randn(2, 64, 64)
    for number, projector in enumerate(projectors):
        torch.nn.init.normal_(projector.image_positions)
        hook = projector.qformer.register_forward_pre_hook(
            lambda module, given, named: seen.append(named["encoder_hidden_states"]), with_kwargs=True
        )
        with torch.no_grad():
            projector(features)
            windows = projector.norm(features).view(2, 2, 4, 2, 4, 64).transpose(2, 3).reshape(8, 16, 64)
            got = with_weights(spec, number, model.state_dict()).embed(windows, posenc.Positions.grid(4, 4, batch=8))
        hook.remove()
        result.close("what every projector asks", got, seen[-1])
    return result
