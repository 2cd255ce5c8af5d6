"""GPT-Neo: the table, and which layers see a window."""

from __future__ import annotations

import torch

from families.adding import added
from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens

IDS = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])


@proof("gpt_neo")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned table added to the embeddings; layers with a window in a pattern")
    config = config_of(model_type, max_position_embeddings=40, num_layers=5, num_hidden_layers=None, num_heads=4,
                       window_size=3, attention_types=[[["global", "local"], 2], [["local"], 1]])  # fmt: skip
    model, spec = build(config, attention=None), spec_of(config)
    added(result, spec, model, "h.0", at_of(IDS), {"input_ids": tokens(IDS.shape), "position_ids": IDS})
    i, j = torch.arange(40)[:, None], torch.arange(40)
    for layer, theirs in zip(spec.layers, model.h, strict=True):
        seen = (j <= i) & (j > i - (layer.window or 40))
        result.equal("window of every layer", seen, theirs.attn.attention.bias[0, 0])
    return result
