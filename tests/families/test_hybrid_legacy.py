"""Attention among recurrent layers: files in older spellings and with lists left out."""

from __future__ import annotations

import pytest

from families.old_spelling import YARN, same
from posenc.configs import read_config
from posenc.configs.errors import ConfigError

OLD = [
    {"model_type": "bamba", "rope_theta": 1e4, "num_hidden_layers": 6, "attn_layer_indices": [2, 5]},
    {"model_type": "bamba", "rope_theta": 1e4, "num_hidden_layers": 2, "attn_layer_indices": [1], "rope_scaling": YARN},
    {
        "model_type": "bamba",
        "num_hidden_layers": 2,
        "attn_layer_indices": [1],
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25},
    },
    {"model_type": "qwen3_next", "rope_theta": 1e7, "num_hidden_layers": 9},
    {"model_type": "qwen3_next", "rope_theta": 1e7, "num_hidden_layers": 9, "full_attention_interval": 3},
    {
        "model_type": "qwen3_next",
        "rope_theta": 1e7,
        "num_hidden_layers": 4,
        "partial_rotary_factor": 0.5,
        "rope_scaling": YARN,
    },
    {"model_type": "falcon_h1", "rope_theta": 1e11, "num_hidden_layers": 2},
    {
        "model_type": "granitemoehybrid",
        "rope_theta": 1e4,
        "num_hidden_layers": 4,
        "position_embedding_type": "rope",
        "layer_types": ["mamba", "attention", "mamba", "attention"],
    },
    {"model_type": "granitemoehybrid", "rope_theta": 1e4, "num_hidden_layers": 2, "layer_types": ["mamba", "attention"]},
    {"model_type": "lfm2", "rope_theta": 1e6, "num_hidden_layers": 5, "full_attn_idxs": [1, 4]},
    {"model_type": "lfm2", "rope_theta": 1e6, "num_hidden_layers": 3},
    {
        "model_type": "lfm3",
        "num_hidden_layers": 9,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 5.0},
            "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.5},
        },
    },
    {"model_type": "minimax", "rope_theta": 1e7, "num_hidden_layers": 5},
    {"model_type": "olmo_hybrid", "rope_theta": 5e5, "num_hidden_layers": 9},
    {"model_type": "olmo_hybrid", "rope_theta": 5e5, "num_hidden_layers": 3},
    {"model_type": "recurrent_gemma", "rope_theta": 1e4, "num_hidden_layers": 8},
    {
        "model_type": "recurrent_gemma",
        "rope_theta": 1e4,
        "num_hidden_layers": 5,
        "block_types": ["attention", "recurrent"],
        "partial_rotary_factor": 0.25,
    },
    {"model_type": "jamba", "num_hidden_layers": 17},
    {"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*EM*-"},
    {"model_type": "zamba", "num_hidden_layers": 20},
    {"model_type": "zamba2", "use_mem_rope": True, "rope_theta": 1e4},
    {"model_type": "zamba2", "use_long_context": True},
]


@pytest.mark.parametrize("old", OLD, ids=lambda old: "-".join(map(str, old.values()))[:80])
def test_the_old_spelling_means_what_the_class_makes_of_it(old: dict):
    same(old)


def test_bamba_takes_half_whatever_stands_beside_the_settings():
    spec = read_config({"model_type": "bamba", "rope_theta": 1e4, "partial_rotary_factor": 1.0, "attn_layer_indices": [0]})
    assert spec.layers[0].uses[0].rotation.width == 64
    assert "partial_rotary_factor" in {finding.key for finding in spec.remarks if finding.grade == "error"}


def test_a_base_of_null_means_no_positions_in_olmo_hybrid():
    spec = read_config({"model_type": "olmo_hybrid", "rope_parameters": {"rope_type": "default", "rope_theta": None}})
    assert spec.layers
    assert not any(layer.uses for layer in spec.layers)


def test_the_infinity_that_published_files_hold_is_read_and_a_base_of_infinity_is_not(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "mamba2", "hidden_size": 64, "time_step_limit": [0.0, Infinity]}')
    assert read_config(path).layers == ()
    path.write_text('{"model_type": "falcon_h1", "rope_theta": Infinity}')
    with pytest.raises(ConfigError, match="rope_theta: expected a positive number, got Infinity"):
        read_config(path)
