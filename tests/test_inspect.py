"""posenc inspect and posenc compare-configs: what they print, write and refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from posenc import cli
from posenc.configs import ConfigError, read_config
from posenc.configs.commands import compare_configs as compare_configs_
from posenc.configs.commands import inspect as inspect_
from sampling import one_in

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "max_position_embeddings": 131072,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}


def run(command, *arguments: str, stdin: str | bytes | None = None):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments), input=stdin, env={"COLUMNS": "120", "NO_COLOR": "1"})


def inspect(*arguments: str, stdin=None):
    return run(inspect_.command, *arguments, stdin=stdin)


def posenc(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "COLUMNS": "120", "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-m", "posenc", *arguments], input=stdin, capture_output=True, env=environment)


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    return tmp_path


def words(text: str) -> str:
    return " ".join(text.split())


# What it says


def test_the_page_tells_what_who_said_so_and_what_it_means(llama: Path):
    shown = inspect(str(llama), "--verbose")
    text = words(shown.stdout)
    assert shown.exit_code == 0
    for told in (
        "llama: trained on 131,072 positions, with Llama 3's scaling ×8 of 8,192",
        "beyond 131,072: 25 of 64 pairs in 32 layers reach angles not seen in training",
        "32 layers, 32 heads of 128 channels",
        "safe to serve: up to 131,072, by Llama 3's scaling ×8 of 8,192",
        "every layer full attention, causal",
        "half: channel i pairs with i + d/2; all 128 channels",
        "500,000",
        "rope_theta",
        "llama3: factor 8",
        "wavelengths 6.28 …",
        "do not complete a turn in 131,072",
        "131,071 rad",
        "bf16 collide from 257",
    ):
        assert told in text, told


def test_a_file_a_folder_and_standard_input_are_the_same(llama: Path):
    by_folder = inspect(str(llama), "--json").stdout
    assert inspect(str(llama / "config.json"), "--json").stdout == by_folder
    assert inspect("-", "--json", stdin=json.dumps(LLAMA)).stdout == by_folder
    found = json.loads(by_folder)
    (part,) = found["parts"]
    (group,) = part["groups"]
    assert (group["layers"], group["causal"], group["window"]) == (list(range(32)), True, None)
    (rope,) = group["encodings"]
    assert rope["said_by"]["base"] == "rope_theta"
    assert rope["rotation"]["parameters"]["trained_length"] == 8192
    assert len(rope["rotation"]["frequencies"]) == 64


def test_beyond_the_trained_length_it_names_the_pairs(llama: Path):
    beyond = json.loads(inspect(str(llama), "--length", "262144", "--json").stdout)["parts"][0]["groups"][0]["encodings"][0]
    pairs = beyond["beyond"]["pairs"]
    assert pairs == list(range(pairs[0], 64))
    assert f"{len(pairs)} of 64 pairs have angles not seen in training: {pairs[0]}–63" in words(
        inspect(str(llama), "--length", "262144").stdout
    )
    within = json.loads(inspect(str(llama), "--length", "4096", "--json").stdout)["parts"][0]["groups"][0]["encodings"][0]
    assert within["beyond"]["pairs"] == []


def test_a_missing_base_is_one_note_and_no_error():
    silent = {key: value for key, value in LLAMA.items() if not key.startswith("rope")}
    shown = inspect("-", stdin=json.dumps(silent))
    assert shown.exit_code == 0
    assert words(shown.stdout).count("missing: LlamaConfig assumes 10000") == 1
    assert "default of LlamaConfig" in words(shown.stdout)
    assert read_config(silent).layers[0].uses[0].rotation.base == 10000
    with pytest.raises(ConfigError, match="rope_theta: missing; LlamaConfig would assume 10000"):
        read_config(silent, defaults=False)


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ("got_ocr2", r"GotOcr2Config would assume 1e\+06"),
        ("lighton_ocr", r"LightOnOcrConfig would assume 1e\+06"),
        ("mistral3", r"Mistral3Config would assume 1e\+09"),
        ("moss_transcribe_diarize", r"MossTranscribeDiarizeConfig would assume 1e\+06"),
        ("pp_chart2table", r"PPChart2TableConfig would assume 1e\+06"),
        ("voxtral", r"VoxtralConfig would assume 1e\+08"),
    ],
)
def test_a_refused_base_of_a_part_is_what_the_whole_model_s_class_assumes(family, said):
    """The part's own class assumes 10000 where it stands alone."""
    with pytest.raises(ConfigError, match=rf"^text_config.rope_theta: missing; {said}"):
        read_config({"model_type": family}, defaults=False)


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"rope_tetha": 1e6}, "warning rope_tetha: LlamaConfig's code does not read it"),
        ({"partial_rotary_factor": 0.5}, "note the first 64 of 128 channels rotate"),
        (
            {"rope_scaling": {"type": "linear", "rope_type": "dynamic", "factor": 2.0}},
            "has rope_type='dynamic' and type='linear'",
        ),
        (
            {"rope_scaling": {"type": "yarn", "factor": 4.0, "attn_factor": 1.0, "original_max_position_embeddings": 8192}},
            "error rope_scaling.attn_factor: not a key of yarn",
        ),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}}, "is 16"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "missing: transformers uses"),
        ({"rope_scaling": {"type": "linear", "factor": 0.25}}, "warning rope_scaling.factor: 0.25 shortens the context"),
        ({"rope_scaling": {"type": "dynamic", "factor": 4.0}}, "frequencies change with every length past 131072"),
        (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
            "transformers uses rope_scaling and ignores the other",
        ),
    ],
)
def test_contradictions_and_keys_that_nothing_reads_are_named(extra, told):
    assert told in words(inspect("-", stdin=json.dumps(LLAMA | extra)).stdout)


