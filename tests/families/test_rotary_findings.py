"""What a person is told about rotary decoders whose code does not do what the file seems to say."""

from __future__ import annotations

from typing import Any

import pytest

from posenc.configs import ConfigError, read_config

BASE = {"rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096, "truncate": False}
LONGROPE = {
    "type": "longrope",
    "short_factor": [1.0] * 64,
    "long_factor": [4.0] * 64,
    "short_mscale": 1.0,
    "long_mscale": 1.2,
}
TWO = {"full_attention": YARN | BASE, "sliding_attention": {"rope_type": "default"} | BASE}
TOLD: list[tuple[dict[str, Any], str, str]] = [
    ({"model_type": "laguna", "rope_parameters": TWO}, "warning", "rope_parameters.full_attention.truncate"),
    (
        {"model_type": "phimoe", "rope_scaling": LONGROPE, "original_max_position_embeddings": 4096} | BASE,
        "warning",
        "rope_scaling.long_factor",
    ),
    ({"model_type": "dbrx", "attn_config": {"rope_theta": 500000.0}} | BASE, "error", "attn_config.rope_theta"),
    ({"model_type": "olmo3", "rope_theta": 12345.0}, "error", "rope_theta"),
    ({"model_type": "olmo3", "rope_scaling": {"type": "yarn", "factor": 8.0}} | BASE, "error", "rope_scaling.rope_type"),
    ({"model_type": "mistral", "layer_types": ["full_attention"] * 32} | BASE, "error", "layer_types"),
    ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False} | BASE, "note", "sliding_window"),
    ({"model_type": "gpt_neox", "rotary_emb_base": 10000, "rope_theta": 5.0}, "warning", "rope_theta"),
    ({"model_type": "flint", "sliding_window": None} | BASE, "warning", "sliding_window"),
    ({"model_type": "gemma", "use_bidirectional_attention": True} | BASE, "warning", "use_bidirectional_attention"),
    ({"model_type": "gemma4_audio", "attention_chunk_size": 40}, "error", "attention_chunk_size"),
    ({"model_type": "falcon", "alibi": True}, "warning", "alibi"),
    ({"model_type": "nanochat"} | BASE, "note", "rope_parameters"),
    (
        {"model_type": "gemma3_text", "rope_local_base_freq": 1e4, "rope_parameters": {"rope_type": "linear"}} | BASE,
        "error",
        "rope_parameters",
    ),
]


@pytest.mark.parametrize(("said", "grade", "key"), TOLD, ids=[f"{said['model_type']} {key}" for said, _, key in TOLD])
def test_it_is_told(said: dict[str, Any], grade: str, key: str):
    found = read_config(said).remarks
    assert (grade, key) in {(finding.grade, finding.key) for finding in found}, found


def test_gpt_oss_has_one_object_for_all_layers_and_its_truncate_counts():
    spec = read_config({"model_type": "gpt_oss", "rope_theta": 150000.0, "rope_scaling": YARN})
    assert dict(spec.layers[0].uses[0].rotation.parameters)["truncate"] is False
    laguna = read_config({"model_type": "laguna", "rope_parameters": TWO})
    assert "truncate" not in dict(laguna.layers[0].uses[0].rotation.parameters)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "laguna", "rope_parameters": {"rope_type": "default"} | BASE}, "an object for each kind"),
    ({"model_type": "zaya", "layer_types": ["full_attention"] * 40, "rope_parameters": TWO}, "hybrid or hybrid_sliding"),
    ({"model_type": "phi3", "rope_scaling": {"type": "llama3", "factor": 2.0}} | BASE, "expected longrope or default"),
    ({"model_type": "phimoe", "rope_scaling": {"type": "linear", "factor": 2.0}} | BASE, "expected longrope or default"),
    ({"model_type": "phimoe", "rope_scaling": {**LONGROPE, "long_mscale": None}} | BASE, "long_mscale"),
    ({"model_type": "solar_open", "partial_rotary_factor": 0.5} | BASE, "expected 1"),
    ({"model_type": "gemma4_text", "rope_parameters": TWO, "per_layer_config": {"5": {"head_dim": 64}}}, "head_dim is"),
    ({"model_type": "gemma2", "layer_types": ["chunked"] * 26} | BASE, "expected full_attention or sliding_attention"),
    ({"model_type": "gemma4_audio", "attention_context_right": 2}, "expected 0"),
    ({"model_type": "phi4_multimodal_audio", "bias_symmetric": True}, "expected false"),
    ({"model_type": "idefics_vision", "image_size": [224, 112]}, "expected a square"),
    ({"model_type": "granite_swa", "layer_rope_theta": [1e4]} | BASE, "list of 24 numbers"),
]


@pytest.mark.parametrize(
    ("said", "words"), REFUSED, ids=[f"{n} {said['model_type']}" for n, (said, _) in enumerate(REFUSED)]
)
def test_it_is_refused(said: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        read_config(said)
