"""Files as version 4 wrote them, and silent ones, mean what the family's class makes of them: layers and parts."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from posenc.configs import read_config

YARN = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 64, "mscale": 0.7, "mscale_all_dim": 0.7}
OLD = [
    {"model_type": "deepseek_v3", "rope_theta": 10000.0, "rope_scaling": YARN, "num_hidden_layers": 2},
    {"model_type": "deepseek_v2", "rope_theta": 10000.0, "rope_scaling": YARN, "num_hidden_layers": 2},
    {"model_type": "deepseek_v32", "rope_theta": 10000.0, "rope_scaling": YARN, "num_hidden_layers": 2},
    {"model_type": "minicpm3", "rope_theta": 10000.0, "num_hidden_layers": 2},
    {"model_type": "longcat_flash", "rope_theta": 10000.0, "num_layers": 2},
    {"model_type": "bailing_hybrid", "num_hidden_layers": 7, "layer_group_size": 3},
    {"model_type": "bailing_hybrid", "rope_theta": 600000.0, "num_hidden_layers": 7},
    {"model_type": "glm_moe_dsa", "rope_theta": 10000.0, "num_hidden_layers": 7, "index_topk_freq": 3},
    {
        "model_type": "glm_moe_dsa",
        "rope_theta": 10000.0,
        "num_hidden_layers": 7,
        "index_topk_freq": 2,
        "index_skip_topk_offset": 3,
    },
    {"model_type": "glm_moe_dsa", "rope_theta": 10000.0, "num_hidden_layers": 3, "index_topk_pattern": "FSF"},
    {"model_type": "hy_v4", "rope_theta": 10000.0, "num_hidden_layers": 7},
    {"model_type": "kimi_linear", "num_hidden_layers": 7},
    {"model_type": "glm5_next_text", "num_hidden_layers": 9},
    {"model_type": "mistral4", "rope_scaling": YARN | {"llama_4_scaling_beta": 0.1}, "rope_theta": 10000.0},
    {"model_type": "mistral_large4_text", "rope_theta": 10000.0, "rope_scaling": YARN, "num_hidden_layers": 9},
    {
        "model_type": "mistral_large4_text",
        "rope_theta": 10000.0,
        "num_hidden_layers": 9,
        "rope_scaling": YARN,
        "no_rope_layer_interval": 3,
        "index_topk_freq": 2,
    },
    {"model_type": "dots3_note_text", "rope_theta": 70000.0, "num_hidden_layers": 9},
    {
        "model_type": "dots3_note_text",
        "rope_theta": 70000.0,
        "num_hidden_layers": 9,
        "use_dsa": False,
        "swa_head_dim": 128,
        "swa_qk_nope_head_dim": 96,
        "swa_rope_theta": 4000.0,
        "sliding_window_size": 64,
    },
    {"model_type": "dots3_note_text", "rope_theta": 70000.0, "num_hidden_layers": 9, "use_sliding_window": False},
    {"model_type": "deepseek_v4", "num_hidden_layers": 9},
    {
        "model_type": "deepseek_v4",
        "num_hidden_layers": 9,
        "rope_theta": 20000.0,
        "compress_rope_theta": 170000.0,
        "rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 64},
    },
    {"model_type": "deepseek_v4", "num_hidden_layers": 3, "compress_ratios": [0, 4, 128], "qk_rope_head_dim": 32},
    {"model_type": "moonshine", "rope_theta": 5000.0, "partial_rotary_factor": 0.5},
    {"model_type": "moonshine", "rope_theta": 5000.0},
    {"model_type": "csm_depth_decoder_model", "rope_theta": 500000.0, "rope_scaling": YARN},
    {"model_type": "blt_local_encoder", "rope_theta": 500000.0},
    {"model_type": "efficientloftr", "rope_theta": 5000.0},
    {"model_type": "unlimited_ocr_text", "rope_theta": 5000.0},
    {"model_type": "unlimited_ocr", "language_config": {"rope_theta": 5e3, "num_hidden_layers": 3}, "sliding_window": 64},
    {"model_type": "dots3_note", "rope_theta": 70000.0, "num_hidden_layers": 5, "sliding_window_size": 64},
    {"model_type": "glm5_next", "num_hidden_layers": 7},
    {
        "model_type": "kimi_linear",
        "num_hidden_layers": 3,
        "linear_attn_config": {"full_attn_layers": [1, 3], "kda_layers": [2]},
    },
]


@pytest.mark.parametrize("old", OLD, ids=lambda old: "-".join(map(str, old.values())))
def test_the_old_spelling_means_what_the_class_makes_of_it(old: dict):
    new = CONFIG_MAPPING[old["model_type"]](**{key: value for key, value in old.items() if key != "model_type"}).to_dict()
    mine, theirs = (dict(read_config(config).walk()) for config in (old, new))
    assert mine.keys() == theirs.keys()
    for path, spec in mine.items():
        assert len(spec.layers) == len(theirs[path].layers)
        for one, other in zip(spec.layers, theirs[path].layers, strict=True):
            assert (one.kind, one.window) == (other.kind, other.window)
            assert [use.arguments for use in one.uses] == [use.arguments for use in other.uses]


def test_one_mscale_alone_is_told():
    spec = read_config({"model_type": "deepseek_v3", "rope_theta": 1e4, "rope_scaling": YARN | {"mscale": 0}})
    assert "rope_scaling.mscale_all_dim" in {finding.key for finding in spec.remarks}
    scaled = spec.encoding(0).frequencies
    assert scaled.cos_sin_scale > 1.3
    assert scaled.softmax_scale > 1.5


def test_a_fraction_that_the_model_fails_with_is_an_error():
    tempered = YARN | {"rope_theta": 1e4, "llama_4_scaling_beta": 0.1, "partial_rotary_factor": 0.25}
    sizes = {
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "num_hidden_layers": 1,
        "hidden_size": 32,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "kv_lora_rank": 8,
        "q_lora_rank": 8,
        "vocab_size": 8,
        "n_routed_experts": 2,
        "moe_intermediate_size": 8,
        "intermediate_size": 8,
        "pad_token_id": 0,
    }
    config = CONFIG_MAPPING["mistral4"](rope_parameters=tempered, **sizes)
    found = {finding.key: finding.grade for finding in read_config(config.to_dict()).remarks}
    assert found["rope_parameters.partial_rotary_factor"] == "error"
    with pytest.raises(RuntimeError):
        AutoModel.from_config(config)(input_ids=torch.zeros(1, 3, dtype=torch.long))