@pytest.mark.parametrize(
    "slip", one_in(2, [{"rope_theta": 1e-300}, {"rope_scaling": {"type": "linear", "factor": 1e-200}}])
)
def test_frequencies_that_only_a_slip_makes_are_one_clear_line(slip):
    refused = posenc("inspect", "-", stdin=json.dumps(LLAMA | slip).encode())
    (line,) = refused.stderr.decode().splitlines()
    assert line.startswith("posenc: frequencies: ")
    assert line.endswith("check base and factors")


# Extending


def test_extensions_side_by_side_and_one_alone(llama: Path):
    every = json.loads(inspect(str(llama), "--extend-to", "262144", "--json").stdout)["extensions"]
    assert [one["method"] for one in every] == ["yarn", "ntk", "linear", "llama3", "longrope"]
    (one,) = json.loads(inspect(str(llama), "--extend-to", "262144", "--method", "linear", "--json").stdout)["extensions"]
    assert one["fragment"]["rope_scaling"] == {"rope_type": "linear", "factor": 32.0}
    assert '"factor": 32.0' in inspect(str(llama), "--extend-to", "262144", "--method", "linear").stdout


def test_the_folder_appears_whole_and_is_never_overwritten(llama: Path, tmp_path: Path):
    out = tmp_path / "longer"
    assert inspect(str(llama), "--extend-to", "262144", "--out", str(out)).exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "config-linear.json",
        "config-llama3.json",
        "config-longrope.json",
        "config-ntk.json",
        "config-yarn.json",
        "frequencies.png",
        "report.json",
        "report.txt",
    ]
    assert json.loads((out / "config-yarn.json").read_text())["rope_scaling"]["rope_type"] == "yarn"
    assert (out / "frequencies.png").read_bytes().startswith(b"\x89PNG")
    again = posenc("inspect", str(llama), "--out", str(out))
    assert again.returncode == 1
    assert again.stderr.decode().splitlines() == [f"posenc: --out {out}: exists; give a new folder"]
    assert not list(tmp_path.glob(".longer*"))


