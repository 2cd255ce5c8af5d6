"""GGUF files: what inspect and compare-configs say of them, and bad ones. The files are written here, byte by byte."""

from __future__ import annotations

import json
import math
import re
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

import in_process
from posenc.configs import ConfigError, read_config
from posenc.configs.commands import compare_configs as compare_configs_
from posenc.configs.commands import inspect as inspect_
from posenc.configs.report.limit import limit
from posenc.positions import Positions
from sampling import one_in

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 4,
    "head_dim": 128,
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
U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9  # types of values in ggml's docs/gguf.md


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def value(one: Any) -> bytes:
    """Type and value of one key."""
    if isinstance(one, bool):
        return struct.pack("<IB", BOOL, one)
    if isinstance(one, list):
        inner = [value(item) for item in one]
        return struct.pack("<I", ARRAY) + inner[0][:4] + struct.pack("<Q", len(one)) + b"".join(item[4:] for item in inner)
    if isinstance(one, str):
        return struct.pack("<I", STRING) + string(one)
    return struct.pack("<If", F32, one) if isinstance(one, float) else struct.pack("<II", U32, one)


def gguf(path: Path, keys: dict[str, Any], tensors: dict[str, list[float]] | None = None) -> Path:
    tensors, offset = tensors or {}, 0
    data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    data += b"".join(string(name) + value(one) for name, one in keys.items())
    for name, numbers in tensors.items():
        data += string(name) + struct.pack("<IQIQ", 1, len(numbers), 0, offset)
        offset += -(-4 * len(numbers) // 32) * 32
    data += bytes(-len(data) % 32)
    for numbers in tensors.values():
        data += struct.pack(f"<{len(numbers)}f", *numbers) + bytes(-4 * len(numbers) % 32)
    path.write_bytes(data)
    return path


def keys(architecture: str = "llama", **more: Any) -> dict[str, Any]:
    own = {
        "block_count": 4,
        "context_length": 131072,
        "embedding_length": 4096,
        "attention.head_count": 32,
        "rope.dimension_count": 128,
        "rope.freq_base": 500000.0,
    }
    named = {f"{architecture}.{name}": one for name, one in {**own, **more}.items() if one is not None}
    return {"general.architecture": architecture, **named, "tokenizer.ggml.tokens": [f"word {n}" for n in range(6000)]}


def llama3_factors() -> list[float]:
    """What llama.cpp's converter writes: 1, 8, or in between, by the wavelength of each pair."""
    found = []
    for pair in range(64):
        wavelength = 2 * 3.141592653589793 * 500000.0 ** (2 * pair / 128)
        if wavelength < 8192 / 4:
            found.append(1.0)
        elif wavelength > 8192:
            found.append(8.0)
        else:
            smooth = (8192 / wavelength - 1) / (4 - 1)
            found.append(1 / ((1 - smooth) / 8 + smooth))
    return found


def run(command, *arguments: str):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "NO_COLOR": "1", "LANG": "C"})


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    return tmp_path


def test_a_gguf_file_is_inspected(tmp_path):
    path = gguf(tmp_path / "m.gguf", keys(), {"rope_freqs.weight": llama3_factors()})
    shown = run(inspect_.command, str(path))
    assert shown.exit_code == 0, shown.stdout
    for told in (
        "trained on 131,072 positions",
        "4 layers, 32 heads of 128 channels",
        "interleaved: channel",
        "llama.rope.freq_base",
        "500,000",
    ):
        assert told in words(shown.stdout), told


def test_the_file_that_llama_cpp_makes_of_a_folder_is_the_same(tmp_path, folder):
    path = gguf(tmp_path / "m.gguf", keys(), {"rope_freqs.weight": llama3_factors()})
    compared = run(compare_configs_.command, str(path), str(folder))
    assert (compared.exit_code, compared.stdout) == (0, "the same: all layers have the same positions\n")


def test_another_trained_length_changes_no_position(tmp_path, folder):
    path = gguf(tmp_path / "m.gguf", keys(context_length=8192), {"rope_freqs.weight": llama3_factors()})
    compared = run(compare_configs_.command, str(path), str(folder))
    assert compared.exit_code == 0
    assert words(compared.stdout).endswith("differs in the file, not in effect: trained length 8192 against 131072")


