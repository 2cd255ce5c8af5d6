"""Files as version 4 wrote them mean what the family's class makes of them."""

from __future__ import annotations

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from posenc.configs import read_config

YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
OLD = [
    {"model_type": "cohere", "rope_theta": 75000.0, "hidden_size": 64, "num_attention_heads": 4},
    {"model_type": "ernie4_5", "rope_theta": 75000.0, "rope_scaling": YARN, "num_hidden_layers": 2},
    {"model_type": "glm4", "rope_theta": 10000.0, "num_hidden_layers": 2},
    {"model_type": "glm4", "rope_theta": 10000.0, "partial_rotary_factor": 0.25, "num_hidden_layers": 2},
    {"model_type": "glm4_moe", "rope_theta": 10000.0, "rope_scaling": YARN, "head_dim": 64},
    {"model_type": "cohere2", "rope_theta": 75000.0, "num_hidden_layers": 7, "sliding_window_pattern": 3},
    {"model_type": "cohere2_moe", "rope_theta": 75000.0, "num_hidden_layers": 7, "first_k_dense_replace": 2},
    {"model_type": "cohere2_moe", "rope_theta": 75000.0, "num_hidden_layers": 2, "rope_scaling": YARN},
    {"model_type": "helium", "rope_theta": 75000.0, "num_hidden_layers": 2},
]


@pytest.mark.parametrize("old", OLD, ids=lambda old: "-".join(map(str, old.values())))
def test_the_old_spelling_means_what_the_class_makes_of_it(old: dict):
    new = CONFIG_MAPPING[old["model_type"]](**{key: value for key, value in old.items() if key != "model_type"}).to_dict()
    mine, theirs = read_config(old), read_config(new)
    assert len(mine.layers) == len(theirs.layers)
    for one, other in zip(mine.layers, theirs.layers, strict=True):
        assert (one.kind, one.window) == (other.kind, other.window)
        assert [use.arguments for use in one.uses] == [use.arguments for use in other.uses]


def test_cohere2_moe_scales_nothing_whatever_rope_scaling_says():
    spec = read_config({"model_type": "cohere2_moe", "rope_theta": 75000.0, "rope_scaling": YARN})
    assert "rope_scaling" in {finding.key for finding in spec.remarks}
    assert spec.layers[0].uses[0].rotation.kind == "rotary"
