"""posenc.configs.families.jamba, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

from families.harness import Proof, build, config_of, frequencies, proof, spec_of
from families.old_spelling import places
from families.turning import LINEAR, LLAMA3, YARN, also, compared, turned
from posenc.configs import PositionSpec

MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 8}

DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}

SIZES: dict[str, dict[str, Any]] = {
    "bamba": MAMBA | {"attn_layer_indices": [1, 3], "hidden_size": 128, "mamba_d_head": 64},
    "falcon_h1": MAMBA | {"mamba_d_ssm": 128, "head_dim": 24, "num_hidden_layers": 2},
    "granitemoehybrid": MAMBA
    | {
        "layer_types": ["linear_attention", "full_attention", "full_attention"],
        "num_hidden_layers": 3,
        "position_embedding_type": "rope",
    },
    "lfm2": {"layer_types": ["conv", "full_attention", "full_attention", "conv"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "full_attention", "conv"], "num_dense_layers": 1},
    "minimax": {"head_dim": 24, "num_hidden_layers": 3, "sliding_window": 4, "block_size": 8},
    "olmo_hybrid": DELTA | {"num_hidden_layers": 5},
    "qwen3_next": DELTA | {"num_hidden_layers": 5, "head_dim": 24},
}


def _has_queries(module: Any) -> bool:
    """Attention, and not a recurrence that has queries as well (gated delta rules)."""
    return hasattr(module, "q_proj") and hasattr(module, "num_key_value_groups")


def placed(result: Proof, model: Any, spec: PositionSpec) -> None:
    """The layers that the note of the spec calls attention are those which have queries."""
    having = [n for n, layer in enumerate(model.layers) if any(map(_has_queries, layer.modules()))]
    (note,) = places(spec)
    result.equal("which layers are attention", note.rpartition("in layers ")[2], ", ".join(map(str, having)))


@proof(*SIZES)
def bamba(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, in the attention layers; the other layers also keep order")
    partial = {"bamba": 0.5, "qwen3_next": 0.25}.get(model_type)
    rotary = "pos_emb" if model_type == "lfm2_moe" else "rotary_emb"
    model = turned(result, rotary=rotary, rope_parameters=YARN, **SIZES[model_type])
    if model_type != "falcon_h1":  # whose layers all are
        placed(result, model, spec_of(model.config))
    for parameters in (None, LINEAR, LLAMA3):
        also(result, model, rotary, rope_parameters=parameters, **SIZES[model_type])
    if partial:
        result.does += f", over {partial:g} of the head"
        own = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.75}
        also(result, model, rotary, rope_parameters=own, **SIZES[model_type])
    if model_type in ("granitemoehybrid", "olmo_hybrid"):
        off = (
            {"position_embedding_type": None}
            if model_type == "granitemoehybrid"
            else {"rope_parameters": {"rope_type": "default", "rope_theta": None}}
        )
        config = config_of(model_type, **{**SIZES[model_type], **off})
        spec = spec_of(config)
        assert not any(layer.uses for layer in spec.layers)
        compared(result, build(config), spec)
        result.does += ", or no positions at all"
    return result


@proof("recurrent_gemma")
def recurrent_gemma(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE, half pairs, over half of the head, in attention within a window; recurrences also keep order"
    )
    sizes = {"attention_window_size": 4, "lru_width": 64, "num_hidden_layers": 6}
    model = turned(result, **sizes)
    placed(result, model, spec_of(model.config))
    for fraction in (0.25, 1.0):
        own = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": fraction}
        also(result, model, rope_parameters=own, **sizes)
    return result


STILL: dict[str, dict[str, Any]] = {
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8, "mamba_dt_rank": 4, "mamba_expand": 1},
    "nemotron_h": {
        "layers_block_type": ["linear_attention", "full_attention", "mlp", "full_attention"],
        "num_hidden_layers": None,
        "head_dim": 24,
        "mamba_num_heads": 4,
        "mamba_head_dim": 32,
        "ssm_state_size": 8,
        "n_groups": 1,
        "chunk_size": 8,
    },
    "zamba": {
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
        "mamba_d_state": 8,
        "n_mamba_heads": 2,
        "mamba_dt_rank": 4,
        "num_key_value_heads": 4,
        "attention_head_dim": 32,
    },
}


@proof(*STILL)
def jamba(model_type: str) -> Proof:
    result = Proof(model_type, "no positions in attention: order comes from the state space layers")
    config = config_of(model_type, **STILL[model_type])
    model, spec = build(config), spec_of(config)
    assert not any(layer.uses for layer in spec.layers)
    compared(result, model, spec)
    placed(result, model, spec)
    return result


@proof("zamba2")
def zamba2(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "RoPE, half pairs, in shared attention of twice the width, or none if use_mem_rope is "
        "off; state space layers also keep order",
    )
    sizes: dict[str, Any] = {
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
        "mamba_d_state": 8,
        "n_mamba_heads": 4,
        "mamba_ngroups": 1,
        "chunk_size": 8,
        "num_key_value_heads": 4,
        "adapter_rank": 4,
    }
    for on in (False, True):
        config = config_of(model_type, use_mem_rope=on, rope_parameters=YARN, **sizes)
        model, spec = build(config), spec_of(config)
        assert all(bool(layer.uses) == (on and layer.attends) for layer in spec.layers)
        compared(result, model, spec)
        placed(result, model, spec)
    frequencies(result, model.rotary_emb, spec, 1)
    for parameters in (None, LINEAR):
        also(result, model, use_mem_rope=True, rope_parameters=parameters, **sizes)
    return result
