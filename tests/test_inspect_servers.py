"""Commands of posenc inspect --extend-to, held against the programs that receive them.

Here each rule is written out with its file in the release that servers.json names; the acceptance tests run the releases'
own functions, which pip downloads, on the commands for every family.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import gguf_logits
import receivers
from posenc.configs import read_config, spec_of
from posenc.configs.report.extension import Extension, extend, extensible
from posenc.configs.report.extension_methods import METHODS
from posenc.configs.report.runtimes import AS_KEYS, runtimes, servers, serving

N = 65536
SIZES = {
    "hidden_size": 1024,
    "num_attention_heads": 8,
    "head_dim": 128,
    "num_hidden_layers": 8,
    "max_position_embeddings": 8192,
}
KINDS = {"layer_types": ["sliding_attention", "full_attention"] * 4, "sliding_window": 64}
LLAMA3 = {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 4096}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 4096, "beta_fast": 24.0}
CONFIGS = {
    "llama": {"model_type": "llama", "rope_theta": 5e5},
    "llama, linear": {"model_type": "llama", "rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2.0}},
    "llama, llama3": {"model_type": "llama", "rope_theta": 5e5, "rope_scaling": LLAMA3},
    "llama, yarn": {"model_type": "llama", "rope_theta": 5e5, "rope_scaling": YARN},
    "qwen2": {"model_type": "qwen2", "rope_theta": 1e6, "rope_scaling": None},
    "gemma2": {"model_type": "gemma2", "rope_theta": 1e4},
    "mixtral": {"model_type": "mixtral", "rope_theta": 1e6},
    "starcoder2": {"model_type": "starcoder2", "rope_theta": 1e5},
    "phi": {"model_type": "phi", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
    "stablelm": {"model_type": "stablelm", "rope_theta": 1e4, "partial_rotary_factor": 0.25},
    "gemma3": {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "rope_theta": 1e6,
                                                       "rope_local_base_freq": 1e4, **KINDS, **SIZES}},
    "cohere": {"model_type": "cohere", "rope_theta": 1e4, "model_max_length": 8192},
    "gpt_neox": {"model_type": "gpt_neox", "rotary_emb_base": 1e4, "rotary_pct": 0.25},
    "minimax_m2": {"model_type": "minimax_m2", "rope_theta": 5e6, "rotary_dim": 64},
    "llama, a fraction that it does not read": {"model_type": "llama", "rope_theta": 1e6, "partial_rotary_factor": 0.5},
    "llama, the same inside": {"model_type": "llama", "rope_parameters": {"rope_type": "default", "rope_theta": 1e6,
                                                                          "partial_rotary_factor": 0.5}},
}  # fmt: skip


def of(name: str) -> dict[str, Any]:
    return CONFIGS[name] if "text_config" in CONFIGS[name] else SIZES | CONFIGS[name]


def made(config: dict[str, Any], method: str, times: int = 0) -> Extension | None:
    """The extension to N positions, or to `times` the length of the file."""
    path, part = extensible(read_config(config, defaults=True))
    try:
        (found,) = extend(config, part, times * (part.trained_length or 0) or N, (method,), path)
    except ValueError:
        return None  # a model that was trained with linear scaling
    return found


def commands(extension: Extension) -> dict[str, list[str]]:
    return {one.name: shlex.split(one.command) for one in runtimes(extension) if one.command}


def after(words: list[str], option: str, default: str | None = None) -> str:
    return words[words.index(option) + 1] if option in words else str(default)


EVERY = [(name, method) for name in CONFIGS for method in METHODS]


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_no_server_refuses_the_length(name, method):
    """vLLM 0.33.0, config/model.py:2545 _get_and_verify_max_len, model_arch_config_convertor.py:95.
    SGLang 0.5.23, configs/model_config.py:1291 _derive_context_length, hf_transformers/common.py:677 get_context_length.
    """
    config = of(name)
    extension = made(config, method)
    given = commands(extension) if extension else {}
    for server, option, length in (
        ("vLLM", "--hf-overrides", "--max-model-len"),
        ("SGLang", "--json-model-override-args", "--context-length"),
    ):
        if server not in given:
            continue
        keys = config | json.loads(after(given[server], option))
        keys = keys.get("text_config", keys)
        said = [
            keys[key] for key in ("max_position_embeddings", "max_seq_len", "model_max_length", "seq_length") if key in keys
        ]
        assert min(said) >= int(after(given[server], length)) == N
        assert "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN" not in " ".join(given[server])


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_vllm_turns_as_many_channels_as_transformers(name, method):
    """vLLM 0.33.0, rotary_embedding/__init__.py:69: int(head_size · partial_rotary_factor), whatever the rope_type."""
    extension = made(of(name), method)
    given = commands(extension).get("vLLM") if extension else None
    if given is None:
        return
    keys = json.loads(after(given, "--hf-overrides"))
    settings = keys.get("text_config", keys)["rope_parameters"]
    settings = settings.get("full_attention", settings)
    assert int(128 * settings.get("partial_rotary_factor", 1.0)) == 2 * len(extension.after)


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_llama_cpp_computes_the_frequencies_of_the_extension(name, method):
    """llama-cpp-python 0.3.36: ggml-cpu/ops.cpp rope_yarn and ggml.c ggml_rope_yarn_corr_dims, llama-context.cpp:134-214,
    server-context.cpp:4015 (a request is cut at n_ctx_train), llama-context.cpp:3891 (YaRN sets n_ctx_train).
    """
    extension = made(of(name), method)
    given = commands(extension).get("llama.cpp") if extension else None
    if given is None:
        return
    for name, key in AS_KEYS.items():  # Gemma 2, whose windowed layers read the file's keys alone
        given = shlex.split(shlex.join(given).replace(f"--override-kv gemma2.{key}", f"{name} "))
    key, _, value = after(given, "--override-kv").partition("=")
    assert key == f"{servers()['llama.cpp']['architectures'][extension.family]}.context_length"
    factor, kind = float(after(given, "--rope-scale", "1")), after(given, "--rope-scaling")
    trained = int(value.removeprefix("int:"))
    if kind == "yarn":
        trained = int(int(after(given, "--yarn-orig-ctx")) / (1 / factor))
    assert min(int(after(given, "-c")), trained) == N
    width, base = extension.rotation.width, float(after(given, "--rope-freq-base", str(extension.rotation.base)))
    plain = [base ** (-2 * i / width) for i in range(width // 2)]
    expected, scale = [one / factor for one in plain], 1.0
    if kind == "yarn":
        length = int(after(given, "--yarn-orig-ctx"))
        turns = [float(after(given, f"--yarn-beta-{side}", default)) for side, default in (("fast", "32"), ("slow", "1"))]
        low, high = (width * math.log(length / (one * 2 * math.pi)) / (2 * math.log(base)) for one in turns)
        low, high = max(0, math.floor(low)), min(width - 1, math.ceil(high))
        keep = [1 - min(1, max(0, (i - low) / max(0.001, high - low))) for i in range(width // 2)]
        expected = [(1 - k) * one / factor + k * one for k, one in zip(keep, plain, strict=True)]
        scale = 1 + 0.1 * math.log(factor)
    assert list(extension.after) == pytest.approx(expected, rel=1e-6)
    assert extension.after.cos_sin_scale == pytest.approx(scale, rel=1e-6)


def test_layers_with_a_window_are_told_by_the_keys_of_the_file():
    """llama-model.cpp, get_rope_freq_base: those of Gemma 2 keep the file's base and scale, whatever the options say."""
    found = {method: " ".join(commands(made(of("gemma2"), method))["llama.cpp"]) for method in ("yarn", "ntk", "linear")}
    assert not [one for one in found.values() for option in AS_KEYS if option in one]
    for key in ("type=str:yarn", "factor=float:8", "original_context_length=int:8192"):
        assert f"--override-kv gemma2.rope.scaling.{key}" in found["yarn"]
    assert "--override-kv gemma2.rope.freq_base=float:" in found["ntk"]
    assert "--rope-scaling yarn" in " ".join(commands(made(of("gemma3"), "yarn"))["llama.cpp"])  # one base for each kind


