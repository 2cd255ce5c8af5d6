"""posenc.configs.families.qwen2_vl, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import (
    Proof,
    attending,
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
from families.proofs_composites import assembled, coordinates
from families.turning import YARN

# (time, row, column) of two rows: as an image among text has them, and far out, where fp32 angles are worst.
IDS = torch.tensor(
    [
        [[0, 1, 2, 2, 2, 2, 4, 5], [9, 255, 4095, 70000, 8191, 65537, 131071, 3]],
        [[0, 1, 2, 2, 3, 3, 4, 5], [3, 17, 4099, 131071, 1, 65539, 131070, 100000]],
        [[0, 1, 2, 3, 2, 3, 4, 5], [5, 300, 5000, 90001, 131071, 2, 131069, 8]],
    ]
)


def turned(result: Proof, model_class: str, most: float = 1.0, embedded: bool = False, **sizes: Any) -> Any:
    """Every attention layer's queries, keys and values in the family's own forward, with three coordinates per token."""
    config = config_of(result.model_type, **sizes)
    if not hasattr(config, "pad_token_id"):
        config.pad_token_id = 0
    model, spec = build(config, model_class), spec_of(config)
    inputs: dict[str, Any] = {"input_ids": tokens(IDS.shape[1:])}
    if embedded:
        shape = (*IDS.shape[1:], config.hidden_size)
        inputs = {"inputs_embeds": torch.randn(shape, generator=torch.Generator().manual_seed(3))}
    at_zero, moved = (calls(model, **inputs, position_ids=ids, use_cache=False) for ids in (torch.zeros_like(IDS), IDS))
    assert len(spec.layers) == config.num_hidden_layers
    only = attending(spec, moved)
    same_rotation(result, only, at_zero, moved, IDS, most, softmax=True)
    return model, only


def scaled(result: Proof, model_class: str, embedded: bool = False, section: tuple[int, ...] = (), **sizes: Any) -> None:
    parameters = YARN | ({"mrope_section": list(section)} if section else {})
    model, spec = turned(result, model_class, 2.0, embedded, rope_parameters=parameters, **sizes)
    frequencies(result, module_named(model, "rotary_emb"), spec)


def plain(section: tuple[int, ...], base: float = 1e6, **more: Any) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": base, "mrope_section": list(section), **more}


BANDS = {
    "qwen2_vl_text": "Qwen2VLTextModel",
    "qwen2_5_vl_text": "Qwen2_5_VLTextModel",
    "qwen2_5_omni_text": "Qwen2_5OmniThinkerTextModel",
    "qwen2_5_omni_talker": "Qwen2_5OmniTalkerModel",
    "paddleocr_vl_text": "PaddleOCRTextModel",
}


@proof(*BANDS)
def qwen2_vl_text(model_type: str) -> Proof:
    result = Proof(model_type, "M-RoPE, half pairs, contiguous sections for time, rows, columns")
    model_class, talks = BANDS[model_type], model_type == "qwen2_5_omni_talker"
    sizes: dict[str, Any] = {"head_dim": 16} if model_type in ("qwen2_5_omni_talker", "paddleocr_vl_text") else {}
    if "paddle" not in model_type:
        sizes |= {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2}
    model, spec = turned(result, model_class, embedded=talks, rope_parameters=plain((4, 2, 2)), **sizes)
    frequencies(result, module_named(model, "rotary_emb"), spec)
    if "paddle" not in model_type:
        assert [layer.window for layer in spec.layers] == [None, None, 4, 4]
    scaled(result, model_class, talks, (2, 3, 3), **sizes)
    return result


GLM = {
    "glm4v_text": "Glm4vTextModel",
    "glm_ocr_text": "GlmOcrTextModel",
    "glm4v_moe_text": "Glm4vMoeTextModel",
    "glm_image_text": "GlmImageTextModel",
}


@proof(*GLM)
def glm4v_text(model_type: str) -> Proof:
    pairing = "interleaved" if model_type in ("glm4v_text", "glm_ocr_text") else "half"
    result = Proof(model_type, f"M-RoPE, {pairing} pairs, part of the head, contiguous sections for time, rows, columns")
    for parameters in (plain((1, 2, 1), partial_rotary_factor=0.5), plain((4, 2, 2), partial_rotary_factor=1.0)):
        model, spec = turned(result, GLM[model_type], rope_parameters=parameters)
        frequencies(result, module_named(model, "rotary_emb"), spec)
    whole = model_type != "glm4v_moe_text"  # where the file does not say how much of the head turns
    turned(result, GLM[model_type], rope_parameters=plain((4, 2, 2) if whole else (1, 2, 1)))
    scaled(result, GLM[model_type], section=(4, 2, 2) if whole else (1, 2, 1))
    return result


IN_TURN = {
    "qwen3_vl_text": "Qwen3VLTextModel",
    "qwen3_vl_moe_text": "Qwen3VLMoeTextModel",
    "qwen3_omni_moe_text": "Qwen3OmniMoeThinkerTextModel",
    "qwen3_omni_moe_talker_text": "Qwen3OmniMoeTalkerModel",
    "cosmos3_edge_text": "Cosmos3EdgeTextModel",
}


@proof(*IN_TURN)
def qwen3_vl_text(model_type: str) -> Proof:
    result = Proof(model_type, "M-RoPE, half pairs, pairs of time, rows and columns alternately, the slowest for time")
    model_class, talks = IN_TURN[model_type], model_type == "qwen3_omni_moe_talker_text"
    sizes: dict[str, Any] = {"head_dim": 20, "shared_expert_intermediate_size": 16}
    model, spec = turned(result, model_class, embedded=talks, rope_parameters=plain((5, 3, 2)), **sizes)
    frequencies(result, module_named(model, "rotary_emb"), spec)
    if model_type != "cosmos3_edge_text":  # which takes no other type and no sections that do not fit
        for parameters in ({"rope_type": "default", "rope_theta": 1e4}, plain((1, 1, 2))):  # 24, 20, 20 of 10 pairs
            turned(result, model_class, embedded=talks, rope_parameters=parameters, **sizes)
        scaled(result, model_class, talks, (6, 2, 2), **sizes)
    return result


RECURRENT = {
    "qwen3_5_text": "Qwen3_5TextModel",
    "qwen3_5_moe_text": "Qwen3_5MoeTextModel",
    "qwen4_exp_text": "Qwen4ExpTextModel",
}

SMALL = {"linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 2}


@proof(*RECURRENT)
def qwen3_5_text(model_type: str) -> Proof:
    result = Proof(model_type, "M-RoPE in the attention layers among recurrent ones, axes alternately, part of the head")
    sizes: dict[str, Any] = SMALL | {"head_dim": 32, "num_hidden_layers": 5}
    if model_type == "qwen4_exp_text":
        sizes |= {
            "indexer_n_heads": 2,
            "indexer_kv_heads": 1,
            "indexer_head_dim": 32,
            "indexer_budget": 4,
            "indexer_compress_ratio": 1,
            "hc_count": 2,
            "hc_lowrank": 4,
            "pad_token_id": 0,
        }
    model_class = RECURRENT[model_type]
    model, spec = turned(result, model_class, rope_parameters=plain((4, 2, 2), partial_rotary_factor=0.5), **sizes)
    frequencies(result, module_named(model, "rotary_emb"), spec)
    kinds = ["full_attention", "linear_attention", "full_attention", "full_attention", "linear_attention"]
    turned(result, model_class, rope_parameters={"rope_type": "default", "rope_theta": 1e4}, **sizes, layer_types=kinds)
    scaled(result, model_class, **sizes)
    return result


@proof("cohere_compass_text")
def cohere_compass_text(model_type: str) -> Proof:
    result = Proof(model_type, "M-RoPE by kind of layer, axes alternately; a kind with null has no positions")
    kinds = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
    parameters = {"sliding_attention": plain((3, 3, 2)), "full_attention": plain((4, 2, 2), 5e4)}
    model, spec = turned(result, "CohereCompassTextModel", layer_types=kinds, sliding_window=4, rope_parameters=parameters)
    for layer, kind in enumerate(kinds):
        frequencies(result, module_named(model, "rotary_emb"), spec, layer, f"{kind}_inv_freq")
    parameters = {"sliding_attention": plain((3, 3, 2)), "full_attention": None}
    _, spec = turned(result, "CohereCompassTextModel", layer_types=kinds, sliding_window=4, rope_parameters=parameters)
    assert [len(layer.uses) for layer in spec.layers] == [1, 0, 1, 0]
    return result


@proof("ernie4_5_vl_moe_text")
def ernie4_5_vl_moe_text(model_type: str) -> Proof:
    result = Proof(model_type, "M-RoPE, interleaved pairs, rows and columns alternately, the slowest pairs for time")
    sizes: dict[str, Any] = {"moe_intermediate_size": [16, 16], "moe_num_experts": 4, "moe_k": 2}
    model, spec = turned(result, "Ernie4_5_VLMoeTextModel", rope_parameters=plain((3, 3, 2), 5e5), **sizes)
    own = module_named(model, "rotary_emb").inv_freq  # rows' pairs first, then columns', then time's
    mine = torch.tensor(spec.encoding(0, exact="model").frequencies.values)
    result.equal("8 frequencies", torch.cat([mine[0:6:2], mine[1:6:2], mine[6:]]), own)
    return result


@proof("qwen2_5_vl")
def qwen2_5_vl(model_type: str) -> Proof:
    result, config = assembled(
        model_type,
        "text by M-RoPE, a clip one image with time in seconds",
        {"text_config": "language_model", "vision_config": "visual"},
    )
    coordinates(result, config, "Qwen2_5_VLModel", split=False, interval=4 * 0.6, second_per_grid_ts=torch.tensor([0.6]))
    return result