@pytest.mark.parametrize(
    ("more", "factors", "told"),
    [
        ({"rope.freq_base": 10000.0}, True, "base 10,000 against 500,000"),
        ({}, False, "none against 8"),
        ({"attention.max_alibi_bias": 8.0}, False, "ALiBi against RoPE"),
        (
            {"attention.sliding_window": 4096, "attention.sliding_window_pattern": [True] * 4},
            True,
            "a window of 4096 against everything",
        ),
        ({"block_count": 5}, True, "5 layers against 4"),
        (
            {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32768},
            False,
            "scaling yarn against llama3",
        ),
    ],
)
def test_each_difference_is_told(tmp_path, folder, more, factors, told):
    tensors = {"rope_freqs.weight": llama3_factors()} if factors else {}
    path = gguf(tmp_path / "m.gguf", keys(**more), tensors)
    compared = run(compare_configs_.command, str(path), str(folder))
    assert compared.exit_code == 1
    assert told in words(compared.stdout)


def test_alibi_s_maximum_is_compared(tmp_path):
    bases = [gguf(tmp_path / f"{most}.gguf", keys("mpt", **{"attention.max_alibi_bias": most})) for most in (8.0, 16.0)]
    compared = run(compare_configs_.command, *map(str, bases))
    assert "ALiBi: bias_max None against 16.0" in words(compared.stdout)


def test_halves_stay_halves_where_llama_cpp_does_not_permute(tmp_path):
    path = gguf(tmp_path / "m.gguf", keys("qwen2"))
    assert dict(read_config(path).layers[0].uses[0].arguments)["layout"] == "half"
    config = {key: one for key, one in LLAMA.items() if key != "rope_scaling"} | {"model_type": "qwen2"}
    (tmp_path / "config.json").write_text(json.dumps(config | {"rope_layout": "interleaved"}))
    compared = run(compare_configs_.command, str(path), str(tmp_path / "config.json"))
    assert "layout half against interleaved" in words(compared.stdout)


V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "num_hidden_layers": 4,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "rope_theta": 500000.0,
    "max_position_embeddings": 131072,
}
ALPHA = {
    "model_type": "hunyuan_v1_dense",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 4,
    "head_dim": 128,
    "rope_theta": 10000.0,
    "max_position_embeddings": 131072,
    "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0},
}
PHI3 = {
    "model_type": "phi3",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 4,
    "rope_theta": 500000.0,
    "max_position_embeddings": 131072,
    "sliding_window": 262144,
}
MLA = {"attention.key_length_mla": 192, "rope.dimension_count": 64, "attention.head_count_kv": 1}
SAME_SCORES = {  # what llama.cpp's converter writes -> the configuration, and what changes no score
    "pairs that stay interleaved": ("deepseek2", MLA, V3, "returns None against half: keys are cached in another order"),
    "alpha, as a base in fp32": ("hunyuan-dense", {"rope.freq_base": 10000.0 * 1000.0 ** (128 / 126)}, ALPHA, ""),
    "a window wider than the length": ("phi3", {}, PHI3, "a window of everything against 262144"),
    "rows before position 0": (
        "bert",
        {"context_length": 512},
        {"model_type": "roberta", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 4,
         "max_position_embeddings": 514},
        "Learned: row_offset None against 2; padding_row None against 1",
    ),
    "permuted for three axes": (
        "glm4",
        {"rope.dimension_count": 64, "rope.dimension_sections": [8, 12, 12, 0]},
        {"model_type": "glm4v_text", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 4,
         "max_position_embeddings": 131072,
         "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0, "mrope_section": [8, 12, 12],
                             "partial_rotary_factor": 0.5}},
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME_SCORES)
def test_what_changes_no_score_is_no_difference(case, tmp_path):
    architecture, more, config, unfelt = SAME_SCORES[case]
    path = gguf(tmp_path / "m.gguf", keys(architecture, **more))
    (tmp_path / "config.json").write_text(json.dumps(config))
    compared = run(compare_configs_.command, str(path), str(tmp_path / "config.json"))
    assert compared.exit_code == 0, compared.stdout
    assert compared.stdout.startswith("the same: all layers have the same positions\n")
    assert unfelt in words(compared.stdout)


