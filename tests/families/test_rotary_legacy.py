"""Older spellings of rotary decoders: a file as it was published reads like what its class makes of it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import modeling, spec_of
from posenc.configs import PositionSpec, read_config

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048, "beta_fast": 24.0}
SHORT = [1.0 + n / 9 for n in range(48)]
LONG = [2.0 + n / 3 for n in range(48)]
KINDS = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]

FILES: list[tuple[str, dict[str, Any]]] = [
    ("llama", {"rope_theta": 500000.0}),
    ("llama", {"rope_theta": 500000.0, "rope_scaling": LLAMA3, "num_key_value_heads": 8, "head_dim": 64}),
    ("llama", {"rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 4.0}}),
    ("llama", {"rope_theta": 10000.0, "rope_scaling": {"type": "dynamic", "factor": 2.0}, "max_position_embeddings": 4096}),
    ("llama", {"rope_theta": 10000.0, "rope_scaling": YARN, "rope_parameters": None}),
    ("llama", {"rope_theta": 10000.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}),
    ("mistral", {"rope_theta": 1e6, "sliding_window": None, "head_dim": 128}),
    ("mistral", {"rope_theta": 10000.0, "sliding_window": 4096}),
    ("mixtral", {"rope_theta": 1e6, "sliding_window": None}),
    ("starcoder2", {"rope_theta": 1e5, "sliding_window": 4096}),
    ("qwen2", {"rope_theta": 1e6, "use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28}),
    ("qwen2", {"rope_theta": 1e6, "use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 20}),
    ("qwen2_moe", {"rope_theta": 1e6, "use_sliding_window": True, "sliding_window": 64, "max_window_layers": 9}),
    (
        "qwen3",
        {
            "rope_theta": 1e6,
            "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
        },
    ),
    ("qwen3_moe", {"rope_theta": 1e7, "sliding_window": None, "use_sliding_window": False, "max_window_layers": 48}),
    ("dots1", {"rope_theta": 1e7, "sliding_window": None, "max_window_layers": 62}),
    ("gemma2", {"rope_theta": 10000.0, "sliding_window": 4096}),
    (
        "gpt_oss",
        {
            "rope_theta": 150000,
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 32.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": False,
                "original_max_position_embeddings": 4096,
            },
        },
    ),
    ("cwm", {"rope_theta": 1e6, "rope_scaling": LLAMA3, "layer_types": KINDS * 16}),
    ("gpt_neox", {"rotary_pct": 0.25, "rotary_emb_base": 10000}),
    ("gpt_neox", {"rotary_pct": 1.0, "rotary_emb_base": 50000, "rope_scaling": {"type": "linear", "factor": 2.0}}),
    ("gpt_neox_japanese", {"rotary_pct": 0.5, "rotary_emb_base": 10000}),
    ("phi", {"rope_theta": 10000.0, "partial_rotary_factor": 0.4}),
    ("phi", {"rope_theta": 10000.0}),
    ("stablelm", {"rope_theta": 10000, "partial_rotary_factor": 0.25}),
    ("persimmon", {"rope_theta": 25000.0}),
    ("nemotron", {"rope_theta": 10000, "partial_rotary_factor": 0.5}),
    ("minimax_m2", {"rope_theta": 5000000, "rotary_dim": 64}),
    ("phi3", {"rope_theta": 10000.0, "rope_scaling": None}),
    (
        "phi3",
        {
            "rope_theta": 10000.0,
            "rope_scaling": {"type": "longrope", "short_factor": SHORT, "long_factor": LONG},
            "max_position_embeddings": 131072,
            "original_max_position_embeddings": 4096,
        },
    ),
    (
        "phi3",
        {
            "rope_theta": 10000.0,
            "rope_scaling": {"type": "longrope", "short_factor": SHORT[:36], "long_factor": LONG[:36]},
            "partial_rotary_factor": 0.75,
            "max_position_embeddings": 131072,
        },
    ),
    (
        "phimoe",
        {
            "rope_theta": 10000.0,
            "sliding_window": 2047,
            "original_max_position_embeddings": 4096,
            "rope_scaling": {
                "type": "longrope",
                "short_factor": SHORT,
                "long_factor": LONG,
                "short_mscale": 1.24,
                "long_mscale": 1.25,
                "original_max_position_embeddings": 4096,
            },
        },
    ),
    (
        "gemma3_text",
        {
            "rope_theta": 1e6,
            "rope_local_base_freq": 10000.0,
            "sliding_window_pattern": 6,
            "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        },
    ),
    (
        "gemma3_text",
        {
            "rope_theta": 1e6,
            "rope_local_base_freq": 500.0,
            "sliding_window_pattern": 3,
            "rope_scaling": {"type": "linear", "factor": 8.0},
        },
    ),
    ("gemma3_text", {"rope_theta": 1e6, "rope_local_base_freq": 500.0, "use_bidirectional_attention": True}),
    ("gemma3n_text", {"rope_theta": 1e6, "rope_local_base_freq": 10000.0, "num_kv_shared_layers": 15}),
    ("t5gemma2_text", {"rope_theta": 1e6, "rope_local_base_freq": 10000.0, "sliding_window_pattern": 4}),
    (
        "olmo3",
        {
            "rope_theta": 500000,
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 8.0,
                "attention_factor": 1.2,
                "original_max_position_embeddings": 8192,
            },
        },
    ),
    ("olmo3", {"rope_theta": 12345.0, "rope_scaling": {"type": "yarn", "factor": 8.0}}),
    (
        "mimo_v2_flash",
        {
            "rope_parameters": {
                "full_attention": {"rope_theta": 1e6, "rope_type": "default"},
                "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"},
            },
            "sliding_window_size": 128,
        },
    ),
    (
        "gemma4_text",
        {
            "global_head_dim": 128,
            "rope_parameters": {
                "full_attention": {"rope_theta": 1e6, "rope_type": "proportional", "partial_rotary_factor": 0.5},
                "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"},
            },
        },
    ),
    (
        "hunyuan_v1_dense",
        {"rope_theta": 10000.0, "head_dim": 128, "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}},
    ),
    ("granite_swa", {"rope_theta": 10000.0, "layer_rope_theta": [0, 1e4, 1e5, 0] * 6}),
    ("falcon", {"rope_theta": 10000.0, "n_embed": 1136, "num_attention_heads": 71}),
    ("falcon", {"alibi": True, "hidden_size": 1024, "num_attention_heads": 16}),
    ("dbrx", {"rope_theta": 500000.0, "max_seq_len": 32768, "d_model": 256, "n_heads": 4, "n_layers": 3}),
    ("jetmoe", {"rope_theta": 10000.0, "kv_channels": 64}),
    ("hrm_text", {"rope_theta": 10000.0, "num_hidden_layers": 3, "H_cycles": 2, "L_cycles": 4}),
    ("evolla", {"rope_theta": 500000.0, "protein_encoder_config": {"rope_theta": 5000.0, "num_hidden_layers": 2}}),
]


def bare(spec: PositionSpec) -> Any:
    """What a spec says, without where it was said."""
    layers = tuple(replace(layer, uses=tuple(replace(use, said_by=()) for use in layer.uses)) for layer in spec.layers)
    return layers, spec.d_model, spec.d_head, spec.n_heads, spec.trained_length, tuple(map(bare, spec.parts))


@pytest.mark.parametrize(("model_type", "said"), FILES, ids=[f"{n} {name}" for n, (name, _) in enumerate(FILES)])
def test_the_older_spelling_reads_like_what_the_class_makes_of_it(model_type: str, said: dict[str, Any]):
    ours = read_config({"model_type": model_type} | deepcopy(said))
    theirs = spec_of(CONFIG_MAPPING[model_type](**deepcopy(said)))
    assert bare(ours) == bare(theirs)


@pytest.mark.parametrize("model_type", ["mixtral", "ministral", "hunyuan_v1_dense", "hunyuan_v1_moe"])
def test_scaling_without_head_dim_fails_in_the_family_and_is_told(model_type: str):
    said = {"rope_theta": 10000.0, "rope_scaling": YARN, "hidden_size": 64, "num_attention_heads": 4}
    spec = read_config({"model_type": model_type} | deepcopy(said))
    assert ("error", "head_dim") in {(finding.grade, finding.key) for finding in spec.remarks}
    own = next(value for name, value in vars(modeling(model_type)).items() if name.endswith("RotaryEmbedding"))
    with pytest.raises(TypeError, match="NoneType"):
        own(CONFIG_MAPPING[model_type](**deepcopy(said)))
    whole = read_config({"model_type": model_type, "head_dim": 16} | deepcopy(said))
    assert "head_dim" not in {finding.key for finding in whole.remarks}


@pytest.mark.parametrize(
    "model_type", ["apertus", "cwm", "gpt_oss", "laguna", "mellum", "mimo_v2_flash", "zaya", "gemma4_text"]
)
def test_a_file_without_rotary_settings_means_the_class_s_and_one_note_says_so(model_type: str):
    with pytest.raises(ValueError, match="defaults=False"):
        read_config({"model_type": model_type}, defaults=False)
    spec = read_config({"model_type": model_type})
    assert {one.grade for one in spec.remarks if one.text.startswith("missing: ")} == {"note"}
    assert bare(spec) == bare(spec_of(CONFIG_MAPPING[model_type]()))