def test_what_cannot_be_extended_is_said_in_one_line():
    learned = json.dumps({"model_type": "gpt2"})
    refused = posenc("inspect", "-", "--extend-to", "4096", stdin=learned.encode())
    assert refused.returncode == 1
    assert refused.stderr.decode().splitlines() == [
        "posenc: --extend-to: gpt2 has no rotary frequencies with a trained length"
    ]
    assert inspect("-", "--method", "yarn", stdin=json.dumps(LLAMA)).exit_code == 2


# What it refuses


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"not json at all", "not JSON"),
        (b"\xff\xfe\x00", "not a text file in UTF-8"),
        (b"[1, 2]", "expected a JSON object such as a model's config.json, got a list"),
        (b"null", "got null"),
        (b"{}", "model_type: missing; expected the name of a family"),
        (b'{"model_type": 3}', "model_type: got 3; expected the name of a family such as 'llama'"),
        (
            b'{"weight_map": {}}',
            "model_type: missing; this is the index of a checkpoint's files: give the model's config.json",
        ),
        (b'{"unk_token": "<unk>"}', "this is the special tokens of a tokenizer"),
        (b'{"_class_name": "FluxPipeline"}', "this is the index of a pipeline of diffusers"),
        (b'{"message": "not found"}', "this is perhaps the message of a server"),
        (
            b'{"model_type": "llama", "tokenizer_class": "LlamaTokenizer", "eos_token": "</s>"}',
            "model_type: 'llama', but no other key is of a model; this is the configuration of a tokenizer",
        ),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "it is a pointer of Git LFS"),
        (b"<!DOCTYPE html><html></html>", "it is a web page (HTML)"),
        (b'{"model_type": "no_such_model"}', "'no_such_model' is not a known family"),
        (b'{"model_type": "llama", "rope_theta": NaN}', "holds NaN, which is not a JSON number"),
        (b'{"model_type": "llama", "rope_theta": -Infinity}', "holds -Infinity"),
        (b'{"model_type": "llama", "rope_theta": -1}', "rope_theta: expected a positive number, got -1"),
        (b'{"model_type": "llama", "rope_theta": "10000"}', 'rope_theta: expected a positive number, got "10000"'),
        (b'{"model_type": "llama", "rope_theta": 1e999}', "holds 1e999, which is beyond float64"),
        (b'{"model_type": "llama", "rope_theta": 0}', "rope_theta: expected a positive number, got 0"),
        (b'{"model_type": "llama", "rope_theta": true}', "rope_theta: expected a positive number, got true"),
        (
            b'{"model_type": "llama", "rope_theta": 1e4, "hidden_size": -8}',
            "hidden_size: expected a whole number from 1, got -8",
        ),
        (
            b'{"model_type": "llama", "rope_theta": 1e4, "hidden_size": 8.5}',
            "hidden_size: expected a whole number from 1, got 8.5",
        ),
        (
            b'{"model_type": "llama", "rope_theta": 1e4, "hidden_size": 30, "num_attention_heads": 4}',
            "30 is not a multiple of",
        ),
        (b'{"model_type": "llama", "rope_theta": 1e4, "head_dim": 7}', "head_dim"),
        (b'{"model_type": "llama", "rope_theta": 1e4, "rope_scaling": [1]}', "rope_scaling: expected an object, got [1]"),
        (b'{"model_type": "llama", "rope_theta": 1e4, "rope_scaling": {"type": "magic"}}', "rope_type: expected one of"),
        (
            b'{"model_type": "llama", "rope_theta": 1e4, "rope_scaling": {"type": "linear"}}',
            "factor: missing; linear needs factor",
        ),
        (
            b'{"model_type": "llama", "rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": "2"}}',
            "factor: expected a positive",
        ),
        (b'{"model_type": "llama", "model_type": "gpt2"}', "the key 'model_type' occurs twice"),
        (
            b'{"model_type": "llama", "rope_theta": 1e4, "num_hidden_layers": 1000000000000}',
            "num_hidden_layers: 1000000000000 is",
        ),
        (b'{"model_type": "llama", "rope_theta": 1e4, "hidden_size": 4294967296}', "hidden_size: 4294967296 is larger"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "nested deeper than 32 levels"),
        (b'{"a": "' + b"x" * (17 * 2**20) + b'"}', "larger than 16 MiB"),
    ],
    ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else None,
)
def test_what_is_no_configuration_gets_one_clear_line(text: bytes, told: str, tmp_path: Path, monkeypatch, capsys):
    file = tmp_path / "config.json"
    file.write_bytes(text)
    monkeypatch.setattr(sys, "argv", ["posenc", "inspect", str(file)])
    with pytest.raises(SystemExit) as refused:
        cli.run()
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert refused.value.code == 1
    assert len(lines) == 1, lines
    assert lines[0].startswith("posenc: ")
    assert told in lines[0]
    assert printed.out == ""


