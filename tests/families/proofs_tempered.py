"""RoPE in every layer, and queries that sharpen with their position."""

from __future__ import annotations

import torch

from families.harness import IDS, Proof, build, calls, config_of, frequencies, proof, same_rotation, spec_of, tokens
from families.turning import LINEAR, YARN, also, hidden


@proof("ministral3")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, YaRN; queries times 1 + β ln(1 + ⌊p/length⌋)")
    yarn = YARN | {"llama_4_scaling_beta": 0.3}
    for window in (None, 4):
        config = config_of(model_type, rope_parameters=yarn, head_dim=24, num_hidden_layers=2, sliding_window=window)
        model, spec = build(config), spec_of(config)
        zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=ids) for ids in (torch.zeros_like(IDS), IDS))
        same_rotation(result, spec, zero, moved, IDS, 3.0)  # a magnitude of cos and sin, and an fp32 temperature
        hidden(result, spec, calls(model, input_ids=tokens((2, 10))))
        frequencies(result, model.rotary_emb, spec)
    also(result, model, head_dim=24)
    linear = LINEAR | {"llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 64}
    also(result, model, head_dim=24, rope_parameters=linear)
    return result