@pytest.mark.parametrize(
    ("case", "changes", "told"),
    [
        ("alpha, as a base in fp32", {"rope_theta": 10000.02}, "RoPE: base"),
        ("a window wider than the length", {"sliding_window": 131071}, "a window of everything against 131071"),
        ("rows before position 0", {"max_position_embeddings": 500}, "max_positions 512 against 498"),
    ],
)
def test_what_changes_a_score_is_one_there_too(case, changes, told, tmp_path):
    architecture, more, config, _ = SAME_SCORES[case]
    path = gguf(tmp_path / "m.gguf", keys(architecture, **more))
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    compared = run(compare_configs_.command, str(path), str(tmp_path / "config.json"))
    assert compared.exit_code == 1
    assert told in words(compared.stdout)


def test_a_converted_folder_has_the_positions_of_its_source(tmp_path, folder):
    """posenc convert permutes the rows of q and k for the layout that rope_layout records."""
    (tmp_path / "converted.json").write_text(json.dumps(LLAMA | {"rope_layout": "interleaved"}))
    compared = run(compare_configs_.command, str(folder), str(tmp_path / "converted.json"))
    assert compared.exit_code == 0
    told = words(compared.stdout)
    assert "RoPE: layout half against interleaved, for which the weights were converted" in told


def test_a_converted_folder_whose_family_reads_either_layout(tmp_path):
    """posenc convert sets rope_interleave there, and the weights record what they are."""
    for name, pairs, metadata in (("source", True, {}), ("converted", False, {"rope_layout": "half"})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(V3 | {"rope_interleave": pairs}))
        header = json.dumps({"__metadata__": metadata} if metadata else {}).encode()
        (tmp_path / name / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    compared = run(compare_configs_.command, str(tmp_path / "source"), str(tmp_path / "converted"))
    assert compared.exit_code == 0, compared.stdout
    assert "layout interleaved against half, for which the weights were converted" in words(compared.stdout)
    (tmp_path / "converted" / "model.safetensors").unlink()  # nothing says that the weights were converted
    compared = run(compare_configs_.command, str(tmp_path / "source"), str(tmp_path / "converted"))
    assert compared.exit_code == 1


def test_longrope_and_alibi(tmp_path):
    short, long = [1.0] * 64, [1.0 + n for n in range(64)]
    tensors = {"rope_factors_long.weight": long, "rope_factors_short.weight": short}
    path = gguf(tmp_path / "p.gguf", keys("phi3", **{"rope.scaling.original_context_length": 4096}), tensors)
    rotation = read_config(path).layers[0].uses[0].rotation
    given = dict(rotation.parameters)
    assert (rotation.kind, given["long_factor"], given["short_factor"]) == ("longrope", tuple(long), tuple(short))
    assert (given["trained_length"], given["factor"]) == (4096, 32.0)
    path = gguf(tmp_path / "b.gguf", keys("bloom", **{"rope.freq_base": None, "rope.dimension_count": None}))
    assert read_config(path).layers[0].uses[0].name == "ALiBi"


# Bad files: one line, at once, in little memory.


def start(version: int = 3, tensors: int = 0, n_keys: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, n_keys)


def nested(depth: int) -> bytes:
    """An array in an array in an array …: each holds the next."""
    return struct.pack("<I", ARRAY) + struct.pack("<IQ", ARRAY, 1) * depth + struct.pack("<IQ", U32, 0)


BAD = {
    "empty": (b"", "not a GGUF file: it is empty; download or save it again"),
    "wrong magic": (b"GGML" + bytes(60), "not a GGUF file: begins with b'GGML'"),
    "another version": (start(1) + bytes(40), "GGUF version 1"),
    "big endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 2**40) + bytes(40), "1,099,511,627,776 keys in 40 bytes"),
    "huge count of keys": (start(n_keys=2**62) + bytes(40), "4,611,686,018,427,387,904 keys in 40 bytes"),
    "huge count of tensors": (start(tensors=2**60) + bytes(40), "1,152,921,504,606,846,976 tensors in 40 bytes"),
    "huge string": (start(n_keys=1) + struct.pack("<Q", 2**61) + bytes(40), "bytes of a string in 40 bytes"),
    "huge array": (start(n_keys=1) + string("a") + struct.pack("<IIQ", ARRAY, F32, 2**60), "values of an array in 0 bytes"),
    "cyclic": (start(n_keys=1) + string("a") + nested(1000) + bytes(20), "arrays nested deeper than 4 levels"),
    "type": (start(n_keys=1) + string("a") + struct.pack("<I", 77) + bytes(20), "a value of type 77"),
    "twice": (start(n_keys=2) + 2 * (string("a") + value(1)) + bytes(20), "the key 'a' occurs twice"),
    "truncated": (start(n_keys=3) + string("a") + value(1) + bytes(6), "cut short"),
    "zeros": (
        start(n_keys=1) + string("a") + struct.pack("<IIQ", ARRAY, STRING, 2**20) + bytes(8 * 2**20),
        "more than 1,000,000 values",
    ),
    "no architecture": (start(n_keys=1) + string("a") + value(1), "general.architecture: missing"),
    "dimensions": (
        start(tensors=1) + string("rope_freqs.weight") + struct.pack("<I", 2**31) + bytes(40),
        "2,147,483,648 dimensions",
    ),
    "factors": (
        start(tensors=1) + string("rope_freqs.weight") + struct.pack("<IQIQ", 1, 64, 0, 2**60),
        "cut short: its tensors end at byte 1,152,921,504,606,847,328 (rope_freqs.weight), the file has 73 bytes",
    ),
}


@pytest.mark.parametrize("case", one_in(6, BAD))
def test_a_bad_file_gets_one_clear_line_in_bounded_time_and_memory(tmp_path, case):
    content, told = BAD[case]
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(ConfigError):  # what is imported for it is not counted
        read_config(path)
    tracemalloc.start()
    begin = time.process_time()
    with pytest.raises(ConfigError) as refused:
        read_config(path)
    assert time.process_time() - begin < 30
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()
    assert "\n" not in str(refused.value)
    assert told in str(refused.value)


def test_a_file_cut_anywhere_is_one_line(tmp_path):
    short = {name: one for name, one in keys().items() if "token" not in name}
    whole = gguf(tmp_path / "m.gguf", short, {"rope_freqs.weight": llama3_factors()}).read_bytes()
    path = tmp_path / "cut.gguf"
    for cut in range(0, len(whole) - 1, 23):
        path.write_bytes(whole[:cut])
        with pytest.raises(ConfigError) as refused:
            read_config(path)
        assert "\n" not in str(refused.value)


def weights(path: Path, kind: int, shape: tuple[int, ...], data: int, offset: int = 0) -> Path:
    """A model with one tensor of that type, whose data take `data` bytes in the file."""
    short = {name: one for name, one in keys().items() if "token" not in name}
    content = start(tensors=1, n_keys=len(short)) + b"".join(string(name) + value(one) for name, one in short.items())
    content += string("blk.0.attn_q.weight") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
    path.write_bytes(content + bytes(-len(content) % 32) + bytes(data))
    return path


# Bytes of a tensor, by ggml's structures: half-precision scales and packed numbers of each block.
CUT = {
    "fp32": (0, (64, 3), 4 * 64 * 3),
    "fp16": (1, (64, 3), 2 * 64 * 3),
    "bf16": (30, (64, 3), 2 * 64 * 3),
    "fp64": (28, (5,), 8 * 5),
    "Q4_0: a scale and 32 numbers of 4 bits": (2, (64, 3), 6 * (2 + 16)),
    "Q8_0: a scale and 32 numbers of 8 bits": (8, (64, 3), 6 * (2 + 32)),
    "Q4_K: 2 scales, 12 bytes of 6 bits, 256 of 4 bits": (12, (512, 2), 4 * (2 + 2 + 12 + 128)),
    "Q6_K: 256 of 4 and of 2 bits, 16 of 8, a scale": (14, (256,), 128 + 64 + 16 + 2),
    "MXFP4: an exponent and 32 numbers of 4 bits": (39, (32,), 1 + 16),
}


@pytest.mark.parametrize("case", CUT)
def test_a_file_without_all_of_its_tensors_is_cut_short(tmp_path, case):
    kind, shape, size = CUT[case]
    assert read_config(weights(tmp_path / "whole.gguf", kind, shape, size)).trained_length == 131072
    for offset, there in ((0, size - 1), (0, 0), (32, size), (2**40, size)):
        path = weights(tmp_path / "cut.gguf", kind, shape, there, offset)
        has = path.stat().st_size
        shown = run(inspect_.command, str(path))
        assert shown.exit_code == 1
        end = has - there + offset + size
        said = f"cut short: its tensors end at byte {end:,} (blk.0.attn_q.weight), the file has {has:,} bytes"
        with pytest.raises(ConfigError) as refused:
            read_config(path)
        assert said in str(refused.value)
        assert str(refused.value).startswith(f"{path}: ")


def test_tensors_of_a_type_that_is_newer_must_begin_within_the_file(tmp_path):
    assert read_config(weights(tmp_path / "m.gguf", 99, (64,), 8)).trained_length == 131072
    with pytest.raises(ConfigError, match="cut short"):
        read_config(weights(tmp_path / "m.gguf", 99, (64,), 8, offset=64))


# Several files: one that cannot be read does not end the run.


def test_the_other_files_are_shown_beside_one_that_cannot_be_read(tmp_path, folder):
    bad, absent = tmp_path / "bad.gguf", tmp_path / "absent.json"
    bad.write_bytes(start(n_keys=9))
    done = in_process.posenc("inspect", bad, folder, absent)
    assert done.returncode == 1
    assert [line.startswith("posenc: ") for line in done.stderr.splitlines()] == [True, True]
    assert "bad.gguf: cut short" in done.stderr
    assert "absent.json: no such file" in done.stderr
    assert "131,072" in done.stdout
    listed = in_process.posenc("inspect", bad, folder, absent, "--json")
    assert listed.returncode == 1
    first, second, third = json.loads(listed.stdout)
    assert (first["config"], third["config"], second["family"]) == (str(bad), str(absent), "llama")
    assert "cut short" in first["error"]
    assert in_process.posenc("inspect", folder, folder).returncode == 0


def test_nothing_but_files_that_cannot_be_read(tmp_path):
    done = in_process.posenc("inspect", tmp_path / "a.json", tmp_path / "b.json")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 2)


