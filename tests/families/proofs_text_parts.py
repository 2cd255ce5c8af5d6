"""Text models inside larger ones: one coordinate, layers that differ."""

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
    rotary,
    same_rotation,
    spec_of,
    tokens,
)

YARN = {"rope_type": "yarn", "rope_theta": 20000.0, "factor": 8.0, "original_max_position_embeddings": 64}


@proof("granite_docling_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, all layers alike")
    for sizes in ({}, {"rope_parameters": YARN}):
        config = config_of(model_type, **sizes)
        model, spec = build(config, "GraniteDoclingTextModel"), spec_of(config)
        rotary(result, config, spec, model, most=2.0 if sizes else 1.0)
        frequencies(result, module_named(model, "rotary_emb"), spec)
    return result


@proof("qwen3_omni_moe_talker_code_predictor")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, counted within a frame of speech")
    config = config_of(model_type, head_dim=16)
    model, spec = build(config, "Qwen3OmniMoeTalkerCodePredictorModel"), spec_of(config)
    embeddings = torch.randn(*IDS.shape, 64, generator=torch.Generator().manual_seed(3))
    rotary(result, config, spec, model, inputs={"inputs_embeds": embeddings})
    frequencies(result, module_named(model, "rotary_emb"), spec)
    return result


@proof("mllama_text_model")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired; layers that look at the image have no positions")
    config = config_of(model_type, cross_attention_layers=[1, 3], num_hidden_layers=5, rope_parameters=YARN)
    model, spec = build(config, "MllamaTextModel"), spec_of(config)
    image = torch.randn(2, 8, 64, generator=torch.Generator().manual_seed(5))
    rotary(result, config, spec, model, inputs={"input_ids": tokens(IDS.shape), "cross_attention_states": image,
                                                "use_cache": False}, most=2.0)  # fmt: skip
    assert [layer.kind == "cross_attention" for layer in spec.layers] == [False, True, False, True, False]
    frequencies(result, module_named(model, "rotary_emb"), spec)
    return result


@proof("minimax_m3_vl_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, part of the head, full and block-sparse layers")
    kinds = ["full_attention", "minimax_m3_sparse", "full_attention", "minimax_m3_sparse"]
    sizes: dict[str, Any] = {"head_dim": 16, "index_n_heads": 2, "index_head_dim": 16, "index_block_size": 4,
                             "dense_intermediate_size": 16, "shared_intermediate_size": 16}  # fmt: skip
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


@proof("molmo2_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired; scaled in some layers, plain in the others")
    config = config_of(model_type, head_dim=16, rope_parameters=YARN, rope_scaling_layers=[1, 2], additional_vocab_size=0)
    model, spec = build(config, "Molmo2TextModel"), spec_of(config)
    rotary(result, config, spec, model, most=2.0)
    frequencies(result, model.rotary_emb_unscaled, spec, 0)
    frequencies(result, model.rotary_emb, spec, 2)
    return result
