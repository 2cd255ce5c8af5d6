"""Multimodal files as they are published, in version 4's spelling, mean what the family's class makes of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from posenc.configs import ConfigError, PositionSpec, read_config

MROPE = {"type": "mrope", "mrope_section": [16, 24, 24]}
QWEN: dict[str, Any] = {
    "hidden_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "rope_theta": 1e6,
}
TOWER: dict[str, Any] = {"depth": 2, "num_heads": 2, "hidden_size": 64}
OLD: list[dict[str, Any]] = [
    {
        "model_type": "qwen2_vl",
        **QWEN,
        "rope_scaling": MROPE,
        "vision_config": {"depth": 2, "embed_dim": 64, "num_heads": 2, "hidden_size": 512, "model_type": "qwen2_vl"},
    },
    {"model_type": "qwen2_5_vl", **QWEN, "rope_scaling": MROPE, "vision_config": TOWER | {"model_type": "qwen2_5_vl"}},
    {
        "model_type": "qwen2_5_vl",
        **QWEN,
        "rope_scaling": MROPE,
        "use_sliding_window": True,
        "sliding_window": 32,
        "max_window_layers": 1,
        "vision_config": TOWER,
    },
    {
        "model_type": "qwen2_5_vl",
        **QWEN,
        "vision_config": TOWER,
        "max_position_embeddings": 128000,
        "rope_scaling": {
            "type": "yarn",
            "mrope_section": [16, 24, 24],
            "factor": 4.0,
            "original_max_position_embeddings": 32768,
        },
    },
    {
        "model_type": "paddleocr_vl",
        **QWEN,
        "head_dim": 128,
        "rope_scaling": {"type": "default", "mrope_section": [16, 24, 24]},
        "vision_config": {"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2, "image_size": 28},
    },
    {
        "model_type": "qwen3_vl",
        "vision_config": TOWER | {"model_type": "qwen3_vl"},
        "text_config": {
            "model_type": "qwen3_vl_text",
            **QWEN,
            "head_dim": 128,
            "rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [24, 20, 20]},
        },
    },
    {
        "model_type": "qwen3_5_text",
        "num_hidden_layers": 8,
        "rope_theta": 1e7,
        "rope_scaling": {"mrope_section": [11, 11, 10]},
    },
    {"model_type": "qwen3_5_text", "num_hidden_layers": 6, "full_attention_interval": 3, "rope_theta": 1e7},
    {"model_type": "qwen4_exp_text", "num_hidden_layers": 4, "rope_theta": 1e7, "partial_rotary_factor": 0.25},
    {
        "model_type": "glm4v_text",
        "num_hidden_layers": 2,
        "rope_theta": 1e4,
        "partial_rotary_factor": 0.5,
        "rope_scaling": {"type": "default", "mrope_section": [8, 12, 12]},
    },
    {
        "model_type": "glm4v_moe_text",
        "num_hidden_layers": 2,
        "head_dim": 128,
        "rope_theta": 1e4,
        "rope_scaling": {"type": "default", "mrope_section": [8, 12, 12]},
    },
    {
        "model_type": "ernie4_5_vl_moe_text",
        "num_hidden_layers": 2,
        "rope_theta": 5e5,
        "hidden_size": 512,
        "num_attention_heads": 4,
        "rope_scaling": {"type": "default", "mrope_section": [22, 22, 20]},
    },
    {
        "model_type": "minimax_m3_vl_text",
        "num_hidden_layers": 4,
        "rope_theta": 5e6,
        "partial_rotary_factor": 0.5,
        "sparse_attention_config": {"sparse_attention_freq": [0, 1, 0, 1]},
    },
    {
        "model_type": "molmo2_text",
        "num_hidden_layers": 3,
        "rope_theta": 5e6,
        "rope_scaling_layers": [0, 2],
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    },
    {
        "model_type": "mllama_text_model",
        "num_hidden_layers": 5,
        "rope_theta": 5e5,
        "cross_attention_layers": [3],
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    },
    {"model_type": "pixtral", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2, "rope_theta": 5e3},
    {"model_type": "dinov3_vit", "num_hidden_layers": 2, "rope_theta": 50.0},
    {"model_type": "eomt_dinov3", "num_hidden_layers": 2, "rope_theta": 50.0},
]


def stacks(spec: PositionSpec) -> Iterator[PositionSpec]:
    yield spec
    for part in sorted(spec.parts, key=lambda part: part.part):
        yield from stacks(part)


@pytest.mark.parametrize("old", OLD, ids=lambda old: old["model_type"])
def test_the_old_spelling_means_what_the_class_makes_of_it(old: dict[str, Any]):
    given = copy.deepcopy(old)
    new = CONFIG_MAPPING[given.pop("model_type")](**given).to_dict()
    mine, theirs = list(stacks(read_config(old))), list(stacks(read_config(new)))
    assert [(spec.part, spec.family, len(spec.layers)) for spec in mine] == [
        (s.part, s.family, len(s.layers)) for s in theirs
    ]
    for here, there in zip(mine, theirs, strict=True):
        for one, other in zip(here.layers, there.layers, strict=True):
            assert (one.kind, one.window, one.causal) == (other.kind, other.window, other.causal)
            assert [(use.encoding, use.arguments) for use in one.uses] == [
                (use.encoding, use.arguments) for use in other.uses
            ]


def test_nothing_that_counts_goes_unread_in_published_files():
    for old in OLD[:6]:
        graver = [finding for spec in stacks(read_config(old)) for finding in spec.remarks if finding.grade != "note"]
        assert not graver, graver


def test_mrope_is_a_type_for_two_families_only():
    for model_type, fails in (("qwen2_vl_text", False), ("qwen2_5_vl_text", False), ("qwen2_5_omni_text", True)):
        spec = read_config(
            {
                "model_type": model_type,
                "hidden_size": 512,
                "num_attention_heads": 4,
                "rope_theta": 1e6,
                "rope_scaling": MROPE,
            }
        )
        assert any(finding.key == "rope_scaling.rope_type" for finding in spec.remarks) == fails


def test_a_way_of_dealing_that_the_code_has_not_is_told():
    config = {
        "model_type": "qwen3_vl_text",
        "rope_theta": 1e6,
        "rope_scaling": {"mrope_section": [24, 20, 20], "mrope_interleaved": False},
    }
    found = {finding.key: finding.grade for finding in read_config(config).remarks}
    assert found["rope_scaling.mrope_interleaved"] == "error"


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ([16, 24, 25], "mrope_section: expected sections that sum to 64 pairs"),
        ([16, 24], "mrope_section: expected a list of 3 numbers"),
        ([16.5, 23.5, 24], "mrope_section: expected three whole numbers"),
        ("16,24,24", "mrope_section: expected a list of 3 numbers"),
    ],
)
def test_sections_that_do_not_fit_are_refused(section: Any, says: str):
    config = {
        "model_type": "qwen2_vl_text",
        "hidden_size": 512,
        "num_attention_heads": 4,
        "rope_theta": 1e6,
        "rope_scaling": {"type": "mrope", "mrope_section": section},
    }
    with pytest.raises(ConfigError, match=says):
        read_config(config)


def test_towers_know_axial_only():
    with pytest.raises(ConfigError, match="expected 'axial'"):
        read_config({"model_type": "pixtral", "rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}})


def test_sections_that_published_files_call_otherwise():
    kimi = read_config(
        {"model_type": "kimi_k25", "text_config": {"model_type": "kimi_k2"}, "vision_config": {}}, defaults=True
    )
    assert kimi["text_config"].family == "deepseek_v3"
    molmo = read_config(
        {
            "model_type": "molmo2",
            "text_config": {"rope_theta": 1e6, "model_type": "molmo2_text"},
            "vit_config": {"image_num_pos": 12},
        },
        defaults=True,
    )
    assert molmo["vit_config"].family == "molmo2_vision"


def test_sections_stay_where_frequencies_depend_on_length():
    rope = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4, "mrope_section": [2, 3, 3]}
    spec = read_config(
        {
            "model_type": "qwen2_vl_text",
            "hidden_size": 64,
            "num_attention_heads": 4,
            "rope_parameters": rope,
            "max_position_embeddings": 32,
            "num_hidden_layers": 1,
        }
    )
    short, long = (spec.encoding(0).at_length(n).frequencies for n in (32, 128))
    assert short.axes == long.axes == (0, 0, 1, 1, 1, 2, 2, 2)
    base = 1e4 * (4.0 * 128 / 32 - 3.0) ** (16 / 14)
    assert long.values == pytest.approx([base ** (-2 * i / 16) for i in range(8)])
    assert short.values == pytest.approx([1e4 ** (-2 * i / 16) for i in range(8)])