def test_both_files_of_a_comparison_are_named(tmp_path, folder):
    (bad := tmp_path / "bad.gguf").write_bytes(start(n_keys=9))
    done = in_process.posenc("compare-configs", bad, tmp_path / "absent.json")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 2)
    one = in_process.posenc("compare-configs", folder, bad)
    assert (one.returncode, one.stdout, len(one.stderr.splitlines())) == (1, "", 1)


# What llama.cpp's code computes (sources of llama-cpp-python 0.3.36, vendor/llama.cpp/src).


def mscale(factor: float, m: float) -> float:
    """llama-context.cpp, get_mscale."""
    return 1.0 if factor <= 1 else 0.1 * m * math.log(factor) + 1.0


YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 40.0, "rope.scaling.original_context_length": 4096}
LATENT = {"rope.dimension_count": 64, "attention.key_length": 192, "attention.value_length": 128}


@pytest.mark.parametrize(
    ("architecture", "more", "cos_sin", "softmax"),
    [
        # models/deepseek2.cpp: the multiplier over 0.1; cos and sin 1; softmax mscale(w)². V3 and R1: w = 1, V2: .707
        ("deepseek2", {**LATENT, "rope.scaling.yarn_log_multiplier": 0.1}, 1.0, mscale(40, 1.0) ** 2),
        ("deepseek2", {**LATENT, "rope.scaling.yarn_log_multiplier": 0.0707}, 1.0, mscale(40, 0.707) ** 2),
        # without it: both, since the factor of cos and sin is in the softmax too
        ("deepseek2", LATENT, mscale(40, 1.0), mscale(40, 1.0) ** 2),
        # models/mistral3.cpp: the multiplier as it is, no softmax scale
        ("mistral3", {"rope.scaling.yarn_log_multiplier": 1.0}, 1.0, 1.0),
        ("mistral3", {"rope.scaling.yarn_log_multiplier": 0.5}, mscale(40, 1.0) / mscale(40, 0.5), 1.0),
        ("llama", {}, mscale(40, 1.0), 1.0),
        ("llama", {"rope.scaling.attn_factor": 1.5}, 1.5 * mscale(40, 1.0), 1.0),
    ],
)
def test_yarn_s_magnitudes_are_those_of_llama_cpp(tmp_path, architecture, more, cos_sin, softmax):
    spec = read_config(gguf(tmp_path / "m.gguf", keys(architecture, **YARN, **more)))
    made = spec.layers[0].uses[0].rotation.frequencies().at_length(4096)
    assert made.cos_sin_scale == pytest.approx(cos_sin, rel=1e-6)
    assert made.softmax_scale == pytest.approx(softmax, rel=1e-6)


