"""Learned tables added to the embeddings."""

from __future__ import annotations

import torch

import posenc
from families.adding import added
from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens

IDS = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])
BEFORE = {"gpt2": "h.0", "gpt_bigcode": "h.0", "openai-gpt": "h.0", "gpt-sw3": "h.0", "imagegpt": "h.0"}

SIZES = {"squeezebert": {"embedding_size": 64}, "big_bird": {"attention_type": "original_full"},
         "roc_bert": {"shape_vocab_size": 32, "pronunciation_vocab_size": 32}}  # fmt: skip


@proof("bert", "electra", "ernie", "megatron-bert", "rembert", "splinter", "visual_bert", "squeezebert",
       "convbert", "albert", "mobilebert", "bert-generation", "big_bird", "roc_bert", "dpr", "fnet",
       "gpt2", "gpt-sw3", "imagegpt", "gpt_bigcode", "openai-gpt")  # fmt: skip
def _(model_type: str) -> Proof:
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
