"""posenc.configs.families.esm, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import Proof, at_of, build, config_of, proof, spec_of
from families.turning import turned
from posenc.configs.weights import with_weights


@proof("esm")
def esm(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs (ESM-2), or a learned table from the row after padding (ESM-1)")
    sizes: dict[str, Any] = {"num_hidden_layers": 2, "token_dropout": False, "mask_token_id": 3}
    turned(result, rotary="rotary_embeddings", position_embedding_type="rotary", rope_theta=500.0, **sizes)

    config = config_of(
        model_type,
        position_embedding_type="absolute",
        max_position_embeddings=12,
        pad_token_id=1,
        **{**sizes, "num_attention_heads": 4},
    )
    model, spec = build(config), spec_of(config)
    ids = torch.tensor([[5, 6, 7, 8, 9, 4], [1, 1, 8, 9, 5, 6]])  # padding on the left of the second row
    at = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 2, 3]])
    encoding = with_weights(spec, 0, model.state_dict())
    with torch.no_grad():
        own, words = model.embeddings(ids), model.embeddings.word_embeddings(ids)
        kept = ids != 1
        got = encoding.embed(words, at_of(at))
        result.close("embeddings that enter the first layer", got[kept], own[kept])
        assert torch.equal(model.embeddings.position_embeddings.weight[1], torch.zeros(64))
    return result
