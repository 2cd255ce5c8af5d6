"""posenc inspect answers without torch: what the report says of an encoding is held equal to the encoding itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from posenc.configs import ConfigError, family, read_config
from posenc.configs.report import names
from posenc.configs.report.report import acts
from posenc.encoding import SEAMS as IN_ORDER
from sampling import every_second, first_only

PUBLISHED = {
    row["name"]: row["config"]
    for name in ("published", "remembered")
    for row in map(json.loads, (Path(__file__).parent / f"{name}.jsonl").read_text("utf-8").splitlines())
}
BLOOM = {"model_type": "bloom", "hidden_size": 64, "n_head": 4, "n_layer": 2}
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 128}
T5 = {"model_type": "t5", "d_model": 64, "num_heads": 4, "d_kv": 16, "num_layers": 2}


def imported_by(*arguments):
    asked = [sys.executable, "-X", "importtime", "-m", "posenc", *arguments]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr[-500:]
    return {line.split("|")[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


IMAGES = [{"_class_name": f"{name}Model"} for name in ("SD3Transformer2D", "LTXVideoTransformer3D", "FluxTransformer2D")]


@pytest.mark.parametrize(
    ("config", "options"),
    every_second(
        [PUBLISHED["Llama-2-7b-hf"], PUBLISHED["Llama-3.1-8B"], GPT2, T5, BLOOM, *IMAGES],
        [(), ("--json", "--length", "9000")],
    ),
)
def test_a_configuration_is_read_without_torch(config, options, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    modules = imported_by("inspect", str(tmp_path), *options)
    assert "posenc.configs.report.report" in modules
    assert not {"torch", "numpy"} & modules


def test_one_family_is_imported_for_a_file_of_one(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED["Llama-2-7b-hf"]))
    families = [name for name in imported_by("inspect", str(tmp_path)) if name.startswith("posenc.configs.families.")]
    assert len(families) < 8, families


def uses(config):
    try:
        spec = read_config(config)
    except ConfigError:
        return set()
    return {use for _, part in spec.walk() for layer in part.layers for use in layer.uses}


@pytest.mark.parametrize("part", first_only([(5,), (1,)]))
def test_seams_of_a_name_are_those_of_the_encoding(part):
    configs = [*PUBLISHED.values(), *IMAGES]
    for model_type in list(CONFIG_MAPPING_NAMES)[::part]:
        try:
            configs.append(json.loads(CONFIG_MAPPING[model_type]().to_json_string(use_diff=False)))
        except Exception:  # a few cannot be made without arguments
            configs.append({"model_type": model_type})
    seen = {use for config in configs for use in uses(config)}
    for use in seen:
        with torch.device("meta"):
            made = use.build()
        assert acts(use)[0] == tuple(seam for seam in IN_ORDER if seam in made.seams), use.name
    assert part > 1 or set(names.SEAMS) <= {use.name for use in seen}


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ({"model_type": "t5", "relative_attention_max_distance": 1}, "max_distance"),
        ({"model_type": "gpt2", "n_embd": 0}, "n_embd"),
    ],
)
def test_what_the_encoding_refuses_is_refused(use, why):
    from posenc.configs.report.report import report

    with pytest.raises(ConfigError, match=why):
        report(read_config({**T5, **use} if use["model_type"] == "t5" else {**GPT2, **use}))


def test_every_type_is_found_without_the_others():
    """Each is looked up in a process that has imported no reader but those looked up before it."""
    known = sorted(family.reader_paths())
    code = (
        "import json, sys; from posenc.configs.family import READERS; from posenc.configs.remote import REMOTE\n"
        "names = json.load(sys.stdin)\n"
        "readers = [REMOTE[name].reader if name in REMOTE else name for name in names]\n"
        "print(json.dumps([name for name in readers if READERS[name] is None]))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(known), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
    alone = "from posenc.configs.family import READERS; print('no such type' in READERS, len(READERS) > 600)"
    assert subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=True).stdout.split() == [
        "False",
        "True",
    ]
