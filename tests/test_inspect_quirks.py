"""Published configurations that were refused or read wrongly; values from the models' code."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

from posenc.configs import PositionSpec
from posenc.configs.commands import inspect as inspect_
from posenc.configs.read import spec_of
from posenc.configs.report.report import report

SIZES = {"hidden_size": 1024, "num_attention_heads": 8, "head_dim": 128, "num_hidden_layers": 4}
SCOUT = {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0,
         "original_max_position_embeddings": 8192}  # fmt: skip
DEVSTRAL = {"type": "yarn", "rope_type": "yarn", "rope_theta": 1e8, "factor": 48.0, "beta_fast": 4.0, "beta_slow": 1.0,
            "original_max_position_embeddings": 8192, "mscale": 1.0, "mscale_all_dim": 0.0,
            "llama_4_scaling_beta": 0.0}  # fmt: skip
AFM = {"rope_type": "yarn", "factor": 20.0, "original_max_position_embeddings": 4096, "mscale": 1.0}


def read(**config: Any) -> PositionSpec:
    return spec_of({**SIZES, **config})


def shown(config: dict[str, Any], folder: Path) -> str:
    """The page of `posenc inspect`, on one line."""
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    app = typer.Typer()
    app.command()(inspect_.command)
    printed = CliRunner().invoke(app, [str(folder)], env={"COLUMNS": "300", "NO_COLOR": "1", "LANG": "C"}).stdout
    return " ".join(printed.split())


def frequencies(spec: PositionSpec):
    return spec.layers[0].uses[0].rotation.frequencies().at_length(1)


def theirs(config_class: str, kind: str, **config: Any) -> tuple[torch.Tensor, float]:
    """What transformers' own function computes of the same keys."""
    import transformers
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    made = getattr(transformers, config_class)(**{**SIZES, **config})
    values, scale = ROPE_INIT_FUNCTIONS[kind](made, "cpu")
    return values.double(), scale


def test_llama_4_scout_has_nothing_between_its_two_bands():
    made = frequencies(read(model_type="llama4_text", rope_theta=5e5, rope_scaling=SCOUT, max_position_embeddings=10485760))
    values, _ = theirs("Llama4TextConfig", "llama3", rope_parameters={**SCOUT, "rope_theta": 5e5})
    assert torch.allclose(torch.tensor(list(made), dtype=torch.float64), values, rtol=5e-6)
    spec = read(model_type="llama4_text", rope_theta=5e5, rope_scaling=SCOUT, max_position_embeddings=10485760)
    close = spec.layers[0].uses[0].rotation.frequencies("float32")
    assert torch.allclose(torch.tensor(list(close), dtype=torch.float64), values, rtol=1e-6)


def test_devstral_2_has_no_temperature():
    spec = read(model_type="ministral3", max_position_embeddings=393216, rope_parameters=DEVSTRAL)
    assert [use.name for use in spec.layers[0].uses] == ["RoPE"]
    values, scale = theirs("Ministral3Config", "yarn", max_position_embeddings=393216, rope_parameters=dict(DEVSTRAL))
    made = frequencies(spec)
    assert torch.allclose(torch.tensor(list(made), dtype=torch.float64), values, rtol=5e-6)
    assert made.cos_sin_scale == pytest.approx(scale) == pytest.approx(1 + 0.1 * math.log(48))


def test_mscale_alone_changes_nothing():
    spec = read(model_type="arcee", rope_theta=1e4, max_position_embeddings=65536, rope_scaling=AFM)
    _, scale = theirs("ArceeConfig", "yarn", max_position_embeddings=65536, rope_parameters={**AFM, "rope_theta": 1e4})
    assert frequencies(spec).cos_sin_scale == pytest.approx(scale)
    assert not any(one.grade == "error" for one in spec.remarks)


def test_canine_s_defaults_are_read():
    (table,) = spec_of({"model_type": "canine"}).layers[0].uses
    assert dict(table.arguments) == {"d_model": 768, "max_positions": 16384}


