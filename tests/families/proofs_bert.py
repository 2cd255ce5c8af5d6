"""posenc.configs.families.bert, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import added
from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens
from families.silenced import added_by


@proof("tapas")
def tapas(model_type: str) -> Proof:
    result = Proof(model_type, "learned table added to the embeddings, counted from 0 in each cell")
    column = torch.tensor([[0, 0, 0, 0, 0, 0, 1, 1, 2, 1, 1, 2, 2, 0], [0, 0, 1, 1, 1, 2, 2, 1, 1, 2, 2, 0, 0, 0]])
    row = torch.tensor([[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0], [0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0]])
    kinds = torch.zeros(2, 14, 7, dtype=torch.long)
    kinds[..., 1], kinds[..., 2] = column, row
    for anew in (True, False):
        config = config_of(model_type, max_position_embeddings=5 if anew else 40, reset_position_index_per_cell=anew)
        model, spec = build(config, attention=None), spec_of(config)
        at = posenc.Positions.within(column + 256 * row) if anew else posenc.Positions.arange(2, 14)
        added_by(
            result,
            spec,
            model,
            "embeddings.position_embeddings",
            "embeddings.LayerNorm",
            at,
            {"input_ids": tokens((2, 14)), "token_type_ids": kinds},
            others=tuple(f"embeddings.token_type_embeddings_{n}" for n in range(7)),
        )
    return result


IDS = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])

BEFORE = {"gpt2": "h.0", "gpt_bigcode": "h.0", "openai-gpt": "h.0", "gpt-sw3": "h.0", "imagegpt": "h.0"}

SIZES = {
    "squeezebert": {"embedding_size": 64},
    "big_bird": {"attention_type": "original_full"},
    "roc_bert": {"shape_vocab_size": 32, "pronunciation_vocab_size": 32},
}


@proof(
    "bert",
    "electra",
    "ernie",
    "megatron-bert",
    "rembert",
    "splinter",
    "visual_bert",
    "squeezebert",
    "convbert",
    "albert",
    "mobilebert",
    "bert-generation",
    "big_bird",
    "roc_bert",
    "dpr",
    "fnet",
    "gpt2",
    "gpt-sw3",
    "imagegpt",
    "gpt_bigcode",
    "openai-gpt",
)
def bert(model_type: str) -> Proof:
    result = Proof(model_type, "learned table added to the embeddings, counted from 0")
    rows = "n_positions" if model_type in BEFORE else "max_position_embeddings"
    config = config_of(model_type, **{rows: 40} | SIZES.get(model_type, {}))
    model, spec = build(config, attention=None), spec_of(config)
    after = BEFORE.get(model_type, "embeddings.LayerNorm")
    if model_type == "megatron-bert":
        after = "encoder.layer.0"
    at, inputs = at_of(IDS), {"input_ids": tokens(IDS.shape), "position_ids": IDS}
    if model_type == "dpr":  # which takes no position_ids
        at = posenc.Positions.arange(*IDS.shape)
        del inputs["position_ids"]
    added(result, spec, model, after, at, inputs)
    return result
