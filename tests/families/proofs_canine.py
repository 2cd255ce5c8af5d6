"""posenc.configs.families.canine, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.adding import added
from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens

IDS = torch.arange(32).flip(0)[None] + torch.tensor([[0], [7]])


@proof("canine")
def canine(model_type: str) -> Proof:
    result = Proof(
        model_type, "learned table added to the characters; chunked attention, downsampled layers, characters again"
    )
    config = config_of(
        model_type, max_position_embeddings=40, num_hash_buckets=48, local_transformer_stride=16, num_hidden_layers=2
    )
    model, spec = build(config, attention=None), spec_of(config)
    inputs = {"input_ids": tokens(IDS.shape), "position_ids": IDS}
    added(
        result,
        spec,
        model,
        "char_embeddings.LayerNorm",
        at_of(IDS),
        inputs,
        silent=("char_embeddings.token_type_embeddings.weight",),
    )
    stacks = (model.initial_char_encoder, model.encoder, model.final_char_encoder)
    result.equal("number of layers", [len(stack.layer) for stack in stacks], [1, len(spec.layers) - 2, 1])
    with torch.no_grad():  # a chunk of the first layer does not see the others
        x = torch.randn(1, 32, 64, requires_grad=False)
        y = x.clone()
        y[:, 16:] += 1
        mask = torch.zeros(1, 32, 32)
        apart = (model.initial_char_encoder(z, attention_mask=mask)[0] for z in (x, y))
        first, second = apart
    chunk = spec.layers[0].window
    result.equal("chunks of the first layer", first[:, :chunk], second[:, :chunk])
    return result