@pytest.mark.parametrize("config", [
    {"model_type": "hunyuan_v1_dense", "rope_theta": 1e4, "max_position_embeddings": 32768, "rope_scaling": {
        "alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        "type": "dynamic"}},
    {"model_type": "llama", "rope_theta": 1e4, "max_position_embeddings": 131072, "rope_scaling": {
        "factor": 32.0, "original_max_position_embeddings": 4096, "type": "yarn", "finetuned": True}},
])  # fmt: skip
def test_keys_that_published_files_carry_are_no_errors(config):
    spec = read(**config)
    assert {one.grade for one in spec.remarks} == {"note"}


def test_a_key_of_another_scaling_stays_an_error():
    spec = read(model_type="llama", rope_theta=1e4, max_position_embeddings=8192,
                rope_scaling={"type": "linear", "factor": 2.0, "beta_fast": 32})  # fmt: skip
    assert [one.key for one in spec.remarks if one.grade == "error"] == ["rope_scaling.beta_fast"]


def test_glm_4_1v_s_encoder_is_its_own_whatever_its_model_type():
    spec = spec_of({
        "model_type": "glm4v",
        "text_config": {"model_type": "glm4v_text", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 4,
                        "max_position_embeddings": 65536, "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
                        "rope_scaling": {"type": "default", "mrope_section": [8, 12, 12]}},
        "vision_config": {"model_type": "glm4v", "hidden_size": 1536, "num_heads": 12, "depth": 24, "patch_size": 14,
                          "image_size": 336, "spatial_merge_size": 2},
    })  # fmt: skip
    assert [part.family for part in spec.parts] == ["glm4v_text", "glm4v_vision"]


# Files of a family of transformers that are made for other code.


def test_jina_v2_has_alibi_to_both_sides():
    spec = spec_of({"model_type": "bert", "position_embedding_type": "alibi", "hidden_size": 768, "num_attention_heads": 12,
                    "num_hidden_layers": 12, "max_position_embeddings": 8192})  # fmt: skip
    (use,) = spec.layers[-1].uses
    assert (use.name, spec.layers[-1].causal, spec.trained_length) == ("ALiBi", False, 8192)


def test_jina_v3_rotates_with_its_own_base():
    spec = spec_of({"model_type": "xlm-roberta", "position_embedding_type": "rotary", "rotary_emb_base": 20000.0,
                    "hidden_size": 1024, "num_attention_heads": 16, "num_hidden_layers": 24,
                    "max_position_embeddings": 8194})  # fmt: skip
    assert (frequencies(spec)[1], spec.layers[0].causal) == (pytest.approx(20000.0 ** (-2 / 64)), False)


@pytest.mark.parametrize(
    ("more", "usable"),
    [({"max_position_embeddings": 8194, "pad_token_id": 1}, 8192), ({"max_position_embeddings": 8194}, 8192)],
)
def test_jina_v3_s_rows_before_position_0_are_no_positions(more, usable):
    """The paper (arXiv 2409.10173, section 4) trains up to 8192 tokens; the file has XLM-RoBERTa's 8194 rows."""
    config = {"hidden_size": 1024, "num_attention_heads": 16, "num_hidden_layers": 2, **more}
    for file in ({"model_type": "xlm-roberta", "position_embedding_type": "rotary", "rotary_emb_base": 2e4},
                 {"model_type": "jina_embeddings_v3", "rope_theta": 2e4}):  # fmt: skip
        assert spec_of(file | config).trained_length == usable


def test_nomic_v2_s_base_is_the_one_of_its_file():
    spec = spec_of({"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 2048,
                    "rotary_emb_base": 10000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False})  # fmt: skip
    assert frequencies(spec)[1] == pytest.approx(10000.0 ** (-2 / 64))
    assert {one.grade for one in spec.remarks} == {"note"}
    assert frequencies(spec_of({"model_type": "nomic_bert"}))[1] == pytest.approx(1000.0 ** (-2 / 64))


@pytest.mark.parametrize(("model_type", "pairs", "turning", "share"), [
    ("gemma4_vision", "half: channel i pairs with i + d/2; all 64 channels", 64, [16, 16]),
    ("vjepa2", "interleaved: channel 2i pairs with 2i + 1; the first 60 of 64 channels", 60, [10, 10, 10]),
])  # fmt: skip
def test_channels_that_turn_by_parts_are_all_counted(model_type, pairs, turning, share, tmp_path):
    """Gemma4VisionRotaryEmbedding: head_dim // 4 frequencies for x and for y. VJEPA2RopeAttention: 2 · (d // 3 // 2)
    channels of each of three axes."""
    part = next(one for one in report(spec_of({"model_type": model_type}))["parts"] if one["groups"])
    rotation = part["groups"][0]["encodings"][0]["rotation"]
    assert 2 * len(rotation["frequencies"]) == turning
    assert [rotation["axes"].count(axis) for axis in range(len(share))] == share
    assert pairs in shown({"model_type": model_type}, tmp_path)


def test_a_scaling_of_one_family_is_named_in_words(tmp_path):
    factors = {"short_factor": [1.0] * 16, "long_factor": [2.0] * 16, "short_mscale": 1.2, "long_mscale": 1.3}
    config = {"model_type": "phimoe", "hidden_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2,
              "max_position_embeddings": 131072, "rope_theta": 10000.0,
              "rope_scaling": {"type": "longrope", "original_max_position_embeddings": 4096, **factors}}  # fmt: skip
    page = shown(config, tmp_path)
    assert "scaling LongRoPE with short factors at any length: factor 32" in page
    assert "configs." not in page


# Families whose code is in their repositories.


@pytest.mark.parametrize("mixed_b", [None, 0.1])
def test_gte_s_ntk_divides_pair_i_by_a_power_of_the_factor(mixed_b):
    """NTKScalingRotaryEmbedding of new-impl: base·s and 1/s^(2/d) for all pairs, or exp(a·m^b) for the m-th from 1."""
    d, factor, base = 64, 2.0, 160000.0
    scaling = {"type": "ntk", "factor": factor} | ({} if mixed_b is None else {"mixed_b": mixed_b})
    spec = read(model_type="new", head_dim=d, rope_theta=base, rope_scaling=scaling, max_position_embeddings=8192)
    if mixed_b is None:
        expected = [(base * factor) ** (-2 * i / d) / factor ** (2 / d) for i in range(d // 2)]
    else:
        a = math.log(factor) / (d / 2) ** mixed_b
        expected = [base ** (-2 * i / d) / math.exp(a * (i + 1) ** mixed_b) for i in range(d // 2)]
    assert list(frequencies(spec).values) == pytest.approx(expected, rel=1e-14)
    assert not any(layer.causal for layer in spec.layers)


def test_phi_3_small_scales_cos_and_sin_by_the_length():
    """Phi3SmallConfig: base 10^6; the published 128k file has short_mscale 1 and long_mscale 1.19."""
    scaling = {"type": "su", "short_factor": [1.0] * 64, "long_factor": [2.0] * 64, "short_mscale": 1.0,
               "long_mscale": 1.19, "original_max_position_embeddings": 8192}  # fmt: skip
    spec = read(model_type="phi3small", rope_scaling=scaling, max_position_embeddings=131072)
    made = spec.layers[0].uses[0].rotation.frequencies()
    short, long = made.at_length(8192), made.at_length(8193)
    assert (short.cos_sin_scale, long.cos_sin_scale) == (1.0, 1.19)
    assert short.values[1] == pytest.approx(1e6 ** (-2 / 128)) == 2 * long.values[1]
    assert [layer.kind for layer in spec.layers] == ["block_sparse_attention", "full_attention"] * 2
    halved = read(model_type="phi3small", rope_position_scale=4.0, rope_embedding_base=10000, max_position_embeddings=8192)
    assert frequencies(halved).values[0] == 0.25


def test_moonvit_turns_interleaved_pairs_by_column_and_row():
    """Rope2DPosEmb: pair 2i turns by the column, pair 2i + 1 by the row, both with 10000^(-4i/d)."""
    spec = spec_of({"model_type": "kimi_vl", "text_config": {"model_type": "deepseek_v3"}, "vision_config": {
        "model_type": "moonvit", "hidden_size": 1152, "num_attention_heads": 16, "num_hidden_layers": 27}})  # fmt: skip
    grid, turn = spec["vision_config"].layers[0].uses
    made = turn.rotation.frequencies()
    assert dict(turn.arguments)["layout"] == "interleaved"
    assert made.axes[:4] == (1, 0, 1, 0)
    assert list(made.values) == pytest.approx([10000 ** (-4 * (pair // 2) / 72) for pair in range(36)], rel=1e-14)
    assert {name: dict(grid.arguments)[name] for name in ("height", "width", "mode")} == {
        "height": 64, "width": 64, "mode": "bicubic"}  # fmt: skip


@pytest.mark.parametrize(("name", "side", "width", "layers"), [
    ("siglip_large_patch16_384", 24, 1024, 24), ("siglip_so400m_patch14_384.webli", 27, 1152, 27), ("clip", 0, 0, 0),
])  # fmt: skip
def test_deepseek_s_encoders_are_timm_s_siglip(name, side, width, layers):
    """SigLIP_MODEL_CONFIG of Janus' siglip_vit.py."""
    vision = {"model_type": "vision", "params": {"image_size": 384, "model_name": name}}
    spec = spec_of({"model_type": "multi_modality", "language_config": {"model_type": "llama"}, "vision_config": vision})
    tower = spec["vision_config"]
    assert len(tower.layers) == layers
    if layers:
        grid = dict(tower.layers[0].uses[0].arguments)
        assert (grid["height"], grid["width"], grid["d_model"]) == (side, side, width)
    else:
        assert any("not read" in remark.text for remark in tower.remarks)