def test_only_two_architectures_read_yarn_s_betas(tmp_path):
    betas = {"rope.scaling.yarn_beta_fast": 16.0, "rope.scaling.yarn_beta_slow": 1.0}
    found = {
        name: read_config(gguf(tmp_path / f"{name}.gguf", keys(name, **YARN, **betas))) for name in ("llama", "mistral3")
    }
    fast = {name: dict(spec.layers[0].uses[0].rotation.parameters).get("beta_fast") for name, spec in found.items()}
    assert fast == {"llama": None, "mistral3": 16.0}
    assert [one.key for one in found["llama"].remarks] == ["llama.rope.scaling.yarn_beta_fast"]


@pytest.mark.parametrize(
    ("architecture", "more", "layers", "temperature"),
    [
        # models/mistral3.cpp:14: the step is the original length, offset 0
        ("mistral3", {**YARN, "attention.temperature_scale": 0.1}, [0, 1, 2, 3], (0.1, 4096, 0)),
        # models/deepseek2.cpp:41 (Mistral Large)
        ("deepseek2", {**LATENT, "attention.temperature_scale": 0.1, "attention.temperature_length": 8192}, [0, 1, 2, 3],
         (0.1, 8192, 0)),
        # models/llama4.cpp:13-17: constants, in the layers without rotation
        ("llama4", {"attention.chunk_size": 4096}, [3], (0.1, 8192, 1)),
        ("llama", {"attention.temperature_scale": 0.1}, [], None),
    ],
)  # fmt: skip
def test_temperatures_are_those_of_llama_cpp(tmp_path, architecture, more, layers, temperature):
    spec = read_config(gguf(tmp_path / "m.gguf", keys(architecture, **more)))
    warm = {n: use for n, layer in enumerate(spec.layers) for use in layer.uses if "Temperature" in use.name}
    assert list(warm) == layers
    for use in warm.values():
        assert tuple(dict(use.arguments).values()) == temperature
    scale, length, offset = temperature or (0.0, 1, 0)
    for n in layers:  # llama-graph.cpp:157
        made = next(use for use in spec.layers[n].uses if "Temperature" in use.name).build()
        p = torch.tensor([[0.0, length - 1.0, float(length), 3.0 * length]], dtype=torch.float64)
        expected = torch.log(torch.floor((p + offset) / length) + 1) * scale + 1
        assert torch.allclose(made.of(p), expected)
    if architecture == "llama4":
        assert [layer.chunk for layer in spec.layers] == [8192, 8192, 8192, None]


