"""posenc.configs.families.bros, compared with the models' own code in transformers."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, config_of, proof, spec_of, tokens
from families.scores import bias_of
from families.silenced import added_by
from posenc.configs.weights import with_weights


@proof("bros")
def bros(model_type: str) -> Proof:
    result = Proof(model_type, "learned table for text; bias from projected sinusoids of box differences")
    config = config_of(model_type, hidden_size=128, max_position_embeddings=40, bbox_scale=50.0)
    model, spec = build(config, attention=None), spec_of(config)
    text = tokens((2, 9))
    corner = torch.rand(2, 9, 2, generator=torch.Generator().manual_seed(1))
    bbox = torch.cat([corner, corner + 0.2], dim=-1)
    at = posenc.Positions.arange(2, 9)
    added_by(
        result,
        spec["positions"],
        model,
        "embeddings.position_embeddings",
        "embeddings.LayerNorm",
        at,
        {"input_ids": text, "bbox": bbox},
        others=("embeddings.token_type_embeddings",),
    )
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    hooks = []
    for layer in model.encoder.layer:

        def look(module: Any, given: Any, keywords: Any, out: Any) -> None:
            x = keywords["hidden_states"] if "hidden_states" in keywords else given[0]
            q, k = (part(x).unflatten(-1, (4, 32)).transpose(1, 2) for part in (module.query, module.key))
            found.append((q, k, out[1]))

        hooks.append(layer.attention.self.register_forward_hook(look, with_kwargs=True))
    model = model.double()
    with torch.no_grad():
        model.bbox_embeddings.bbox_projection.weight.normal_()
        model(input_ids=text, bbox=bbox.double())
        for hook in hooks:
            hook.remove()
        assert len(found) == len(spec.layers)
        for number, (q, k, expected) in enumerate(found):
            encoding = with_weights(spec, number, model.state_dict()).double()
            bias = bias_of(encoding, q, k, posenc.Positions.at(bbox.double()))
            got = (q @ k.transpose(-1, -2) / math.sqrt(32) + bias).softmax(-1)
            # its frequencies are fp32's: angles to 60, and scores of as much
            result.close("probabilities of every layer, in fp64", got, expected, 60.0)
    return result
