"""Layers with and without rotation, temperatures, Step 3.5: files in older spellings and with lists left out."""

from __future__ import annotations

import pytest

from families.old_spelling import YARN, same
from posenc.configs import read_config
from posenc.configs.errors import ConfigError

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
SMALL = {"hidden_size": 64, "num_attention_heads": 4}
STEP = {
    "model_type": "step3p5",
    "num_hidden_layers": 4,
    "sliding_window": 4,
    "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"],
}
OLD = [
    {"model_type": "smollm3", "rope_theta": 5e6, "num_hidden_layers": 9},
    {
        "model_type": "smollm3",
        "rope_theta": 5e6,
        "num_hidden_layers": 9,
        "no_rope_layer_interval": 3,
        "rope_scaling": YARN,
        "use_sliding_window": True,
        "sliding_window": 5,
    },
    {"model_type": "smollm3", "rope_theta": 5e6, "num_hidden_layers": 3, "no_rope_layers": [1, 0, 1]},
    {"model_type": "exaone4", "rope_theta": 1e6, "num_hidden_layers": 9},
    {
        "model_type": "exaone4",
        "rope_theta": 1e6,
        "num_hidden_layers": 7,
        "sliding_window_pattern": 3,
        "rope_scaling": LLAMA3,
    },
    {"model_type": "exaone_moe", "rope_theta": 1e6, "num_hidden_layers": 9, "sliding_window_pattern": 2},
    {"model_type": "kolibri1", "rope_theta": 1e6, "num_hidden_layers": 11},
    {"model_type": "muse_glimmer_text", "rope_theta": 1e6, "num_hidden_layers": 10},
    {"model_type": "muse_glimmer_text", "rope_theta": 1e6, "num_hidden_layers": 3, "layer_rope_theta": [0, 1e6, 0]},
    {
        "model_type": "muse_spark_text",
        "rope_parameters": {"rope_type": "default", "rope_theta": 9.0},
        "num_hidden_layers": 6,
    },
    {
        "model_type": "beam",
        "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 5.0}, "full_attention": None},
        "num_hidden_layers": 14,
    },
    {"model_type": "llama4_text", "rope_theta": 5e5, "num_hidden_layers": 9},
    {"model_type": "llama4_text", "rope_theta": 5e5, "num_hidden_layers": 5, "no_rope_layers": [], "rope_scaling": LLAMA3},
    {"model_type": "llama4_text", "rope_theta": 5e5, "num_hidden_layers": 2, "no_rope_layers": [0, 1]},
    {
        "model_type": "ministral3",
        "num_hidden_layers": 2,
        "rope_scaling": {**YARN, "rope_theta": 1e6, "llama_4_scaling_beta": 0.1},
    },
    {**STEP, "rope_theta": 1000.0},
    {**STEP, "rope_theta": [1000.0, 10.0, 1000.0, 10.0], "partial_rotary_factors": [0.5, 1.0, 0.5, 1.0]},
    {**STEP, "rope_theta": [1000.0, 10.0, 7.0, 10.0]},
    {**STEP, "rope_theta": 1000.0, "rope_scaling": LLAMA3},
    {**STEP, "num_hidden_layers": 3, "num_nextn_predict_layers": 1, "rope_theta": [1000.0, 10.0, 1000.0, 5.0]},
]


@pytest.mark.parametrize("old", OLD, ids=lambda old: "-".join(map(str, old.values()))[:80])
def test_the_old_spelling_means_what_the_class_makes_of_it(old: dict):
    same(old)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"model_type": "kolibri1", "rope_theta": 1e6, "sliding_window": None}, "sliding_window"),
        ({"model_type": "exaone4", "rope_theta": 1e6, "sliding_window_pattern": "LLLG"}, "sliding_window_pattern"),
        ({"model_type": "smollm3", "rope_theta": 1e6, "no_rope_layers": [1, 2, 3]}, "no_rope_layers"),
        (
            {"model_type": "ministral3", "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
            "llama_4_scaling_beta",
        ),
        ({"model_type": "muse_glimmer_text", "rope_theta": 1e6, "layer_rope_theta": [0]}, "layer_rope_theta"),
        ({"model_type": "beam", "rope_parameters": {"sliding_attention": {"rope_theta": 5.0}}}, "full_attention"),
    ],
)
def test_what_the_code_would_fail_at_is_refused_by_name(config: dict, named: str):
    with pytest.raises(ConfigError, match=named):
        read_config(config)


def test_a_missing_base_of_step_is_its_class_s_with_a_note_and_refused_without_defaults():
    config = {"model_type": "step3p5", "layer_types": ["full_attention"] * 45}
    spec = read_config(config)
    assert [finding.grade for finding in spec.remarks if finding.key == "rope_theta"] == ["note"]
    assert {use.rotation.base for layer in spec.layers for use in layer.uses} == {10000.0}
    with pytest.raises(ConfigError, match="rope_theta"):
        read_config(config, defaults=False)


def test_only_zero_counts_among_the_bases_of_muse():
    spec = read_config(
        {"model_type": "muse_glimmer_text", "rope_theta": 1e6, "num_hidden_layers": 3, "layer_rope_theta": [7.0, 1e6, 0]}
    )
    assert [finding.grade for finding in spec.remarks if finding.key == "layer_rope_theta"] == ["error"]
    assert spec.layers[0].uses[0].rotation.base == 1e6


def test_layers_of_one_kind_with_several_bases_are_told():
    spec = read_config({**STEP, "rope_theta": [1000.0, 10.0, 7.0, 10.0]})
    assert "rope_theta" in {finding.key for finding in spec.remarks if finding.grade == "error"}
