"""posenc.configs.families.gptj, compared with the models' own code in transformers."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from families.harness import IDS, Proof, _probe, build, calls, config_of, proof, same_rotation, spec_of, tokens


def _attended(module: Any, query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    out, weights = _probe(module, query, key, value, mask, scaling=1 / module.scale_attn)
    return out.transpose(1, 2), weights


@proof("gptj", "codegen")
def gptj(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs, the first rotary_dim channels, base 10 000")
    config = config_of(
        model_type, hidden_size=96, num_hidden_layers=2, n_embd=96, n_layer=2, n_positions=131072, rotary_dim=12
    )
    model, spec = build(config, attention=None), spec_of(config)
    for module in model.modules():
        if hasattr(module, "_attn"):
            module._attn = partial(_attended, module)
    at_zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=p) for p in (torch.zeros_like(IDS), IDS))
    assert len(moved) == len(spec.layers) == 2
    same_rotation(result, spec, at_zero, moved, IDS, softmax=True)
    return result
