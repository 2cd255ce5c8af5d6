"""Files whose model_type, classes and sizes do not belong together: another model with the same type, a flat file of a
family with sections, sizes that nothing reads. What the files say is written out here; masks are those of transformers.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from transformers import AutoConfig, AutoModel
from typer.testing import CliRunner

from posenc.configs import ConfigError, PositionSpec
from posenc.configs.commands import inspect as inspect_
from posenc.configs.family import OWN_MASKS, reader_paths
from posenc.configs.read import spec_of
from posenc.configs.report.limit import limit

V2 = {"AutoConfig": "configuration_bailing_moe_v2.BailingMoeV2Config",
      "AutoModelForCausalLM": "modeling_bailing_moe_v2.BailingMoeV2ForCausalLM"}  # fmt: skip
LING_MINI = {"model_type": "bailing_moe", "architectures": ["BailingMoeV2ForCausalLM"], "auto_map": V2, "hidden_size": 2048,
             "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "num_hidden_layers": 20,
             "max_position_embeddings": 32768, "rope_theta": 600000, "partial_rotary_factor": 0.5}  # fmt: skip
ERNIE_VL = {"model_type": "ernie4_5_moe_vl", "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"],
            "num_hidden_layers": 54, "num_attention_heads": 64, "hidden_size": 8192, "max_position_embeddings": 131072,
            "vision_config": {"depth": 32, "embed_dim": 1280, "num_heads": 16}}  # fmt: skip
EMU3 = {"model_type": "Emu3", "architectures": ["Emu3ForCausalLM"], "hidden_size": 4096, "num_attention_heads": 32,
        "auto_map": {"AutoConfig": "configuration_emu3.Emu3Config"},
        "num_key_value_heads": 8, "num_hidden_layers": 32, "max_position_embeddings": 131072,
        "rope_theta": 1000000.0}  # fmt: skip
GLM_2022 = {"model_type": "glm", "architectures": ["GLMModel"], "auto_map": {"AutoModel": "modeling_glm.GLMModel"},
            "block_position_encoding": True, "hidden_size": 1152, "num_attention_heads": 18, "num_layers": 30,
            "max_sequence_length": 512}  # fmt: skip
GROK_2 = {"model_type": "git", "architectures": ["Grok1ForCausalLM"], "hidden_size": 8192, "num_attention_heads": 64,
          "num_key_value_heads": 8, "num_hidden_layers": 64, "head_dim": 128, "max_position_embeddings": 131072,
          "rope_theta": 208533496, "rope_type": "original", "original_max_position_embeddings": 8192,
          "scaling_factor": 16.0, "attn_temperature_len": 1024, "sliding_window_size": -1}  # fmt: skip
DNABERT_2 = {"model_type": "bert", "architectures": ["BertForMaskedLM"], "alibi_starting_size": 512, "hidden_size": 768,
             "auto_map": {"AutoConfig": "configuration_bert.BertConfig", "AutoModel": "bert_layers.BertModel"},
             "num_attention_heads": 12, "num_hidden_layers": 12, "max_position_embeddings": 512,
             "position_embedding_type": "absolute"}  # fmt: skip
GTE_QWEN2 = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
             "auto_map": {"AutoModel": "modeling_qwen.Qwen2Model"}, "is_causal": False, "hidden_size": 3584,
             "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28,
             "max_position_embeddings": 131072, "rope_theta": 1000000.0}  # fmt: skip
LLAVA_1_5 = {"model_type": "llava", "architectures": ["LlavaLlamaForCausalLM"], "hidden_size": 5120,
             "num_attention_heads": 40, "num_hidden_layers": 40, "max_position_embeddings": 4096}  # fmt: skip


def graver(spec: PositionSpec) -> list[str]:
    return [remark.key for _, part in spec.walk() for remark in part.remarks if remark.grade != "note"]


def first_line(config: dict[str, Any], folder: Path) -> str:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    app = typer.Typer()
    app.command()(inspect_.command)
    printed = CliRunner().invoke(app, [str(folder)], env={"COLUMNS": "300", "NO_COLOR": "1", "LANG": "C"}).stdout
    return printed.splitlines()[0]


@pytest.mark.parametrize("without", [(), ("architectures",), ("auto_map",), ("architectures", "auto_map")])
def test_half_of_a_head_of_ling_2_turns(without: tuple[str, ...]):
    spec = spec_of({key: value for key, value in LING_MINI.items() if key not in without})
    assert [layer.uses[0].rotation.width for layer in spec.layers] == [64] * 20
    assert (graver(spec), spec.d_head, spec.trained_length) == ([], 128, 32768)


def test_the_class_of_ling_2_decides_where_the_file_is_silent():
    silent = {key: value for key, value in LING_MINI.items() if key not in ("partial_rotary_factor", "rope_theta")}
    second, first = (
        spec_of(silent),
        spec_of({key: silent[key] for key in silent if key not in ("architectures", "auto_map")}),
    )
    assert (second.family, second.layers[0].uses[0].rotation.width, second.layers[0].uses[0].rotation.base) == (
        "bailing_moe_v2", 64, 600000,
    )  # fmt: skip
    assert (first.family, first.layers[0].uses[0].rotation.width, first.layers[0].uses[0].rotation.base) == (
        "bailing_moe", 128, 10000,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (ERNIE_VL, "num_hidden_layers: 54 is not read: Ernie4_5_VLMoeConfig takes it from text_config"),
        (
            {**LLAVA_1_5, "architectures": ["LlavaForConditionalGeneration"]},
            "num_hidden_layers: 40 is not read: LlavaConfig takes it from text_config",
        ),
        (GLM_2022, "num_layers: 30 is not read: GlmConfig has num_hidden_layers"),
        (
            {**GLM_2022, "architectures": ["GPT2LMHeadModel"], "auto_map": None},
            "GPT2LMHeadModel is a class of gpt2, and model_type is 'glm'",
        ),
    ],
)
def test_a_file_is_refused_where_defaults_would_stand_for_its_sizes(config: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=told):
        spec_of(config)


def test_a_flat_file_of_a_text_model_is_read_by_its_class():
    spec = spec_of(EMU3)
    assert (spec.family, spec.claims, len(spec.layers), spec.trained_length) == ("emu3_text_model", "Emu3", 32, 131072)
    assert spec.layers[0].uses[0].rotation.base == 1000000


def test_llava_as_its_authors_published_it_is_llama(tmp_path: Path):
    spec = spec_of(LLAVA_1_5)
    assert (spec.family, spec.claims, len(spec.layers), spec.trained_length) == ("llava_llama", "llava", 40, 4096)
    assert first_line(LLAVA_1_5, tmp_path).startswith("llava_llama (by its class; model_type is 'llava'): trained on 4,096")


def test_grok_2_is_no_encoder_of_images(tmp_path: Path):
    spec = spec_of(GROK_2)
    uses = {use for layer in spec.layers for use in layer.uses}
    assert len(spec.layers) == 64
    assert [(use.name, use.rotation.width, use.rotation.base) for use in uses] == [("RoPE", 128, 208533496)]
    assert graver(spec) == ["architectures", "attn_temperature_len"]
    assert first_line(GROK_2, tmp_path).startswith("grok-1 (by its class; model_type is 'git'): trained on 131,072")


def test_bert_with_alibi_has_no_table():
    spec = spec_of(DNABERT_2)
    assert {layer.causal for layer in spec.layers} == {False}
    (use,) = {use for layer in spec.layers for use in layer.uses}
    slopes = [2.0**-n for n in range(1, 9)] + [2.0 ** -(n + 0.5) for n in range(4)]  # Press et al. 2022, for 12 heads
    assert use.name == "ALiBi"
    assert all(math.isclose(a, b) for a, b in zip(spec.encoding(0).slopes, slopes, strict=True))
    assert (
        spec_of({key: DNABERT_2[key] for key in DNABERT_2 if key != "alibi_starting_size"}).layers[0].uses[0].name
        == "Learned"
    )


def test_gte_qwen2_looks_both_ways():
    assert {layer.causal for layer in spec_of(GTE_QWEN2).layers} == {False}
    assert {layer.causal for layer in spec_of({**GTE_QWEN2, "is_causal": True}).layers} == {True}
    assert graver(spec_of(GTE_QWEN2)) == []


LLAMA = {"hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 6, "max_position_embeddings": 4096,
         "rope_theta": 10000.0}  # fmt: skip


def test_sizes_in_a_section_that_the_type_does_not_have_are_refused():
    with pytest.raises(
        ConfigError, match=r"text_config\.num_hidden_layers: 6 is not read: the file's sizes are in text_config"
    ):
        spec_of({"model_type": "llama", "text_config": LLAMA})
    beside = spec_of({"model_type": "llama", **LLAMA, "text_config": {"num_hidden_layers": 99}})
    assert [(remark.grade, remark.key) for remark in beside.remarks] == [("note", "text_config")]
    assert len(beside.layers) == 6


def test_a_window_and_another_length_that_nobody_reads_are_told():
    told = {"sliding_window": 512, "model_max_length": 9000, "speech": {"rope_theta": 5.0}}
    spec = spec_of({"model_type": "llama", **LLAMA, **told})
    assert {(remark.grade, remark.key) for remark in spec.remarks} == {
        ("warning", "sliding_window"), ("note", "model_max_length"), ("note", "speech"),
    }  # fmt: skip
    off = spec_of({"model_type": "llama", **LLAMA, "sliding_window": 512, "use_sliding_window": False})
    assert not off.remarks
    same = spec_of({"model_type": "llama", **LLAMA, "model_max_length": 4096})
    assert not same.remarks


def test_a_class_that_nobody_knows_is_told():
    told = [remark.text for remark in spec_of({"model_type": "llama", **LLAMA, "architectures": ["Unheard"]}).remarks]
    assert told == ["Unheard is not known: read as llama, by model_type"]
    for named in ("LlamaForRewardModel", "LlamaModel"):
        assert not spec_of({"model_type": "llama", **LLAMA, "architectures": [named]}).remarks


YARN = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}
SCALED = {"max_position_embeddings": 131072, "rope_scaling": YARN}


@pytest.mark.parametrize(
    ("config", "trained"),
    [
        ({"model_type": "gpt_oss", **SCALED}, 131072),
        ({"model_type": "deepseek_v3", **SCALED}, 131072),
        ({"model_type": "gpt_oss", **SCALED, "max_position_embeddings": 65536}, 4096),
        ({"model_type": "qwen3", **LLAMA, **SCALED}, 4096),
        ({"model_type": "llama", **LLAMA, **SCALED}, 4096),
        ({"model_type": "llama", **LLAMA, **SCALED, "rope_scaling": {**YARN, "finetuned": True}}, 131072),
    ],
)
def test_yarn_is_part_of_training_where_the_family_or_the_file_says_so(config: dict[str, Any], trained: int):
    bound = limit(spec_of({"num_hidden_layers": 2, "rope_theta": 150000.0, **config}))
    assert (bound.trained, bound.usable) == (trained, 131072)
    assert bound.fails == 131072


def test_the_first_line_of_a_model_that_was_trained_with_yarn(tmp_path: Path):
    config = {"model_type": "deepseek_v3", "rope_theta": 10000.0, **SCALED}
    assert first_line(config, tmp_path) == "deepseek_v3: trained on 131,072 positions, with YaRN ×32 of 4,096"


def test_nomic_was_trained_on_what_it_says_not_on_its_longest_input():
    nomic = {"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_layer": 2, "n_positions": 8192,
             "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "max_trained_positions": 2048}  # fmt: skip
    assert spec_of(nomic).trained_length == 2048


SMALL = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 1,
         "intermediate_size": 32, "vocab_size": 50, "pad_token_id": 0, "max_position_embeddings": 64}  # fmt: skip
GPT2 = {"n_embd": 32, "n_head": 4, "n_layer": 1, "vocab_size": 50, "n_positions": 64}


@pytest.mark.parametrize(
    ("model_type", "config"),
    [("qwen2", SMALL), ("llama", SMALL), ("gpt2", GPT2), ("mistral", {**SMALL, "sliding_window": 2}), ("openai-gpt", GPT2)],
)
def test_what_a_query_sees_without_a_causal_mask_is_what_transformers_lets_it_see(model_type: str, config: dict[str, Any]):
    """One layer of a random model: token j reaches the output at i, or it does not."""
    torch.manual_seed(0)
    model = AutoModel.from_config(AutoConfig.for_model(model_type, **config, is_causal=False)).eval()
    tokens, n = torch.randint(1, 40, (1, 9)), 9
    seen = torch.zeros(n, n, dtype=torch.bool)
    with torch.no_grad():
        before = model(tokens).last_hidden_state[0]
        for j in range(n):
            other = tokens.clone()
            other[0, j] = 45
            seen[:, j] = (model(other).last_hidden_state[0] - before).abs().amax(-1) > 1e-6
    spec = spec_of({"model_type": model_type, **config, "is_causal": False})
    (layer,) = spec.layers
    back, ahead = layer.reach_both_ways or (n, 0 if layer.causal else n)
    distance = torch.arange(n)[:, None] - torch.arange(n)
    assert torch.equal(seen, (distance <= back) & (distance >= -ahead))
    assert (graver(spec) == ["is_causal"]) == (model_type in OWN_MASKS)


def test_classes_that_agree_or_read_alike_change_nothing():
    plain = {"model_type": "mistral", **SMALL, "sliding_window": None, "rope_theta": 10000.0}
    for classes in (
        ["MistralModel"],
        ["LlamaForCausalLM"],
        ["SomethingElse"],
        ["MistralForCausalLM", "x"],
        "LlamaForCausalLM",
    ):
        spec = spec_of({**plain, "architectures": classes})
        assert (spec.family, spec.claims, graver(spec)) == ("mistral", "", [])
    text = spec_of({"model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], **SMALL})
    assert (text.family, text.claims) == ("gemma3_text", "")
    whole = spec_of({"model_type": "gemma3", "architectures": ["Gemma3ForCausalLM"], **SMALL})
    assert (whole.family, whole.claims, len(whole.layers)) == ("gemma3_text", "gemma3", 1)
    windowed = spec_of({**plain, "sliding_window": 64, "architectures": ["LlamaForCausalLM"]})
    assert (windowed.family, windowed.claims, windowed.layers[0].window) == ("llama", "mistral", None)


FLAT = {"num_hidden_layers": 7, "num_attention_heads": 6, "num_key_value_heads": 6, "hidden_size": 288, "head_dim": 48,
        "max_position_embeddings": 7777, "rope_theta": 54321.0}  # fmt: skip


def test_no_size_and_no_base_of_a_flat_file_is_dropped_in_silence():
    """For every model type, a flat file of sizes that no class has: the report has them, or an error or a warning names the
    key, or the class computes the size of others (rows of a table that precede position 0, latent heads, stages)."""
    from posenc.configs.keys import facts

    read = {"num_hidden_layers": lambda part: len(part.layers), "num_attention_heads": lambda part: part.n_heads,
            "hidden_size": lambda part: part.d_model, "max_position_embeddings": lambda part: part.trained_length,
            "rope_theta": lambda part: next((use.rotation.base for layer in part.layers for use in layer.uses
                                             if use.rotation), None)}  # fmt: skip
    refused, silent = 0, []
    for model_type in reader_paths():
        try:
            spec = spec_of({"model_type": model_type, **FLAT})
        except ConfigError:
            refused += 1
            continue
        parts = [part for _, part in spec.walk() if part.layers]
        taken = {key for part in (spec, *parts) for key, _ in part.keys} | set(graver(spec))
        about = facts().get(model_type, {"defaults": {}, "names": {}})
        for key, size in read.items():
            found = {size(part) for part in parts} - {None}
            if found and FLAT[key] not in found and key not in {*taken, *about["defaults"], *about["names"]}:
                silent.append((model_type, key, found))
    assert not silent
    assert 200 < refused < 400
