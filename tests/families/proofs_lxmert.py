"""posenc.configs.families.lxmert, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, config_of, proof, spec_of, tokens
from families.silenced import added_by
from posenc.configs.weights import with_weights


@proof("lxmert")
def lxmert(model_type: str) -> Proof:
    result = Proof(model_type, "learned table for words; boxes of regions through a linear layer and a norm")
    config = config_of(
        model_type,
        max_position_embeddings=40,
        l_layers=2,
        x_layers=1,
        r_layers=1,
        visual_feat_dim=12,
        num_hidden_layers=None,
    )
    model, spec = build(config, attention=None), spec_of(config)
    text, generator = tokens((2, 9)), torch.Generator().manual_seed(3)
    features, boxes = (torch.randn(2, 5, n, generator=generator) for n in (12, 4))
    inputs = {"input_ids": text, "token_type_ids": torch.zeros_like(text), "visual_feats": features, "visual_pos": boxes}
    at = posenc.Positions.arange(2, 9)
    added_by(
        result,
        spec["language"],
        model,
        "embeddings.position_embeddings",
        "embeddings.LayerNorm",
        at,
        inputs,
        others=("embeddings.token_type_embeddings",),
    )
    own = model.encoder.visn_fc
    with torch.no_grad():
        own.box_layer_norm.weight.normal_()
        alone = own.visn_layer_norm(own.visn_fc(features))
        got = with_weights(spec["vision"], 0, model.state_dict()).embed(alone, posenc.Positions.at(boxes))
        result.close("regions with their boxes", got, own(features, boxes), 2.0)
    layers = (len(model.encoder.layer), len(model.encoder.x_layers))
    result.equal("layers", layers, (2, len(spec["language"].layers) - 2))
    return result
