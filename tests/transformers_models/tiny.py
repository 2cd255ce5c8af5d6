"""A tiny random model of every causal-LM type of transformers.

MODEL_TYPES                  what AutoModelForCausalLM knows
config_of("gemma2")          its default configuration, made small by one rule; SPECIAL holds the exceptions
model_of("gemma2")           the model, float32, in evaluation mode, weights large enough for positions to matter
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

MODEL_TYPES = tuple(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
MOST_PARAMETERS = 20_000_000
LAYERS = 4

# Sizes by key. A key that a configuration does not have, or leaves at None, is left out.
KEYS = {
    64: """hidden_size d_model n_embd emb_dim embedding_dim word_embed_proj_dim attention_hidden_size lru_width
        hidden_size_global embedding_size input_embedding_size output_embedding_size backbone_hidden_size input_size
        out_hidden_size max_position_embeddings n_positions n_ctx max_seq_len max_target_positions context_length
        original_max_position_embeddings rel_extent max_source_positions index_topk""",
    96: """vocab_size vocab_size_per_layer_input audio_vocab_size decoder_vocab_size intermediate_size decoder_ffn_dim
        encoder_ffn_dim ffn_dim ffn_hidden_size dff d_ff dim_ff d_inner intermediate_size_mlp dense_intermediate_size
        shared_intermediate_size feed_forward_size mlp_dim""",
    50: "shape_vocab_size pronunciation_vocab_size",
    32: """moe_intermediate_size shared_expert_intermediate_size shared_experts_intermediate_size expert_ffn_hidden_size
        moe_shared_expert_intermediate_size hidden_size_per_layer_input router_hidden_size adapter_rank laurel_rank
        kv_lora_rank q_lora_rank o_lora_rank hc_lowrank mamba_d_head mamba_head_dim codebook_size""",
    16: """head_dim swa_head_dim d_kv kv_channels dim_head d_head linear_key_head_dim v_head_dim linear_value_head_dim
        linear_head_dim qk_nope_head_dim qk_rope_head_dim index_head_dim attention_head_size mamba_d_state state_size
        ssm_state_size mamba_chunk_size chunk_size shape_embed_dim pronunciation_embed_dim""",
    8: "rotary_dim",
    6: "sliding_window window_size attention_window_size sliding_window_size local_attention attention_chunk_size",
    4: """num_attention_heads n_head n_heads num_heads decoder_attention_heads encoder_attention_heads attention_heads
        num_decoder_attention_heads num_encoder_attention_heads swa_num_attention_heads linear_num_value_heads
        linear_num_heads index_n_heads mamba_num_heads mamba_n_heads num_experts n_routed_experts num_local_experts
        moe_num_experts zero_expert_num""",
    2: """num_key_value_heads num_kv_heads kv_n_heads swa_num_key_value_heads linear_num_key_heads num_experts_per_tok
        moe_topk moe_top_k moe_k n_group eos_token_id""",
    1: "topk_group bos_token_id num_layers_per_stack num_residual_layers num_res_blocks",
    0: "pad_token_id mem_len",
}
SIZES = {key: size for size, keys in KEYS.items() for key in keys.split()}
DEPTHS = (
    *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers", "depth", "num_blocks"),
    *("num_decoder_layers", "num_encoder_layers", "num_global_layers", "conf_num_hidden_layers"),
)

# What the rule above does not get right, by type. A dict under the name of a sub-configuration changes that one.
HEAD = {"head_dim": 16}
EXPERTS = {"n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 1, "num_experts_per_tok": 2}
SHARED_KEYS = {
    "num_hidden_layers": 4,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "num_kv_shared_layers": 2,
    "activation_sparsity_pattern": [0.0] * 4,
}
INDEXER = {
    "indexer_n_heads": 2,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 16,
    "indexer_budget": 16,
    "indexer_compress_ratio": 4,
}
QWEN = {
    "head_dim": 64,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.25,
        "mrope_section": [3, 3, 2],
        "mrope_interleaved": True,
    },
}
BLT = {"encoder_config": {"vocab_size": 260}, "decoder_config": {}, "patcher_config": {}, "global_config": {}}
DOTS = {
    "layer_types": ["indexed_attention", "sliding_attention"] * 2,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "swa_num_attention_heads": 4,
    "swa_num_key_value_heads": 4,
    "swa_q_lora_rank": 32,
    "swa_kv_lora_rank": 32,
    "swa_head_dim": 32,
    "swa_qk_nope_head_dim": 16,
    "swa_v_head_dim": 16,
}
SPECIAL: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1, 3]},
    "blt": BLT | {"encoder_hash_byte_group_vocab": 50},
    "cohere_compass_text": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 10000.0}}},
    "deepseek_v2": EXPERTS,
    "dots1": EXPERTS,
    "dots3_note": {
        "vision_config": {"adapter_in_dim": 64, "adapter_out_dim": 64},
        "audio_config": {"adapter_input_size": 64, "adapter_out_dim": 64},
        "text_config": DOTS,
    },
    "dots3_note_text": DOTS,
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "clip_qkv": 8.0}},
    "gemma4_assistant": {"text_config": {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}},
    "gemma4_unified_assistant": {"text_config": {"num_kv_shared_layers": 4}},
    "gemma3n": {"text_config": SHARED_KEYS},
    "gemma3n_text": SHARED_KEYS,
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "hunyuan_v1_dense": HEAD,
    "hunyuan_v1_moe": HEAD | {"num_experts": 2, "moe_topk": 1},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "num_hidden_layers": 4},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "mamba2": {"head_dim": 32, "n_groups": 2},
    "mimo_v2_flash": {"head_dim": 24},
    "ministral": HEAD,
    "musicgen": {"decoder": {"num_codebooks": 1}},
    "musicgen_melody": {"decoder": {"num_codebooks": 1}},
    "nemotron": HEAD | {"num_key_value_heads": 2},
    "nemotron_h": {"n_groups": 2},
    "xmod": {"default_language": "en_XX"},
    "zamba": {
        "attention_hidden_size": 128,
        "attention_head_dim": 32,
        "num_hidden_layers": 4,
        "layers_block_type": ["linear_attention", "hybrid"] * 2,
    },
    "qwen3_5": {"text_config": QWEN},
    "qwen3_5_moe": {"text_config": QWEN},
    "qwen3_5_moe_text": QWEN,
    "qwen3_5_text": QWEN,
    "reformer": {"axial_pos_embds_dim": [32, 32], "axial_pos_shape": [8, 8]},
    "qwen4_exp": {"text_config": INDEXER},
    "qwen4_exp_text": INDEXER,
}


def config_of(model_type: str) -> Any:
    """The default configuration made small: every kind of layer occurs, in at most LAYERS layers where that is possible."""
    return _shrunk(CONFIG_MAPPING[model_type], SPECIAL.get(model_type, {}))


def model_of(model_type: str) -> Any:
    """The causal language model of a type. Raises ValueError for one that is not tiny."""
    config, build = config_of(model_type), transformers.AutoModelForCausalLM.from_config
    if model_type in ("musicgen", "musicgen_melody"):  # the mapping names the class of the decoder alone
        build, config = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]._from_config, config.decoder
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in build(copy.deepcopy(config)).parameters())
    if size > MOST_PARAMETERS:
        raise ValueError(f"{model_type}: {size} parameters; its configuration is not tiny")
    torch.manual_seed(0)
    return drawn(build(config, dtype=torch.float32).eval())


@torch.no_grad()
def drawn(model: Any) -> Any:
    """Gives matrices a spread of 1/sqrt(columns), so that attention is far from uniform, and moves all other weights."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.ndim < 2:
            parameter.add_(noise, alpha=0.1)
        else:
            parameter.copy_(noise / parameter.shape[-1] ** 0.5)
    return model


