"""posenc.configs.families.minimax_m3_vl, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

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
from families.proofs_qwen2_vl_vision import GRIDS, block_order, made, rotation
from families.turning import YARN


@proof("minimax_m3_vl_text")
def minimax_m3_vl_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, part of the head, full and block-sparse layers")
    kinds = ["full_attention", "minimax_m3_sparse", "full_attention", "minimax_m3_sparse"]
    sizes: dict[str, Any] = {
        "head_dim": 16,
        "index_n_heads": 2,
        "index_head_dim": 16,
        "index_block_size": 4,
        "dense_intermediate_size": 16,
        "shared_intermediate_size": 16,
    }
    for more in ({"partial_rotary_factor": 0.5}, {"layer_types": kinds, "rope_parameters": YARN}):
        config = config_of(model_type, **sizes, **more)
        model, spec = build(config, "MiniMaxM3VLTextModel"), spec_of(config)
        assert [layer.kind for layer in spec.layers] == config.layer_types
        ids = IDS
        if "layer_types" in more:  # block selection needs positions of tokens that are there
            ids = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 1, 1, 3, 3, 7, 7]])
        at_zero, moved = (calls(model, input_ids=tokens(p.shape), position_ids=p, use_cache=False) for p in (ids * 0, ids))
        assert len(moved) == len(spec.layers)
        same_rotation(result, spec, at_zero, moved, ids, 2.0 if "layer_types" in more else 1.0)
        frequencies(result, module_named(model, "rotary_emb"), spec)
    return result


@proof("minimax_m3_vl_vision")
def minimax_m3_vl_vision(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over frame, row and column, 2·⌊d/6⌋ channels each, half pairs, the rest unrotated")
    model, spec, inputs = made(model_type, "MiniMaxM3VLVisionModel", patch_size=2)
    frames = torch.tensor([[f] for n, height, width in GRIDS for f in range(n) for _ in range(height * width)])
    own = torch.cat([frames, block_order(2)], dim=1)
    rotation(result, model, spec, own, pixel_values=inputs["hidden_states"], grid_thw=inputs["grid_thw"])
    return result
