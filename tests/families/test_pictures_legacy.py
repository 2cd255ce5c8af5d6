"""Files of models with pictures as older versions wrote them mean what the class makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from posenc.configs import ConfigError, read_config

WORDS, PICTURES = {"max_position_embeddings": 33}, {"image_size": 64, "patch_size": 16, "num_hidden_layers": 3}
TEXT = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "rope_theta": 75000.0}
FIVE = {"num_hidden_layers": 5}
LINEAR = {"type": "linear", "factor": 4.0}
OLD: list[dict[str, Any]] = [
    *(
        {"model_type": name, "text_config_dict": WORDS, "vision_config_dict": PICTURES, "text_config": FIVE}
        for name in ("altclip", "bridgetower", "chinese_clip", "clip", "clipseg", "groupvit", "metaclip_2", "xclip")
    ),
    {"model_type": "clip", "text_config_dict": None, "text_config": WORDS, "vision_config": PICTURES},
    {"model_type": "owlvit", "text_config_dict": WORDS, "vision_config_dict": PICTURES},
    {"model_type": "blip", "text_config_dict": WORDS, "vision_config": PICTURES},
    {
        "model_type": "flava",
        "image_config_dict": PICTURES,
        "text_config_dict": WORDS,
        "multimodal_config": {"num_hidden_layers": 3},
    },
    {"model_type": "fuyu", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "rope_theta": 25000.0},
    {
        "model_type": "fuyu",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "rope_theta": 25000.0,
        "partial_rotary_factor": 0.25,
        "rope_scaling": LINEAR,
    },
    {"model_type": "exaone4_5", "text_config": {"model_type": "exaone4_5_text", **TEXT}},
    {
        "model_type": "idefics2",
        "text_config": {"model_type": "mistral", **TEXT},
        "vision_config": {"model_type": "idefics2", "image_size": 980, "patch_size": 14},
        "perceiver_config": {"model_type": "idefics2"},
    },
    *(
        {
            "model_type": name,
            "text_config": {"model_type": "llama", **TEXT},
            "vision_config": {"model_type": "idefics3", "image_size": 364},
        }
        for name in ("idefics3", "smolvlm")
    ),
    {"model_type": "clip", "text_config": {"model_type": "bert", **WORDS}, "vision_config": {"model_type": "clip"}},
    {"model_type": "florence2", "vision_config": {"model_type": "davit", "max_position_embeddings": 40}},
    {"model_type": "git", "vision_config": {"model_type": "clip_vision_model", **PICTURES}},
    {"model_type": "pix2struct", "text_config": {"model_type": "t5"}, "vision_config": {"model_type": "vit"}},
    {"model_type": "llava", "text_config": TEXT, "vision_config": {"model_type": "clip_vision_model", "image_size": 336}},
    {"model_type": "llava", "text_config": {"model_type": "mistral", "sliding_window": 4, **TEXT}},
    {"model_type": "llava_next", "text_config": {"model_type": "llama", "rope_scaling": LINEAR, **TEXT}},
    {"model_type": "aria_text", "rope_scaling": LINEAR, **TEXT},
    {"model_type": "granite4_vision_text", "rope_scaling": LINEAR, **TEXT},
    {"model_type": "lfm3_vl_vision", "rope_theta": 500.0},
    {"model_type": "exaone4_5_vision", "rope_theta": 500.0},
]


@pytest.mark.parametrize("old", OLD, ids=lambda old: f"{old['model_type']}-{'-'.join(old)}")
def test_the_old_spelling_means_what_the_class_makes_of_it(old: dict[str, Any]):
    given = {key: value for key, value in old.items() if key != "model_type"}
    new = CONFIG_MAPPING[old["model_type"]](**given).to_dict()
    mine, theirs = (dict(read_config(config, defaults=True).walk()) for config in (old, new))
    assert mine.keys() == theirs.keys()
    for path, spec in mine.items():
        other = theirs[path]
        assert (spec.family, len(spec.layers)) == (other.family, len(other.layers)), path
        for one, two in zip(spec.layers, other.layers, strict=True):
            assert (one.kind, one.window, one.causal) == (two.kind, two.window, two.causal), path
            assert [use.arguments for use in one.uses] == [use.arguments for use in two.uses], path


def test_sections_that_disagree_are_told():
    spec = read_config({"model_type": "clip", "text_config": {"max_position_embeddings": 50}, "text_config_dict": WORDS})
    assert dict(spec["text_config"].layers[0].uses[0].arguments)["max_positions"] == 33
    assert "text_config_dict" in {finding.key for finding in spec.remarks if finding.grade == "error"}


def test_nougat_without_its_sections_is_told():
    spec = read_config({"model_type": "nougat"}, defaults=True)
    assert spec["encoder"].family == "donut-swin"
    assert spec["decoder"].family == "mbart"
    assert "encoder" in {finding.key for finding in spec.remarks if finding.grade == "error"}


@pytest.mark.parametrize("rate", ["3", "0/4", "a/b", "4/8/2"])
def test_granite_says_what_a_rate_is(rate: str):
    with pytest.raises(ConfigError, match="downsample_rate: expected sides"):
        read_config({"model_type": "granite4_vision", "downsample_rate": rate, "deepstack_layer_map": []}, defaults=True)


@pytest.mark.parametrize("section", ["clip_vision_model", "ovis2_vision", "idefics2_vision"])
def test_towers_for_squares_refuse_other_shapes(section: str):
    with pytest.raises(ConfigError, match="square images only"):
        read_config({"model_type": section, "image_size": [64, 32]})
