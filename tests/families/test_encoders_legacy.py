"""Encoders and models made of others: files in older spellings and with lists left out."""

from __future__ import annotations

import pytest

from families.old_spelling import YARN, same
from posenc.configs import read_config

SPECTRUM = {"type": "xdrope", "alpha": 1000.0, "factor": 1.0, "xdrope_section": [16, 16, 16, 16]}
OLD = [
    {"model_type": "eurobert", "rope_theta": 25e4, "num_hidden_layers": 2},
    {"model_type": "gte", "rope_theta": 16e4, "num_hidden_layers": 2, "rope_scaling": YARN},
    {"model_type": "nomic_bert", "rope_theta": 1000.0, "num_hidden_layers": 2},
    {"model_type": "jina_embeddings_v3", "rope_theta": 2e4, "num_hidden_layers": 2},
    {"model_type": "esmc", "rope_theta": 1e4, "num_hidden_layers": 2},
    {"model_type": "esm", "position_embedding_type": "rotary", "vocab_size": 33, "num_hidden_layers": 2},
    {"model_type": "esm", "pad_token_id": 1, "vocab_size": 33, "num_hidden_layers": 2},
    {"model_type": "modernbert", "global_rope_theta": 16e4, "local_rope_theta": 1e4, "num_hidden_layers": 7},
    {
        "model_type": "modernbert",
        "global_rope_theta": 16e4,
        "local_rope_theta": 1e4,
        "num_hidden_layers": 5,
        "global_attn_every_n_layers": 2,
        "local_attention": 64,
    },
    {"model_type": "modernbert-decoder", "global_rope_theta": 16e4, "local_rope_theta": 1e4, "num_hidden_layers": 7},
    {"model_type": "ultrabert", "num_hidden_layers": 3, "rope_theta": [1e4, 2e6, 1e4], "attention_windows": [64, 0, 64]},
    {"model_type": "neomme", "num_hidden_layers": 9, "rope_theta": 500.0},
    {"model_type": "timesfm2_5", "rope_theta": 1e4, "num_hidden_layers": 2},
    {"model_type": "hunyuan_vl_text", "rope_theta": 1e4, "rope_scaling": SPECTRUM, "head_dim": 128, "num_hidden_layers": 2},
    {"model_type": "nemotron3_diarization_audio", "rope_theta": 1e4, "num_hidden_layers": 2},
    {"model_type": "mimi", "rope_theta": 1e4, "num_hidden_layers": 2},
    {"model_type": "voxtral_realtime_text", "rope_theta": 1e6, "num_hidden_layers": 2},
    {"model_type": "inkling_text", "num_hidden_layers": 14},
    {"model_type": "inkling_text", "num_hidden_layers": 4, "local_layer_ids": [0, 3], "log_scaling_n_floor": 100},
    {"model_type": "inkling2_text", "num_hidden_layers": 14},
    {"model_type": "muse_spark_vision", "num_hidden_layers": 6, "rope_theta": 1e4},
    {
        "model_type": "diffusion_gemma_text",
        "num_hidden_layers": 8,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 5.0},
            "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
        },
    },
]


@pytest.mark.parametrize("old", OLD, ids=lambda old: "-".join(map(str, old.values()))[:80])
def test_the_old_spelling_means_what_the_class_makes_of_it(old: dict):
    same(old)


def test_neomme_has_bases_and_parts_of_its_own_for_each_kind_of_layer():
    spec = read_config({"model_type": "neomme", "num_hidden_layers": 7}, defaults=True)
    turning = [layer.uses[0].rotation for layer in spec.layers]
    assert [(rotation.base, rotation.width) for rotation in (turning[0], turning[5])] == [(1e4, 64), (1e6, 16)]


def test_step3p7_gives_its_parts_their_model_types_whatever_the_file_says():
    parts = {"text_config": {"model_type": "other", "rope_theta": 1e4}, "vision_config": {"model_type": "llama"}}
    spec = read_config({"model_type": "step3p7", **parts})
    assert [part.family for part in spec.parts] == ["step3p5", "step3p5_vision"]


def test_mimi_without_its_encoder_has_one_part():
    spec = read_config({"model_type": "mimi", "rope_theta": 1e4, "encoder_config": None})
    assert [part.part for part in spec.parts] == ["decoder"]