@pytest.mark.parametrize("family", ["gemma2", "mixtral", "starcoder2", "phi", "stablelm"])
def test_sglang_gets_no_scaling_for_families_whose_code_does_not_hand_it_on(family):
    config = of(family)
    assert "SGLang" not in commands(made(config, "yarn"))
    (said,) = [one for one in runtimes(made(config, "yarn")) if one.name == "SGLang"]
    assert said.ignores.en == f"every scaling of {family}; it reads the base alone, as ntk sets it"
    given = json.loads(after(commands(made(config, "ntk"))["SGLang"], "--json-model-override-args"))
    assert given["rope_parameters"]["rope_theta"] > config["rope_theta"]  # never null


@pytest.mark.parametrize("method", METHODS)
def test_with_dual_chunks_servers_read_the_base_alone(method):
    """vLLM 0.33.0, rotary_embedding/__init__.py:87; SGLang 0.5.23, factory.py:172: chunks come first."""
    chunks = {"chunk_size": 4096, "local_size": 512, "original_max_position_embeddings": 8192}
    found = commands(made(of("qwen2") | {"dual_chunk_attention_config": chunks}, method))
    assert ("vLLM" in found, "SGLang" in found) == ((method == "ntk",) * 2)
    assert "vLLM" in commands(made(of("qwen2"), method))


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen2_5_vl", "paddleocr_vl"])
def test_a_published_file_with_its_text_beside_the_images_keeps_it_there(family):
    """transformers itself reads the fragment, and moves sections and scaling to the text model."""
    from transformers import AutoConfig

    sections = {"rope_scaling": {"type": "mrope", "mrope_section": [8, 28, 28]}, "rope_theta": 1e5}
    config = SIZES | sections | {"model_type": family, "vision_config": {"depth": 2}}
    extension = made(config, "yarn", 4)
    text = AutoConfig.for_model(**copy.deepcopy(config | extension.fragment)).text_config
    assert (text.hidden_size, text.max_position_embeddings) == (1024, 32768)
    assert text.rope_parameters == extension.standard["text_config"]["rope_parameters"]
    assert (text.rope_parameters["rope_type"], text.rope_parameters["mrope_section"]) == ("yarn", [8, 28, 28])