def test_no_file_and_no_plain_file(tmp_path: Path):
    missing = posenc("inspect", str(tmp_path / "nothing.json"))
    assert b"no such file" in missing.stderr
    empty = posenc("inspect", str(tmp_path))
    assert b"config.json: no such file; give" in empty.stderr
    (tmp_path / "model.safetensors").touch()
    assert f"no such file; {tmp_path} has model.safetensors; give".encode() in posenc("inspect", str(tmp_path)).stderr
    (tmp_path / "small.gguf").touch()
    assert f"no such file; {tmp_path} has small.gguf; give".encode() in posenc("inspect", str(tmp_path)).stderr
    assert missing.returncode == empty.returncode == 1


def test_a_model_whose_file_names_its_tokenizer_is_read():
    assert inspect("-", stdin=json.dumps(LLAMA | {"tokenizer_class": "LlamaTokenizer"})).exit_code == 0
    by_class = {key: value for key, value in LLAMA.items() if key != "model_type"} | {"architectures": ["LlamaModel"]}
    assert inspect("-", stdin=json.dumps(by_class | {"eos_token_id": 2})).exit_code == 0


# compare-configs


def test_two_models_that_are_the_same_and_two_that_are_not(llama: Path, tmp_path: Path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps(LLAMA | {"rope_theta": 10000.0}))
    same = run(compare_configs_.command, str(llama), str(llama / "config.json"))
    assert (same.exit_code, same.stdout) == (0, "the same: all layers have the same positions\n")
    apart = run(compare_configs_.command, str(llama), str(other))
    assert apart.exit_code == 1
    assert "base 500,000 against 10,000" in words(apart.stdout)
    found = json.loads(run(compare_configs_.command, str(llama), str(other), "--json").stdout)
    assert found["same"] is False
    assert found["differences"][0]["where"] == "layer 0"
    assert found["differences"][0]["position"] >= 1


def test_the_spelling_makes_no_difference(tmp_path: Path):
    old, new = tmp_path / "v4.json", tmp_path / "v5.json"
    old.write_text(json.dumps(LLAMA))
    settings = LLAMA["rope_scaling"] | {"rope_theta": LLAMA["rope_theta"]}
    plain = {key: value for key, value in LLAMA.items() if not key.startswith("rope")}
    new.write_text(json.dumps(plain | {"rope_parameters": settings}))
    assert run(compare_configs_.command, str(old), str(new)).exit_code == 0


def test_a_misspelt_key_is_seen_from_the_first_lines(tmp_path: Path):
    """How many warnings there are; where a scaling lacks a key, the key of the file that looks like it."""
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, "rope_thetta": 1e6}))
    assert "1 warning about this file, under findings" in inspect(str(tmp_path)).stdout.splitlines()[5]
    scaling = {**LLAMA["rope_scaling"], "low_freq_facter": 1.0}
    del scaling["low_freq_factor"]
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, "rope_scaling": scaling}))
    told = words(posenc("inspect", str(tmp_path)).stderr.decode())
    assert "rope_scaling.low_freq_factor: missing (the file has low_freq_facter); llama3 needs" in told
