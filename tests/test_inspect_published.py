"""Files as vendors publish them, legacy spellings included, each with what the report must say, field by field.

published.jsonl has one model a line: its name, the keys of its config.json that matter for positions, where a copy of that
file was `seen` (repository, commit, path) that agrees in every one of them, and `say`. remembered.jsonl has models whose
published file was not seen: the keys are as its authors describe the model, or as a copy has it `but` for some of them.

    layers  attend  first   all layers, how many of them attend, the number of the first that does
    heads=32x128            heads and their channels
    enc layout turns base   encoding, layout, rotated channels, base (in order of appearance)
    kind                    scaling
    window=4096:21          the window, and how many layers have it
    unfinished=57/128@1024  pairs without a full turn in a windowed layer, within how many tokens
    trained usable fails    the verdict
    error warning note      keys of findings: all errors are listed, a warning is expected, a note is among them
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cases import cases
from posenc.configs import ConfigError, PositionSpec, read_config
from posenc.configs.report.report import main_part, report

HERE = Path(__file__).parent
SEEN, REMEMBERED = (
    [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    for name in ("published", "remembered")
)
MODELS = [*SEEN, *REMEMBERED]


def whole(value: Any) -> Any:
    """The configuration with its repeated numbers written out."""
    if isinstance(value, dict):
        return [value["repeat"][0]] * value["repeat"][1] if "repeat" in value else {k: whole(v) for k, v in value.items()}
    return value


def described(spec: PositionSpec) -> dict[str, str]:
    """What the specification and the report say, in the words of published.jsonl."""
    data, (path, part) = report(spec), main_part(spec) or ("", spec)
    layers = part.layers
    attending = [number for number, layer in enumerate(layers) if layer.attends]
    uses = list(dict.fromkeys(use for layer in layers for use in layer.uses))
    turning = [use for use in uses if use.rotation is not None]
    windows = [layer.window for layer in layers if layer.window]
    narrow = [use["meaning"] for one in data["parts"] if one["part"] == path for group in one["groups"] if group["window"]
              for use in group["encodings"] if "meaning" in use]  # fmt: skip
    verdict = data["verdict"]
    found = {
        "family": part.family,
        "part": path,
        "layers": len(layers),
        "attend": len(attending),
        "first": attending[0] if attending else "none",
        "heads": f"{part.n_heads}x{part.d_head}",
        "enc": ",".join(dict.fromkeys(use.name for use in uses)) or "none",
        "nope": sum(1 for number in attending if not layers[number].uses),
        "causal": all(layer.causal for layer in layers),
        "window": f"{windows[0]}:{len(windows)}" if windows else "none",
        "trained": verdict["trained"],
        "usable": verdict["usable"],
        "fails": verdict["fails"],
    }
    if turning:
        made = turning[-1].rotation.frequencies().at_length(1)
        found |= {
            "layout": dict(turning[0].arguments)["layout"],
            "turns": 2 * len(made),
            "base": ",".join(dict.fromkeys(f"{use.rotation.base:.10g}" for use in turning)),
            "kind": turning[-1].rotation.kind,
            "axes": made.n_axes,
        }
    if narrow:
        found["unfinished"] = f"{narrow[0]['unfinished']}/{narrow[0]['pairs']}@{narrow[0]['length']}"
    return {name: str(value) for name, value in found.items()}


@cases("model", MODELS)
def test_the_report_says_what_it_must(model: dict[str, Any]):
    spec, expected = read_config(whole(model["config"])), dict(pair.split("=", 1) for pair in model["say"].split())
    graded = {grade: expected.pop(grade, None) for grade in ("error", "warning", "note")}
    found = described(spec)
    assert {name: found.get(name) for name in expected} == expected
    remarks = report(spec)["remarks"]
    keys = {grade: {one["key"] for one in remarks if one["grade"] == grade} for grade in graded}
    assert keys["error"] == set((graded["error"] or "").split(",")) - {""}
    assert (graded["warning"] is not None) == bool(keys["warning"]), remarks
    assert set((graded["warning"] or "").split(",")) <= keys["warning"] | {""}
    assert set((graded["note"] or "").split(",")) <= keys["note"] | {""}


@cases("model", MODELS)
def test_findings_name_keys_that_the_file_has(model: dict[str, Any]):
    config = whole(model["config"])
    for one in read_config(config).remarks:
        if one.grade == "note" or "missing" in one.text or not one.key:
            continue
        inside: Any = config
        for name in one.key.split("."):
            if not (isinstance(inside, dict) and name in inside):  # a key of an earlier part's own file
                pytest.fail(f"{one.key} is not in the file: {one.text}")
            inside = inside[name]


def test_findings_about_a_file_with_a_type_alone_name_no_key_of_it():
    """A warning or an error names a key that the file has, or one that is missing; such a file has its type alone."""
    from posenc.configs.family import reader_paths

    graver = 0
    for name in reader_paths():
        try:
            spec = read_config({"model_type": name})
        except ConfigError:
            continue
        sections = {path for path, _ in spec.walk()}
        sections |= {"model_type"}
        for _, part in spec.walk():
            for one in part.remarks:
                if one.grade != "note" and "missing" not in one.text:
                    graver += 1
                    assert one.key in sections, (name, one)
    assert graver > 50


def test_what_is_called_published_names_the_copy_that_it_agrees_with():
    for model in SEEN:
        assert re.match(r"[\w.-]+/[\w.-]+(@[0-9a-f]{8} \S+|, )", model["seen"]), model["name"]
        assert "but" not in model
    for model in REMEMBERED:
        assert ("seen" in model) == bool(model.get("but")), model["name"]
        assert set(model.get("but", ())) <= model["config"].keys()


def test_the_table_is_large_and_no_file_is_a_default_of_its_class():
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    assert len(MODELS) >= 80
    assert len({model["name"] for model in MODELS}) == len(MODELS)
    for model in MODELS:
        config = whole(model["config"])
        if config["model_type"] in CONFIG_MAPPING:
            default = CONFIG_MAPPING[config["model_type"]]().to_dict()
            given = {key: value for key, value in config.items() if key != "model_type" and value is not None}
            assert any(key not in default or default[key] != value for key, value in given.items()), model["name"]
    remote = [model for model in MODELS if "note=model_type" in model["say"]]
    assert len({model["config"]["model_type"] for model in remote}) >= 20