@pytest.mark.parametrize("method", ["linear", "llama3", "longrope"])
def test_servers_make_the_tables_of_m_rope_with_few_types(method):
    """get_rope of both looks for mrope_section in the branches of `default` and `yarn` alone."""
    sections = {"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "rope_theta": 1e6}
    extension = made(SIZES | sections | {"model_type": "qwen2_vl"}, method, 4)
    found = {one.name: one for one in runtimes(extension)}
    for program in ("vLLM", "SGLang"):
        assert (found[program].command, found[program].ignores.en) == ("", f"mrope_section, with rope_type {method}")


def test_a_key_that_a_server_does_not_read_is_named():
    """SGLang reads attn_factor, vLLM attention_factor: of the settings of YaRN, written by hand, one is left."""
    read = {name: set(servers()[name]["keys"]["yarn"]) for name in ("vLLM", "SGLang")}
    assert ("attention_factor" in read["vLLM"], "attention_factor" in read["SGLang"]) == (True, False)
    assert {"factor", "original_max_position_embeddings", "beta_fast", "truncate"} <= read["vLLM"] & read["SGLang"]


def test_factors_of_a_gguf_file_stay_so_no_option_replaces_them():
    for method in ("yarn", "ntk", "linear"):
        assert "llama.cpp" not in commands(made(of("llama, llama3"), method))


def test_a_family_that_was_not_measured_gets_no_command():
    extension = made({**SIZES, "model_type": "helium", "rope_theta": 1e4, "head_dim": 128}, "yarn")
    found = {one.name: one for one in runtimes(extension)}
    assert found["vLLM"].command == found["SGLang"].command == ""
    assert found["vLLM"].ignores.en.startswith("not known for helium")
    assert all(one.version and one.date for one in found.values())


OWN_CODE = {
    "a type of its own": {"model_type": "Yi"},
    "a type that is not known": {"model_type": "new_one", "architectures": ["LlamaForCausalLM"],
                                 "auto_map": {"AutoModelForCausalLM": "modeling_new_one.NewOneForCausalLM"}},
    "jina-embeddings-v3": {"model_type": "xlm-roberta", "position_embedding_type": "rotary", "rotary_emb_base": 2e4},
    "nomic-embed": {"model_type": "nomic_bert", "rotary_emb_base": 1e4, "n_embd": 1024, "n_head": 8, "n_layer": 8,
                    "n_positions": 8192},
    "around a family of transformers": {"model_type": "internvl_chat", "llm_config": SIZES | {"model_type": "qwen2"}},
}  # fmt: skip


@pytest.mark.parametrize("name", OWN_CODE)
def test_code_that_a_model_brings_gets_no_command_of_a_program_that_runs_it(name):
    """Whether it reads rope_parameters is not known. A GGUF file is made without it."""
    extension = made(SIZES | {"rope_theta": 1e4} | OWN_CODE[name], "yarn", 4)
    assert extension.fragment
    found = {one.name: one for one in runtimes(extension)}
    for program in ("transformers", "vLLM", "SGLang"):
        assert found[program].command == ""
        assert found[program].ignores.en.startswith("not known: the model brings its own code")


GEMMA_4 = SIZES | {"model_type": "gemma4_text", "global_head_dim": 512, "num_hidden_layers": 6}


@pytest.mark.parametrize("method", ["yarn", "llama3", "longrope"])
def test_pairs_that_stand_still_go_on_standing(method):
    """Gemma 4's full layers turn 64 of 256 pairs; these methods would set the rest turning."""
    path, part = extensible(read_config(GEMMA_4))
    with pytest.raises(ValueError, match=f"--method {method}: gemma4_text's code does not support it: .* some are zero"):
        extend(GEMMA_4, part, N, (method,), path)
    (found,) = [one for one in extend(GEMMA_4, part, N, METHODS, path) if one.method == method]
    assert not found.fragment
    assert "some are zero, and" in found.note.en
    assert f"其中一些为零，而 {method}" in found.note.zh


@pytest.mark.parametrize("method", ["ntk", "linear"])
def test_gemma_4_is_extended_within_its_proportional_frequencies(method):
    """What transformers' own module computes with the printed settings: linear slows all 64 pairs by the factor, ntk the
    slowest one alone, and 192 pairs stand still.
    """
    from transformers import AutoConfig
    from transformers.models.gemma4.modeling_gemma4 import Gemma4TextRotaryEmbedding

    def computed(config: dict[str, Any]) -> torch.Tensor:
        return Gemma4TextRotaryEmbedding(AutoConfig.for_model(**copy.deepcopy(config))).full_attention_inv_freq.double()

    extension = made(GEMMA_4, method)
    for fragment in (extension.fragment, extension.standard):
        before, after = computed(GEMMA_4), computed(GEMMA_4 | fragment)
        assert (after != 0).tolist() == [True] * 64 + [False] * 192
        assert after.tolist() == pytest.approx(list(extension.after), rel=1e-6)
        assert (before / after)[63].item() == pytest.approx(8, rel=1e-5)
        assert (before / after)[0].item() == pytest.approx({"ntk": 1, "linear": 8}[method], rel=1e-5)
    found = commands(extension)
    assert ("vLLM" in found, "SGLang" in found) == ((method == "ntk",) * 2)  # they do not read the factor
    assert after_of(found["llama.cpp"]) == {"ntk": ("none", "1"), "linear": ("linear", "8")}[method]


def after_of(words: list[str]) -> tuple[str, str]:
    return after(words, "--rope-scaling"), after(words, "--rope-scale", "1")


# transformers itself.

FEW = {"num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 4, "max_position_embeddings": 8192}
PLAIN = {"rope_type": "default", "rope_theta": 1e6}
FILES: dict[str, dict[str, Any]] = {  # what a small file may say: all else are the class's defaults
    "sizes alone": {"hidden_size": 512, **FEW, "rope_theta": 1e6},
    "a fraction": {"hidden_size": 512, **FEW, "head_dim": 64, "rope_theta": 1e6, "partial_rotary_factor": 0.5},
    "a fraction inside": {"hidden_size": 512, **FEW, "head_dim": 64,
                          "rope_parameters": PLAIN | {"partial_rotary_factor": 0.5}},
    "channels": {"hidden_size": 512, **FEW, "head_dim": 64, "rope_theta": 1e6, "rotary_dim": 32},
    "yarn": {"hidden_size": 512, **FEW, "rope_theta": 1e6, "rope_scaling": YARN},
}  # fmt: skip
SAMPLE = (
    "deepseek_v3", "dots3_note_text", "gemma3_text", "gpt_neox", "llama", "longcat_flash", "mistral4", "phi", "qwen2_vl",
)  # fmt: skip
OTHERWISE = {  # files that transformers reads, and posenc reads otherwise
    "glm4_moe_lite, a fraction": "the model fails, as posenc says: 16 pairs of frequencies for 32 pairs of channels",
    "glm4_moe_lite, a fraction inside": "the same",
}


def old_spelling(config: dict[str, Any]) -> dict[str, Any]:
    """The same file with rope_theta and the fraction beside each other, where its settings are plain."""
    spelled = {key: old_spelling(value) if isinstance(value, dict) else value for key, value in config.items()}
    settings = spelled.get("rope_parameters") or {}
    if "rope_theta" in settings:
        del spelled["rope_parameters"]
        spelled |= {key: settings[key] for key in ("rope_theta", "partial_rotary_factor") if key in settings}
    return spelled


def files(family: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Files of a family, by name."""
    from transformers import CONFIG_MAPPING

    for name, keys in FILES.items():
        yield f"{family}, {name}", {"model_type": family} | keys
    with contextlib.suppress(Exception):  # some classes have no defaults that fit each other
        default = json.loads(CONFIG_MAPPING[family]().to_json_string(use_diff=False))
        yield family, default
        yield f"{family}, old", old_spelling(default)


def edited(file: dict[str, Any], path: str, fragment: dict[str, Any]) -> dict[str, Any]:
    """The file with the keys of a fragment in the section that it names."""
    name, _, rest = path.partition(".")
    if name not in fragment:
        return file | fragment
    return file | {name: edited(file[name], rest, fragment[name])}


def same(table: receivers.Table | None, expected: Any) -> bool:
    """As many pairs, as fast; sections may have them in another order."""
    if table is None or len(table[0]) != len(expected) or table[1] != pytest.approx(expected.cos_sin_scale, rel=1e-6):
        return False
    return sorted(table[0]) == pytest.approx(sorted(expected), rel=1e-5, abs=1e-12)


def taken(name: str, file: dict[str, Any]) -> tuple[int, list[tuple[str, ...]]]:
    """How many fragments and commands transformers took as they are meant, and what it made of the others.

    Each is compared with the same module of the file alone, which has the frequencies that posenc reads.
    """
    try:
        path = extensible(read_config(copy.deepcopy(file)))[0]
    except ValueError:
        return 0, []  # nothing turns
    try:
        alone = receivers.tables(receivers.read(file, path, {}), 1)
    except Exception:
        return 0, []  # transformers refuses the file
    held, wrong = 0, []
    for method in METHODS:
        extension = made(file, method, 4)
        if extension is None or not extension.fragment or not alone:
            continue
        modules = [module for module, table in alone.items() if same(table, extension.before)]
        if not modules and name not in OTHERWISE:
            wrong.append((name, "the file alone", str({module: len(table[0]) for module, table in alone.items()})))
        if not modules:
            break
        (printed,) = [one.command for one in runtimes(extension) if one.name == "transformers"]
        received = {"fragment": (edited(file, path, extension.fragment), {})}
        if printed:
            received["command"] = (file, receivers.arguments(printed))
        for what, (whole, changes) in received.items():
            try:
                after = receivers.tables(receivers.read(whole, path, changes), extension.length)
            except Exception as error:
                wrong.append((name, method, what, f"{type(error).__name__}: {error}"[:150]))
                continue
            if any(same(after.get(module), extension.after) for module in modules):
                held += 1
            else:
                wrong.append((name, method, what, str({module: len(table[0]) for module, table in after.items()})))
    return held, wrong


@pytest.mark.parametrize("family", SAMPLE)
def test_transformers_turns_as_many_pairs_as_in_the_file_alone(family):
    """And as fast as the extension says: its own rotary module, from the file, with the fragment, and with the command."""
    held, wrong = map(list, zip(*(taken(name, file) for name, file in files(family)), strict=True))
    assert [one for some in wrong for one in some] == []
    assert sum(held) >= 2


@pytest.mark.acceptance
def test_transformers_takes_every_command():
    from transformers import CONFIG_MAPPING

    from test_inspect_published import MODELS, whole

    cases = [case for family in sorted(CONFIG_MAPPING) for case in files(family)]
    published = [(model["name"], whole(model["config"])) for model in MODELS]
    cases += [(name, file) for name, file in published if file["model_type"] in CONFIG_MAPPING]
    held, wrong = 0, []
    for name, file in cases:
        right, others = taken(name, file)
        held, wrong = held + right, wrong + others
    print(f"\n{held} fragments and commands for transformers, {len(wrong)} wrong")
    assert wrong == []
    assert held > 5000


def test_minimax_m2_as_published_turns_its_32_pairs():
    """rotary_dim is no key of the configuration that transformers has read: the command says the fraction."""
    keys = {"hidden_size": 3072, "num_attention_heads": 48, "num_key_value_heads": 8, "num_hidden_layers": 62,
            "head_dim": 128, "rotary_dim": 64, "rope_theta": 5000000, "max_position_embeddings": 196608}  # fmt: skip
    file = {"model_type": "minimax_m2", **keys}
    for method in METHODS:
        extension = made(file, method, 2)
        assert extension.standard["rope_parameters"]["partial_rotary_factor"] == 0.5
        assert [len(table[0]) for table in receivers.tables(receivers.read(file, "", extension.standard), 9).values()] == [
            32
        ]


def test_a_fraction_that_the_code_does_not_read_is_one_in_every_command():
    """Without scaling Llama's code ignores it; its scaled types, and vLLM always, read it."""
    inside = SIZES | {"model_type": "llama", "rope_parameters": PLAIN | {"partial_rotary_factor": 0.5}}
    beside = SIZES | {"model_type": "llama", "rope_theta": 1e6, "partial_rotary_factor": 0.5}
    for file in (inside, beside):
        for method in METHODS:
            extension = made(file, method)
            given = json.loads(after(commands(extension)["vLLM"], "--hf-overrides"))
            assert given["rope_parameters"]["partial_rotary_factor"] == 1.0
            whole = file | extension.fragment
            assert whole.get("partial_rotary_factor", 1.0) == 1.0
            settings = whole.get("rope_parameters") or whole["rope_scaling"] or {}
            assert settings.get("partial_rotary_factor", 1.0) == 1.0
            assert len(extension.before) == len(extension.after) == 64


def test_a_width_that_is_fixed_gets_no_fraction():
    """LongCat's and A.X K1's frequencies are computed for qk_rope_head_dim channels, here the class's default of 64."""
    for family in ("longcat_flash", "axk1"):
        few = {
            "num_layers" if (name, family) == ("num_hidden_layers", "longcat_flash") else name: n for name, n in FEW.items()
        }
        file = {"model_type": family, "hidden_size": 512, **few, "rope_theta": 1e6}
        for method in METHODS:
            assert "partial_rotary_factor" not in made(file, method).standard["rope_parameters"]


@pytest.mark.parametrize("name", ["sizes alone", "a fraction", "a fraction inside", "channels"])
def test_phi_3_is_told_the_trained_length_of_the_file(name):
    """Its class has one of 4096, which transformers takes before that of the settings. vLLM 0.33.0 scales cos and sin by
    the one of the settings: rotary_embedding/phi3_long_rope_scaled_rope.py:72.
    """
    file = {"model_type": "phi3", **FILES[name]}
    extension = made(file, "longrope", 4)
    given = json.loads(after(commands(extension)["vLLM"], "--hf-overrides"))
    assert given["original_max_position_embeddings"] == given["rope_parameters"]["original_max_position_embeddings"] == 8192
    expected = math.sqrt(1 + math.log(32768 / 8192) / math.log(8192))
    ((_, scale),) = receivers.tables(receivers.read(file, "", extension.standard), 32768).values()
    assert [scale, extension.after.cos_sin_scale] == pytest.approx([expected] * 2, rel=1e-6)


@pytest.mark.parametrize("server", ["vLLM", "SGLang"])
def test_longrope_for_neighbouring_pairs_is_refused(server):
    """vLLM 0.33.0 raises for them (phi3_long_rope_scaled_rope.py:38), and SGLang 0.5.23 (rope_variant.py:56)."""
    for family in ("cohere", "glm4"):
        assert family in servers()[server]["interleaved"]
        file = {"model_type": family, "rope_theta": 1e4, "num_key_value_heads": 8, **SIZES}
        assert server not in commands(made(file, "longrope", 4))
        assert commands(made(file, "linear", 4))[server]
        own = made(file, "longrope", 4).fragment | {"max_position_embeddings": 32768}
        command, why = serving(server, read_config({**file, **own}), 32768)
        assert not command
        assert "turns halves alone" in why.en
    llama = {"model_type": "llama", "rope_theta": 1e4, **SIZES}
    assert "llama" not in servers()[server]["interleaved"]
    assert commands(made(llama, "longrope", 4))[server]


@pytest.mark.parametrize("family", ["gemma4_text", "diffusion_gemma_text"])
def test_a_fraction_at_the_top_leaves_settings_of_each_kind_their_type(family):
    """vLLM 0.33.0, config/model.py:2608, reads rope_type of every object in them."""
    file = {"model_type": family, **FILES["a fraction"]}
    given = json.loads(after(commands(made(file, "ntk", 4))["vLLM"], "--hf-overrides"))
    types = {kind: settings["rope_type"] for kind, settings in given["rope_parameters"].items()}
    assert types == {"sliding_attention": "default", "full_attention": "proportional"}


@pytest.mark.parametrize(("family", "pairs"), [("mellum", {32}), ("neomme", {8, 32}), ("step3p5", {32})])
def test_a_fraction_beside_the_settings_is_not_read_by_every_class(family, pairs):
    """They were read as half of the head, 16 pairs. The numbers are those of the class's own rotary module."""
    file = {"model_type": family, **FILES["a fraction"]}
    assert {len(table[0]) for table in receivers.tables(receivers.read(file, "", {}), 8192).values()} == pairs
    spec = spec_of(file)
    assert {dict(use.arguments)["frequencies"].width // 2 for layer in spec.layers for use in layer.uses} == pairs
    assert "partial_rotary_factor" in {remark.key for remark in spec.remarks}


# The releases themselves.


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> Path:
    """vLLM, SGLang and llama-cpp-python as servers.json names them, unpacked: Python files and llama.cpp's sources."""
    folder = tmp_path_factory.mktemp("releases")
    known = servers()
    receivers.unpacked(folder, *(f"{server.lower()}=={known[server]['version']}" for server in ("vLLM", "SGLang")))
    gguf_logits.sources(folder)
    return folder


@pytest.mark.acceptance
def test_the_table_is_what_the_releases_do(releases):
    sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
    import servers as tool

    found = tool.table(releases)
    for name in ("vLLM", "SGLang", "llama.cpp"):
        assert {**found[name], "date": ""} == {**servers()[name], "date": ""}


def short(config: Any) -> Any:
    """The same with 8192 positions in every part: servers make tables of all positions."""
    if not isinstance(config, dict):
        return config
    return {key: 8192 if key == "max_position_embeddings" else short(value) for key, value in config.items()}


def every_family() -> Iterator[tuple[str, dict[str, Any]]]:
    """The files of each family of the table."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    for family in sorted(
        {one for server in ("vLLM", "SGLang") for kind in ("settings", "base") for one in servers()[server][kind]}
    ):
        if family in CONFIG_MAPPING:
            yield from ((name, short(file)) for name, file in files(family) if name not in OTHERWISE)


def received(server: str, option: str) -> Iterator[tuple[str, str, Any, Extension, dict[str, Any]]]:
    """File, method, the configuration that transformers reads, the extension, and what the command overrides."""
    from transformers import AutoConfig

    for name, config in every_family():
        for method in METHODS:
            try:
                extension = made(config, method, 4)
                AutoConfig.for_model(**copy.deepcopy(config))
            except Exception:
                continue  # nothing rotates, or the file is no model
            given = commands(extension).get(server) if extension else None
            if given:
                yield (
                    name,
                    method,
                    AutoConfig.for_model(**copy.deepcopy(config)),
                    extension,
                    json.loads(after(given, option)),
                )


def close(rotary: Any, extension: Extension) -> bool:
    """Whether a server's table at position 1 has the angles and the scale of the extension."""
    if hasattr(rotary, "long_short_cos_sin_cache"):  # two tables, one after the other
        whole, row = rotary.long_short_cos_sin_cache, rotary.original_max_position_embeddings + 1
    else:
        whole, row = rotary.cos_sin_cache, 1
    table = whole[row].double().flatten()
    cos, sin = table.chunk(2)
    expected = torch.tensor(list(extension.after), dtype=torch.float64)
    scale = torch.hypot(cos, sin)
    return len(cos) == len(expected) and bool(
        torch.allclose(torch.atan2(sin, cos), torch.atan2(expected.sin(), expected.cos()), rtol=1e-4, atol=1e-6)
        and torch.allclose(scale, torch.full_like(scale, extension.after.cos_sin_scale), rtol=1e-5)
    )


def turning(extension: Extension) -> int:
    """Rotated channels; Gemma 4's proportional frequencies have more, which stand still."""
    return min(extension.rotation.width, 2 * len(extension.after))


def wide_settings(config: Any) -> dict[str, Any]:
    found = config.get_text_config().rope_parameters
    return next(
        (found[label] for label in ("full_attention", "main", "global") if isinstance(found.get(label), dict)), found
    )


@pytest.mark.acceptance
def test_vllm_takes_every_command(releases):
    """Its own functions for overrides, for the length and for the frequencies."""
    from transformers import PreTrainedConfig
    from transformers.configuration_utils import ALLOWED_LAYER_TYPES

    root, wrong, held = releases / "vllm", [], 0
    read = receivers.functions(
        root / "transformers_utils/config.py", "iter_rope_parameters", "is_rope_parameters_nested",
        ALLOWED_LAYER_TYPES=ALLOWED_LAYER_TYPES, PreTrainedConfig=PreTrainedConfig,
    )  # fmt: skip
    model = receivers.functions(
        root / "config/model.py", "_get_and_verify_max_len", "_apply_dict_overrides", "_update_nested",
        iter_rope_parameters=read["iter_rope_parameters"], envs=SimpleNamespace(VLLM_ALLOW_LONG_MAX_MODEL_LEN=False),
    )  # fmt: skip
    derive = receivers.functions(root / "transformers_utils/model_arch_config_convertor.py", "derive_max_model_len_and_key")
    own = SimpleNamespace()
    own._update_nested = lambda *given: model["_update_nested"](own, *given)
    with receivers.package(releases, "vllm", "vllm.model_executor.layers.rotary_embedding") as rotary:
        for family, method, config, extension, given in received("vLLM", "--hf-overrides"):
            held += 1
            try:
                config.update({key: value for key, value in given.items() if not isinstance(value, dict)})
                model["_apply_dict_overrides"](
                    own, config, {key: one for key, one in given.items() if isinstance(one, dict)}
                )
                text = config.get_text_config()
                length = derive["derive_max_model_len_and_key"](SimpleNamespace(hf_text_config=text))
                model["_get_and_verify_max_len"](
                    text, SimpleNamespace(derived_max_model_len_and_key=length), None, extension.length, False, None
                )
                settings, width = wide_settings(config), extension.rotation.width
                if settings["rope_type"] != "proportional":  # whose frequencies are as wide as a head of full layers
                    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
                if not close(rotary.get_rope(width, extension.length, True, settings, torch.float32), extension):
                    wrong.append((family, method, "other frequencies"))
            except Exception as error:
                wrong.append((family, method, f"{type(error).__name__}: {error}"[:150]))

    print(f"\n{held} commands for vLLM, {len(wrong)} wrong")
    assert wrong == []
    assert held > 200


@pytest.mark.acceptance
def test_sglang_takes_every_command(releases):
    root, wrong, held = releases / "sglang/srt", [], 0
    keys = ["max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings"]
    length = receivers.functions(root / "utils/hf_transformers/common.py", "get_context_length", CONTEXT_LENGTH_KEYS=keys)
    with receivers.package(releases, "sglang", "sglang.srt.layers.rotary_embedding") as rotary:
        for family, method, config, extension, given in received("SGLang", "--json-model-override-args"):
            held += 1
            try:
                for key, value in given.items():  # utils/hf_transformers/config.py:411
                    now = getattr(config, key, None)
                    if isinstance(value, dict) and hasattr(now, "to_dict"):
                        now.update(value)
                    elif key == "rope_parameters" and isinstance(value, dict) and isinstance(now, dict):
                        setattr(config, key, {**now, **value})
                    else:
                        setattr(config, key, value)
                if length["get_context_length"](config.get_text_config()) < extension.length:
                    wrong.append((family, method, "the length is refused"))
                settings, width = wide_settings(config), turning(extension)
                scaling = settings if extension.family in servers()["SGLang"]["settings"] else None
                share = settings["partial_rotary_factor"] if settings["rope_type"] == "proportional" else 1.0
                table = rotary.get_rope(  # models/gemma4_causal.py:417 for proportional frequencies
                    width, width, extension.length, settings["rope_theta"], True, scaling, torch.float32, share
                )
                if not close(table, extension):
                    wrong.append((family, method, "other frequencies"))
            except Exception as error:
                wrong.append((family, method, f"{type(error).__name__}: {error}"[:150]))

    print(f"\n{held} commands for SGLang, {len(wrong)} wrong")
    assert wrong == []
    assert held > 150