@pytest.mark.parametrize("architecture", ["minicpm3", "plm"])
def test_latent_attention_turns_the_last_channels(tmp_path, architecture):
    """models/minicpm3.cpp and plm.cpp: ggml_rope_set_offset(q, n_embd_head_qk_nope)."""
    more = {"rope.dimension_count": 32, "attention.key_length": 96}
    spec = read_config(gguf(tmp_path / "m.gguf", keys(architecture, **more)))
    made = spec.encoding()
    x = torch.ones(1, 1, 2, 96)
    turned = made.rotate(x, Positions.arange(1, 2), "query") != x
    assert torch.nonzero(turned[0, 0, 1]).flatten().min() >= 64


@pytest.mark.parametrize("there", ["short", "long"])
def test_a_set_of_factors_that_the_file_lacks_is_plain(tmp_path, there):
    """llama-model.cpp:2337, get_rope_factors: the missing tensor is null, which ggml_rope_ext takes for no factors."""
    tensors = {f"rope_factors_{there}.weight": [2.0] * 64}
    path = gguf(tmp_path / "p.gguf", keys("phi3", **{"rope.scaling.original_context_length": 4096}), tensors)
    made = read_config(path).layers[0].uses[0].rotation.frequencies()
    plain = [500000.0 ** (-2 * i / 128) for i in range(64)]
    for side, length in (("short", 4096), ("long", 4097)):
        factor = 2.0 if side == there else 1.0
        assert list(made.at_length(length)) == pytest.approx([one / factor for one in plain], rel=1e-12)
        assert made.at_length(length).cos_sin_scale == 1.0  # llama-context.cpp:214: rope_attn_factor, 1 where it is missing


