"""Models of a type that is not known around a text model that is: the text model is read, the first line of the report says
so, and settings are printed for its section."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from posenc.configs import ConfigError
from posenc.configs.commands import inspect as inspect_
from posenc.configs.read import spec_of
from posenc.configs.remote import TEXT_PARTS

QWEN2 = {"model_type": "qwen2", "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 2,
         "num_hidden_layers": 6, "max_position_embeddings": 32768, "rope_theta": 1000000.0}  # fmt: skip
OVIS = {"model_type": "ovis", "architectures": ["Ovis"], "hidden_size": 1024, "llm_config": QWEN2,
        "visual_tokenizer_config": {"backbone_config": {"hidden_size": 512, "num_hidden_layers": 8}}}  # fmt: skip


def inspected(config: dict[str, Any], folder: Path, *options: str) -> str:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    app = typer.Typer()
    app.command()(inspect_.command)
    environment = {"COLUMNS": "400", "NO_COLOR": "1", "LANG": "C"}
    return CliRunner().invoke(app, [str(folder), *options], env=environment).stdout


@pytest.mark.parametrize("name", TEXT_PARTS)
def test_the_text_model_is_read_wherever_it_stands(name: str):
    spec = spec_of({"model_type": "unheard_of", name: QWEN2})
    assert (spec.family, spec.wraps, spec.remote, spec.layers) == ("unheard_of", name, True, ())
    (text,) = {layer.uses[0].arguments for layer in spec[name].layers}
    (plain,) = {layer.uses[0].arguments for layer in spec_of(QWEN2).layers}
    assert (text, len(spec[name].layers)) == (plain, 6)
    assert [(remark.grade, remark.key) for remark in spec.remarks] == [("note", "model_type")]


def test_the_first_line_says_what_is_read_and_a_note_what_is_not(tmp_path: Path):
    printed = inspected(OVIS, tmp_path)
    assert printed.startswith(
        "ovis, a type that is not known, read as its llm_config, qwen2: trained on 32,768 positions\n"
    )
    assert "visual_tokenizer_config: a part of the model that is not read" in printed


def test_settings_carry_the_path_of_the_section(tmp_path: Path):
    nested = {"model_type": "unheard_of", "thinker_config": {"model_type": "neither", "text_config": QWEN2}}
    out = json.loads(inspected(nested, tmp_path, "--extend-to", "131072", "--method", "yarn", "--json"))
    (extension,) = out["extensions"]
    (section,) = extension["fragment"].values()
    settings = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    assert section["text_config"]["rope_scaling"] == settings
    extended = {**nested, "thinker_config": {**nested["thinker_config"], "text_config": QWEN2 | section["text_config"]}}
    rotation = spec_of(extended)["thinker_config"]["text_config"].layers[0].uses[0].rotation
    assert (rotation.kind, dict(rotation.parameters)["factor"]) == ("yarn", 4.0)


def test_a_section_without_a_type_is_read_by_its_class():
    untyped = {key: value for key, value in QWEN2.items() if key != "model_type"} | {"architectures": ["Qwen2ForCausalLM"]}
    assert spec_of({"model_type": "ovis", "llm_config": untyped})["llm_config"].family == "qwen2"


def test_a_class_that_has_such_a_section_itself_decides():
    llava = {"model_type": "my_llava", "architectures": ["LlavaForConditionalGeneration"], "text_config": QWEN2}
    assert (spec_of(llava).family, spec_of(llava).wraps) == ("llava", "")
    flat = {"model_type": "my_qwen", "architectures": ["Qwen2ForCausalLM"], "text_config": QWEN2}
    assert (spec_of(flat).family, spec_of(flat).wraps) == ("my_qwen", "text_config")


def test_what_is_not_known_either_is_named():
    with pytest.raises(ConfigError, match="'ovis' is not a known family, nor is that of its llm_config, 'nothing'"):
        spec_of({"model_type": "ovis", "llm_config": {**QWEN2, "model_type": "nothing"}})


def test_keys_and_sizes_beside_the_section_are_not_silent():
    beside = {**OVIS, "rope_theta": 5.0, "num_hidden_layers": 99}
    graver = {remark.key: remark.text for remark in spec_of(beside).remarks if remark.grade != "note"}
    assert graver == {"rope_theta": "not read here", "num_hidden_layers": "not read here; what is read makes 6"}
    inside = {**OVIS, "llm_config": {**QWEN2, "alibi": True}}
    (remark,) = (remark for remark in spec_of(inside)["llm_config"].remarks if remark.grade == "warning")
    assert remark.text == "Qwen2Config's code does not read it; the model's own code, which is not read here, may"


def test_nv_embed_attends_to_both_sides_without_a_window():
    mistral = {**QWEN2, "model_type": "bidir_mistral", "architectures": ["MistralModel"], "sliding_window": 4096}
    text = spec_of({"model_type": "nvembed", "text_config": mistral})["text_config"]
    assert {(layer.causal, layer.window) for layer in text.layers} == {(False, None)}
