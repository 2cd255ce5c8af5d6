"""Learned tables added to the embeddings."""

from __future__ import annotations

import torch

from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens
from posenc.dialects.weights import with_weights


@proof("gpt2")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned table, added to the embeddings, counted from 0")
    config = config_of(model_type, n_positions=40)
    model, spec = build(config), spec_of(config)
    ids = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])
    with torch.no_grad():
        text = model.wte(tokens(ids.shape))
        seen = []
        model.h[0].register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
        model(input_ids=tokens(ids.shape), position_ids=ids)
        result.close(
            "embeddings that enter the first layer",
            with_weights(spec, 0, model.state_dict()).embed(text, at_of(ids)),
            seen[0],
        )
    assert len(spec.layers) == len(model.h)
    assert not any(layer.uses for layer in spec.layers[1:])
    return result