def _shrunk(kind: Any, special: dict[str, Any]) -> Any:
    default = kind()
    held = {name: vars(default).get(name) for name in kind.__dataclass_fields__}
    numbers = {name: value for name, value in held.items() if type(value) is int}
    wanted: dict[str, Any] = {
        name: SIZES[name] for name, value in numbers.items() if name in SIZES and (value > SIZES[name] or "token" in name)
    }
    if held.get("attn_logit_softcapping"):  # 50.0, which random logits do not reach
        wanted["attn_logit_softcapping"] = 1.0
    if held.get("is_decoder") is False:
        wanted["is_decoder"] = True
    if held.get("kv_lora_rank") and "num_key_value_heads" in held:  # latent attention expands its keys to all query heads
        wanted["num_key_value_heads"] = SIZES["num_attention_heads"]
    if depth := next((numbers[name] for name in DEPTHS if name in numbers), 0):
        chosen = _layers(held, depth)
        wanted |= {name: len(chosen) for name in DEPTHS if numbers.get(name, 0) > len(chosen)}
        wanted |= {name: [held[name][n] for n in chosen] for name in _per_layer(held, depth)}
    wanted |= {name: value for name, value in special.items() if name not in kind.sub_configs}
    for name in kind.sub_configs:
        if getattr(default, name, None) is not None:
            wanted[name] = _shrunk(type(getattr(default, name)), special.get(name, {}))
    return kind(**copy.deepcopy(wanted))


def _per_layer(held: dict[str, Any], depth: int) -> list[str]:
    """The keys that hold one entry for each layer."""
    return [name for name, value in held.items() if isinstance(value, (list, tuple)) and len(value) == depth and depth > 1]


def _layers(held: dict[str, Any], depth: int) -> list[int]:
    """The first layer of each kind, then the first others, up to LAYERS; more where there are more kinds."""
    kinds = list(zip(*(held[name] for name in _per_layer(held, depth)), strict=True)) or [()] * depth
    first = {str(kind): n for n, kind in reversed(list(enumerate(kinds)))}
    chosen = sorted(first.values())
    for n in range(depth):
        if len(chosen) >= LAYERS:
            break
        if n not in chosen:
            chosen.append(n)
    return sorted(chosen)