def test_gemma3_s_length_is_after_its_linear_scaling(tmp_path):
    more = {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0, "attention.sliding_window": 1024}
    spec = read_config(gguf(tmp_path / "m.gguf", keys("gemma3", **more, block_count=34)))
    assert limit(spec).usable == 131072
    wide = [layer for layer in spec.layers if layer.window is None]
    near = [layer for layer in spec.layers if layer.window == 1024]
    assert (len(wide), len(near)) == (5, 29)
    assert wide[0].uses[0].rotation.frequencies().at_length(1)[0] == 1 / 8
    assert near[0].uses[0].rotation.frequencies().at_length(1)[0] == 1.0


HOSTILE = [0, 2**31, [0] * 3, [2**31] * 4, "x", -1.0, float("nan"), float("inf"), 1e38, True]


def test_any_value_of_any_key_is_read_or_refused_in_one_line(tmp_path):
    every = {**keys("deepseek2", **YARN, **LATENT), **{f"deepseek2.{name}": 1.0 for name in (
        "rope.scaling.yarn_log_multiplier", "rope.scaling.attn_factor", "rope.scaling.yarn_beta_fast",
        "attention.temperature_scale", "attention.sliding_window", "rope.dimension_sections")}}  # fmt: skip
    every = {name: one for name, one in every.items() if "token" not in name} | {"split.count": 1, "general.alignment": 32}
    for name in every:
        for bad in HOSTILE:
            path = gguf(tmp_path / "m.gguf", every | {name: bad})
            try:
                spec = read_config(path)
                for use in spec.layers[0].uses if spec.layers else ():
                    use.build()
            except ConfigError as error:
                assert len(str(error).splitlines()) == 1  # noqa: PT017


@pytest.mark.parametrize("given", [["llama"], ["llama"] * 5000, 5, True, 1.5])
def test_an_architecture_that_is_no_string_is_said_to_be_none(tmp_path, given):
    path = gguf(tmp_path / "m.gguf", keys() | {"general.architecture": given})
    with pytest.raises(ConfigError, match=r"general\.architecture: expected a string such as 'llama', got "):
        read_config(path)


def test_every_error_names_its_file(tmp_path):
    """Also those of a key and of a tensor; of several files one line each."""
    without = {name: one for name, one in keys().items() if name != "general.architecture"}
    bad = [
        gguf(tmp_path / "factor.gguf", keys(), {"rope_freqs.weight": [0.0] * 64}),
        gguf(tmp_path / "long.gguf", keys(), {"rope_factors_long.weight": [math.nan] * 64}),
        gguf(tmp_path / "base.gguf", keys() | {"llama.rope.freq_base": "x"}),
        gguf(tmp_path / "none.gguf", without),
        gguf(tmp_path / "clip.gguf", keys("clip")),
        gguf(tmp_path / "part.gguf", keys() | {"split.no": 2, "split.count": 5}),
        tmp_path / "config.json",
    ]
    bad[-1].write_text('{"model_type": "llama", "hidden_size": "x"}')
    for path in bad:
        with pytest.raises(ConfigError, match=f"^{re.escape(str(path))}: "):
            read_config(path)
    said = in_process.posenc("inspect", *bad)
    assert [line.partition(": ")[2].partition(": ")[0] for line in said.stderr.splitlines()] == [str(path) for path in bad]
