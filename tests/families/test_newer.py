"""Model types of a later release of transformers: compared with their own code where it is installed, read everywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from families import make_defaults, table
from families.harness import PROOFS
from posenc.configs import ConfigError, PositionSpec, read_config
from posenc.configs.family import READERS

table.load_proofs()
NEWER = sorted(json.loads(make_defaults.NEWER.read_text(encoding="utf-8")))
INSTALLED = [name for name in NEWER if name in CONFIG_MAPPING_NAMES]


def test_every_type_has_a_reader():
    assert [name for name in NEWER if name not in READERS] == []


def test_none_is_of_the_pinned_release():
    assert not set(NEWER) & set(json.loads(make_defaults.OUT.read_text(encoding="utf-8")))


def test_the_defaults_are_those_of_the_classes():
    if INSTALLED:
        assert make_defaults.NEWER.read_text(encoding="utf-8") == make_defaults.written(make_defaults.newer())


def test_posenc_does_what_the_installed_ones_do():
    for model_type in INSTALLED:
        if model_type not in table.without_positions():
            found = PROOFS[model_type](model_type)
            assert found.compared or found.exact, f"{model_type}: the proof compared nothing"


def read(model_type: str, **keys: Any) -> PositionSpec:
    return read_config({"model_type": model_type, **keys})


def bases(spec: PositionSpec) -> list[float | None]:
    """The base of each layer, None where nothing rotates."""
    return [layer.uses[0].rotation.base if layer.uses else None for layer in spec.layers]


def test_dory_as_published_counts_attention_and_mlp_apart():
    kinds = ["sliding_attention"] * 3 + ["full_attention"]
    published = [one for n in range(36) for one in (kinds[n % 4], "mlp")]
    sizes = {"n_input_layers": 16, "n_output_layers": 16, "n_recurrent_layers": 40, "n_recurrent_loops": 2}
    spec = read("dory", num_hidden_layers=72, layer_types=published, **sizes)
    assert bases(spec) == [1e4, 1e4, 1e4, 1e7] * 9 == bases(read("dory"))
    assert [layer.window for layer in spec.layers[:4]] == [1024, 1024, 1024, None]
    assert {layer.uses[0].build().d_head for layer in spec.layers} == {256}
    assert any("layers 8 to 27 run 2 times" in remark.text for remark in spec.remarks)
    with pytest.raises(ConfigError, match="n_recurrent_layers"):
        read("dory", num_hidden_layers=72, layer_types=published, **sizes | {"n_recurrent_layers": 38})
    with pytest.raises(ConfigError, match="layer_types"):
        read("dory", num_hidden_layers=4, layer_types=["mlp", "full_attention"] * 2)


def test_lara_mini_rotates_in_sliding_layers_only():
    spec = read("lara_mini")
    assert bases(spec)[:5] == [None, 1e4, None, None, 1e4]
    assert [layer.attends for layer in spec.layers[:5]] == [False, True, False, True, True]
    assert (len(spec.layers), spec.layers[1].window, spec.layers[3].window) == (34, 512, None)


def test_the_sarvam_models():
    large, small = read("sarvam_mla"), read("sarvam_moe")
    first = dict(large.layers[0].uses[0].arguments)
    assert (first["d_head"], first["layout"], first["trailing"], first["frequencies"].width) == (
        192,
        "interleaved",
        True,
        64,
    )
    assert (small.layers[0].uses[0].rotation.width, bases(small)[0], len(small.layers)) == (64, 8e6, 19)


def test_hy_4_vl_deals_interleaved_pairs_to_time_row_and_column():
    spec = read("hy_v4_vl")
    first = dict(spec["text_config"].layers[0].uses[0].arguments)
    assert (first["layout"], first["trailing"], len(spec["text_config"].layers)) == ("interleaved", True, 78)
    made = first["frequencies"].frequencies()
    assert [made.axes.count(axis) for axis in range(3)] == [12, 10, 10]
    assert made.axes[:4] == (0, 1, 2, 0)
    assert dict(spec["vision_config"].layers[0].uses[0].arguments)["surplus"] == 0.1


def test_the_others():
    apertus = read("apertus1p5")["text_config"].layers[0].uses[0].rotation
    assert (apertus.kind, apertus.base, dict(apertus.parameters)["factor"]) == ("llama3", 12e6, 8.0)
    assert read("exaone", num_layers=2).layers[0].uses[0].rotation.base == 5e5
    sound = read("omniasr")["audio_config"].layers[0].uses[0]
    assert (sound.name, dict(sound.arguments)["weight_norm"], dict(sound.arguments)["kernel_size"]) == (
        "Convolutional",
        False,
        128,
    )
    assert read("omniasr")["text_config"].trained_length == 8192
    with pytest.raises(ConfigError, match="num_conv_pos_embeddings"):
        read("omniasr_audio", num_conv_pos_embeddings=127)
    looped = read("inkling2_loop")["text_config"]
    assert [layer.window for layer in looped.layers[4:7]] == [1024, None, 1024]
    assert read("wavtokenizer").layers == ()
