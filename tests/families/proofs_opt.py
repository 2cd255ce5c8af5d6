"""posenc.configs.families.opt, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import added
from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens
from families.silenced import Holding

IDS = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])

MASK = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1]])


@proof("opt", "biogpt")
def opt(model_type: str) -> Proof:
    result = Proof(model_type, "learned table added to the embeddings, two unused rows before position 0")
    config = config_of(model_type, max_position_embeddings=40, ffn_dim=16)
    model, spec = build(config, attention=None), spec_of(config)
    inputs = {"input_ids": tokens(IDS.shape), "position_ids": IDS}
    added(result, spec, model, "layers.0", at_of(IDS), inputs)
    inputs = {"input_ids": tokens(IDS.shape), "attention_mask": MASK}
    if model_type == "biogpt":  # counts everything by itself; generate() counts as below
        added(result, spec, model, "layers.0", posenc.Positions.arange(2, 4), inputs)
        inputs["position_ids"] = (MASK.cumsum(1) - 1).masked_fill(MASK == 0, -1)
    added(
        result,
        spec,
        model,
        "layers.0",
        posenc.Positions.from_mask(MASK),
        inputs,
        what="embeddings with positions, padded on the left",
    )
    return result


@proof("nystromformer", "mra", "yoso")
def nystromformer(model_type: str) -> Proof:
    result = Proof(model_type, "learned table added to the embeddings, two unused rows before position 0")
    config = config_of(model_type, max_position_embeddings=64)
    model, spec = build(config, attention=None), spec_of(config)
    types = ("embeddings.token_type_embeddings.weight",)
    for at, ids in ((at_of(IDS), {"position_ids": IDS + 2}), (posenc.Positions.arange(2, 4), {})):
        inputs = {"input_ids": tokens(IDS.shape), **ids}
        added(result, spec, Holding(embeddings=model.embeddings), "embeddings.LayerNorm", at, inputs, silent=types)
    return result
