"""inspect and compare-configs on folders with weights: converted layouts, sizes that config.json leaves out, bad files."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from safetensors.torch import save_file
from typer.testing import CliRunner

from posenc.configs import ConfigError, headers, read_config
from posenc.configs.commands import compare_configs as compare_configs_
from posenc.configs.commands import inspect as inspect_
from posenc.configs.convert.checkpoint import convert

LLAMA = {"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "rope_theta": 1e4}


def run(command, *arguments: str):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "NO_COLOR": "1", "LANG": "C"})


def model(folder: Path, config: dict[str, Any] = LLAMA, metadata: dict[str, str] | None = None, shards: int = 1) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    for shard in range(shards):
        at = f"model.layers.{shard}.self_attn"
        tensors = {f"{at}.{name}.weight": torch.randn(32, 32) for name in ("q_proj", "k_proj")}
        save_file(tensors, folder / f"model-{shard}.safetensors", metadata)
    return folder


def layout(folder: Path) -> str:
    spec = read_config(folder)
    return dict(next(part for _, part in spec.walk() if part.layers).layers[0].uses[0].arguments)["layout"]


# The layout that posenc convert records.


def test_a_converted_checkpoint_has_the_same_positions_and_says_its_layout(tmp_path):
    source = model(tmp_path / "a")
    convert(source, tmp_path / "b", "interleaved")
    assert json.loads((tmp_path / "b" / "config.json").read_text())["rope_layout"] == "interleaved"
    assert (layout(source), layout(tmp_path / "b")) == ("half", "interleaved")
    compared = run(compare_configs_.command, str(source), str(tmp_path / "b"))
    assert compared.exit_code == 0
    assert "layout half against interleaved, for which the weights were converted" in " ".join(compared.stdout.split())
    shown = run(inspect_.command, str(tmp_path / "b"))
    assert shown.exit_code == 0
    assert "channel 2i pairs with 2i + 1" in shown.stdout
    assert "converted weights: channels pair as interleaved" in " ".join(shown.stdout.split())
    convert(tmp_path / "b", tmp_path / "back", "half")
    assert run(compare_configs_.command, str(source), str(tmp_path / "back")).exit_code == 0


def test_a_conversion_of_an_older_version_is_known_by_its_weights(tmp_path):
    old = model(tmp_path / "old", metadata={"rope_layout": "interleaved"})
    assert layout(old) == "interleaved"
    text = {"model_type": "qwen2_vl", "text_config": LLAMA | {"model_type": "llama"}}
    nested = model(tmp_path / "nested", text | {"model_type": "llava"}, {"rope_layout": "interleaved"})
    assert layout(nested) == "interleaved"


@pytest.mark.parametrize(("config", "records", "told"), [
    ({"rope_layout": "half"}, ["interleaved"], "'half' here, but the weights record 'interleaved'"),
    ({}, ["interleaved", "half"], "the weights record different layouts (half, interleaved)"),
    ({}, ["interleaved", None], "the weights record different layouts (interleaved, none)"),
    ({"rope_layout": "interleaved"}, [None], "the weights beside this file do not record a layout"),
    ({"model_type": "deepseek_v3", "rope_interleave": True}, ["half"], "'interleaved' here, but the weights record 'half'"),
])  # fmt: skip
def test_weights_and_marker_that_do_not_fit_are_an_error(tmp_path, config, records, told):
    folder = model(tmp_path / "a", LLAMA | config)
    for number, record in enumerate(records):
        metadata = {"rope_layout": record} if record else None
        save_file({f"model.layers.{number}.x": torch.zeros(2)}, folder / f"model-{number}.safetensors", metadata)
    shown = run(inspect_.command, str(folder))
    assert shown.exit_code == 1
    assert told in " ".join(shown.stdout.split("\nfindings")[1].split())
    assert "  error  " in shown.stdout


def test_a_word_that_is_no_layout_is_refused():
    with pytest.raises(ConfigError, match="rope_layout: expected one of 'half', 'interleaved', got \"both\""):
        read_config(LLAMA | {"rope_layout": "both"})


# Sizes that config.json leaves out.


def test_sizes_that_the_file_leaves_out_come_from_the_shapes(tmp_path):
    folder = tmp_path / "gpt2"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_head": 4}))
    tensors = {"wpe.weight": torch.zeros(48, 16), "wte.weight": torch.zeros(9, 16), "h.0.ln_1.weight": torch.zeros(16),
               "h.1.ln_1.weight": torch.zeros(16)}  # fmt: skip
    save_file(tensors, folder / "model.safetensors")
    spec = read_config(folder)
    assert (spec.trained_length, spec.d_model, len(spec.layers)) == (48, 16, 2)
    assert {one.key for one in spec.remarks if "by the shapes of the weights" in one.text} == {
        "n_positions", "n_embd", "n_layer"}  # fmt: skip
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_head": 4, "n_positions": 1024, "n_embd": 16}))
    assert read_config(folder).trained_length == 1024  # what the file says stands


# Bad files: one line, at once, in little memory.


def head(text: bytes, length: int | None = None, data: bytes = b"") -> bytes:
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


BAD = {
    "empty": (b"", "not a safetensors file"),
    "seven bytes": (b"1234567", "not a safetensors file"),
    "truncated": (head(b'{"a":{"dtype":"F32"', 4000), "cut short: a header of 4,000 bytes"),
    "huge count": (head(b"{}", 2**63), "a header of 9,223,372,036,854,775,808 bytes"),
    "wrong magic": (b"GGUF" + bytes(60), "not a safetensors file: it is a GGUF file"),
    "not JSON": (head(b"hello, world, this is not a header"), "not a safetensors file"),
    "a list": (head(b"[1, 2, 3]"), "its header is no JSON object"),
    "deep": (head(b"[" * 100_000), "nested too deeply"),
    "huge shape": (head(b'{"a":{"dtype":"F32","shape":[1e300],"data_offsets":[0,4]}}'), "expected whole numbers in shape"),
    "beyond": (
        head(b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'),
        "cut short: a ends at byte 79, the file has 63 bytes",
    ),
    "backwards": (
        head(b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}}'),
        "expected the begin and the end of its data in data_offsets, got [16, 0]",
    ),
    "half of the data": (
        head(b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}', data=bytes(8)),
        "cut short: a ends at byte 79, the file has 71 bytes; download or save it again",
    ),
    "fewer data than the shape": (
        head(b'{"a":{"dtype":"BF16","shape":[4,2],"data_offsets":[0,8]}}', data=bytes(8)),
        "a: BF16 [4, 2] has 16 bytes, its data_offsets hold 8",
    ),
    "a name twice": (
        head(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'),
        "the key 'a' occurs twice",
    ),
    "dimensions": (
        head(b'{"a":{"dtype":"F32","shape":[' + b"140737488355328," * 4000 + b'1],"data_offsets":[0,0]}}'),
        "a: 4,001 dimensions",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_safetensors_file_gets_one_clear_line_in_bounded_time_and_memory(tmp_path, case):
    content, told = BAD[case]
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "model.safetensors").write_bytes(content)
    tracemalloc.start()
    begin = time.process_time()
    with pytest.raises(ConfigError) as refused:
        headers.read_header(tmp_path / "model.safetensors")
    assert time.process_time() - begin < 2
    assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    tracemalloc.stop()
    assert "\n" not in str(refused.value)
    assert told in str(refused.value)
    shown = run(inspect_.command, str(tmp_path))
    assert shown.exit_code == 1
    assert "error" in shown.stdout
    assert "2 layers, 4 heads of 8 channels" in shown.stdout  # the rest of the report is there


def test_mutated_safetensors_files_end_in_one_line_or_are_read(tmp_path):
    """Bytes replaced, cut out and cut off, at random places: a header, or ConfigError in one line, at once."""
    model(tmp_path / "a", metadata={"rope_layout": "half"})
    whole = (tmp_path / "a" / "model-0.safetensors").read_bytes()
    draw, path, said = random.Random(17), tmp_path / "bad.safetensors", []
    begin = time.process_time()
    for _ in range(400):
        bad = bytearray(whole)
        at = draw.randrange(300)  # the header and a few weights
        match draw.randrange(3):
            case 0:
                bad[at] = draw.randrange(256)
            case 1:
                del bad[at:]
            case 2:
                bad[at : at + 8] = draw.randbytes(8)
        path.write_bytes(bad)
        try:
            headers.read_header(path)
        except ConfigError as error:
            said.append(str(error))
    assert len(said) > 100
    assert not any("\n" in one for one in said)
    assert time.process_time() - begin < 60


def test_every_damaged_file_of_a_folder_is_named(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    for name in "abcde":
        (tmp_path / f"{name}.safetensors").write_bytes(b"" if name != "a" else head(b"{}"))
    shown = run(inspect_.command, str(tmp_path), "--json")
    assert shown.exit_code == 1
    (said,) = [one["text"] for one in json.loads(shown.stdout)["remarks"] if "not a safetensors file" in one["text"]]
    assert [f"{name}.safetensors: " in said for name in "abcde"] == [False, True, True, True, False]
    assert said.endswith("; and 1 more files")
