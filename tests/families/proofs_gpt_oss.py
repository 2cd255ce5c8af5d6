"""posenc.configs.families.gpt_oss, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.harness import (
    IDS,
    Proof,
    build,
    calls,
    config_of,
    frequencies,
    module_named,
    proof,
    same_rotation,
    spec_of,
    tokens,
)
from families.turning import LLAMA3, visible


@proof("openai_privacy_filter")
def openai_privacy_filter(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs, bidirectional windows")
    for more in ({}, {"rope_parameters": LLAMA3}):
        config = config_of(model_type, head_dim=24, sliding_window=2, **more)
        model, spec = build(config), spec_of(config, defaults=True)
        at_zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=p) for p in (torch.zeros_like(IDS), IDS))
        for call in (*at_zero, *moved):  # kernels are given the tokens on one side and the token itself
            assert call.options.pop("sliding_window") == (spec.layers[0].window + 1) // 2 == 3
        assert len(moved) == len(spec.layers)
        same_rotation(result, spec, at_zero, moved, IDS, 3.0)  # queries and keys are multiplied by d^(-1/4) afterwards
        assert all(torch.equal(call.mask[0, 0] > -1e30, visible(spec.layers[0], 8)) for call in moved)
        frequencies(result, module_named(model, "rotary_emb"), spec)
    return result
