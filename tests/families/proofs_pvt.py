"""posenc.configs.families.pvt, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.harness import Proof, build, config_of, proof, spec_of
from families.proofs_vit import picture, places, randomly
from posenc.configs.weights import with_weights

NOT_PROVEN = {"dinat": "its attention is in natten, another library, which is not installed here"}


@proof("pvt")
def pvt(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid before each stage, with the class token's row first in the last stage")
    config = config_of(
        model_type,
        image_size=64,
        hidden_sizes=[8, 16, 16, 8],
        num_attention_heads=[1, 2, 2, 2],
        depths=[1, 2, 1, 1],
        hidden_size=None,
        num_hidden_layers=None,
    )
    model, spec = randomly(build(config, attention=None), "position_embeddings"), spec_of(config)
    starts = [number for number, layer in enumerate(spec.layers) if layer.uses]
    assert len(starts) == len(model.encoder.patch_embeddings)
    assert [sum(layer.kind == f"stage {n}" for layer in spec.layers) for n in range(4)] == [
        len(b) for b in model.encoder.block
    ]
    image = picture(64, 64, 1)
    for stage, (number, module) in enumerate(zip(starts, model.encoder.patch_embeddings, strict=True)):
        with torch.no_grad():
            x = (
                image
                if stage == 0
                else torch.randn(1, model.config.hidden_sizes[stage - 1], 32 // 2**stage, 32 // 2**stage)
            )
            whole, height, width = module(x)
            alone = module.layer_norm(module.projection(x).flatten(2).transpose(1, 2))
            if module.cls_token is not None:
                alone = torch.cat([module.cls_token, alone], dim=1)
            at = places(height, width, 1 if module.cls_token is not None else 0)
            got = with_weights(spec, number, model.state_dict()).embed(alone, at)
        result.close("what enters each stage", got, whole)
    return result
