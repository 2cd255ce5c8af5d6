"""Files as version 4 wrote them, and silent ones, mean what the family's class makes of them: layers and parts."""

from __future__ import annotations

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from posenc.dialects import read_config

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
    {"model_type": "glm_moe_dsa", "rope_theta": 10000.0, "num_hidden_layers": 7, "index_topk_freq": 2,
     "index_skip_topk_offset": 3},
    {"model_type": "glm_moe_dsa", "rope_theta": 10000.0, "num_hidden_layers": 3, "index_topk_pattern": "FSF"},
    {"model_type": "hy_v4", "rope_theta": 10000.0, "num_hidden_layers": 7},
    {"model_type": "kimi_linear", "num_hidden_layers": 7},
    {"model_type": "kimi_linear", "num_hidden_layers": 3,
     "linear_attn_config": {"full_attn_layers": [1, 3], "kda_layers": [2]}},
]  # fmt: skip


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
    assert "rope_parameters.mscale" in {finding.key for finding in spec.findings}
    scaled = spec.encoding(0).frequencies
    assert scaled.cos_sin_scale > 1.3
    assert scaled.softmax_scale > 1.5
