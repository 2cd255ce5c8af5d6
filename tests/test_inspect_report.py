"""The report of posenc inspect: verdict, layers at their reach, facts, languages, several models, commands, pictures."""

from __future__ import annotations

import io
import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from rich.console import Console
from typer.testing import CliRunner

import in_process
from posenc.configs import read_config
from posenc.configs.commands import inspect as inspect_
from posenc.configs.report.extension import extend, extensible
from posenc.configs.report.limit import limit
from posenc.configs.report.page import Page
from posenc.configs.report.report import report

LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
         "max_position_embeddings": 4096, "rope_theta": 10000.0}  # fmt: skip
GEMMA = {"model_type": "gemma3_text", "hidden_size": 2560, "num_attention_heads": 8, "head_dim": 256,
         "num_hidden_layers": 34, "rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window": 1024,
         "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "max_position_embeddings": 131072}  # fmt: skip


def inspect(*arguments: str, config: dict[str, Any] = LLAMA, width: int = 80):
    app = typer.Typer()
    app.command()(inspect_.command)
    env = {"COLUMNS": str(width), "NO_COLOR": "1", "LANG": "C", "LC_ALL": ""}
    return CliRunner().invoke(app, list(arguments or ["-"]), input=json.dumps(config), env=env)


def words(text: str) -> str:
    return " ".join(text.split())


# The verdict.


@pytest.mark.parametrize(("config", "first", "second"), [
    (LLAMA, "llama: trained on 4,096 positions", "beyond 4,096: 18 of 64 pairs in 32 layers reach angles"),
    (LLAMA | {"rope_scaling": {"type": "linear", "factor": 8.0}},
     "llama: trained on 4,096 positions, scaled to 32,768 by linear ×8 (or 4,096)", "beyond 32,768: 18 of 64 pairs"),
    (LLAMA | {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
     "llama: trained on 4,096 positions, scaled to 8,192 by dynamic NTK ×2", "beyond 4,096: all frequencies change"),
    ({"model_type": "gpt2", "n_positions": 512}, "gpt2: trained on 512 positions", "beyond 512: position 512 and later"),
    ({"model_type": "t5", "n_positions": 512},
     "t5 · decoder: trained on 512 positions",
     "longer: no length is an error: distances from 128 on share a bucket"),
    ({"model_type": "mistral", "rope_theta": 1e4, "max_position_embeddings": 32768, "sliding_window": 4096},
     "mistral: trained on 32,768 positions", "longer: no new angle: layers that rotate see at most 4,096 tokens"),
    ({"model_type": "mistral", "rope_theta": 1e4, "max_position_embeddings": 4096, "sliding_window": 8192},
     "mistral: trained on 4,096 positions", "beyond 4,096: 18 of 64 pairs in 32 layers reach angles"),
    (LLAMA | {"rope_theta": 100.0, "max_position_embeddings": 65536}, "llama: trained on 65,536 positions",
     "longer: every pair completes a turn in training"),
    ({"model_type": "mamba"}, "mamba: no attention layers of its own", ""),
])  # fmt: skip
def test_the_report_begins_with_its_verdict(config, first, second):
    lines = inspect(config=config, width=100).stdout.splitlines()
    assert lines[0] == first
    if second:
        assert lines[2].startswith("safe to serve: ")
        assert lines[3].startswith(second)
        assert lines[4].startswith("what to do: ")


def test_an_error_in_the_file_comes_before_what_to_do():
    config = LLAMA | {"rope_scaling": {"type": "linear", "factor": 2.0, "x": 1}}
    lines = inspect(config=config, width=100).stdout.splitlines()
    assert lines[4] == "first: 1 error in this file, under findings"


@pytest.mark.parametrize(
    ("config", "sizes", "safe"),
    [
        (LLAMA | {"num_key_value_heads": 8}, "32 layers, 32 heads and 8 key heads of 128 channels",
         "up to 4,096, the trained length"),
        (LLAMA, "32 layers, 32 heads of 128 channels", "up to 4,096, the trained length"),
        (LLAMA | {"rope_scaling": {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 4096}},
         "32 layers, 32 heads of 128 channels", "up to 8,192, by YaRN ×2"),
        (LLAMA | {"rope_scaling": {"type": "linear", "factor": 2.0}}, "32 layers, 32 heads of 128 channels",
         "up to 4,096; up to 8,192, by linear ×2, if the file gives the length before scaling"),
        ({"model_type": "falcon", "multi_query": True, "rope_theta": 1e4},
         "32 layers, 71 heads and 1 key head of 64 channels", "up to 2,048, the trained length"),
        ({"model_type": "chatglm", "hidden_size": 4096, "num_attention_heads": 32, "num_layers": 4, "seq_length": 8192,
          "multi_query_group_num": 2},
         "4 layers, 32 heads and 2 key heads of 128 channels", "up to 8,192, the trained length"),
        ({"model_type": "gpt2", "n_positions": 512}, "12 layers, 12 heads of 64 channels", "up to 512, the trained length"),
    ],
)  # fmt: skip
def test_the_verdict_has_the_heads_and_the_length_that_is_safe_to_serve(config, sizes, safe):
    lines = inspect(config=config, width=120).stdout.splitlines()
    assert lines[1:3] == [sizes, f"safe to serve: {safe}"]


def test_what_everyone_knows_of_rope_is_told_on_demand():
    plain, asked = (words(inspect("-", *options).stdout) for options in ((), ("--verbose",)))
    for told in ("largest angle", "error there", "queries and keys are rotated by an angle"):
        assert told not in plain
        assert told in asked
    assert len(inspect(config=LLAMA).stdout.splitlines()) <= 24  # one screen
    assert "with a slope for each head" in words(
        inspect(config={"model_type": "bloom"}).stdout
    )  # what is not RoPE is explained


@pytest.mark.parametrize("factor", [2.0, 8.0])
@pytest.mark.parametrize("kind", ["yarn", "linear"])
def test_the_first_failure_is_the_first_new_angle(kind, factor):
    """An angle is new when it is larger than all that the pair had in training, and the pair has not completed a turn."""
    config = LLAMA | {"rope_scaling": {"type": kind, "factor": factor, "original_max_position_embeddings": 4096}}
    if kind == "linear":
        del config["rope_scaling"]["original_max_position_embeddings"]
    found = limit(read_config(config))
    frequencies = torch.tensor(list(read_config(config).encoding(0).frequencies.values), dtype=torch.float64)
    plain = 10000.0 ** (-torch.arange(64, dtype=torch.float64) / 64)
    open_turns = plain * 4096 < 2 * torch.pi
    for length, new in ((found.fails, False), (round(found.fails * 1.01), True)):
        angles = frequencies[open_turns] * length
        assert bool((angles > plain[open_turns] * 4096 * (1 + 1e-9)).any()) == new


# Layers.


def test_windowed_layers_are_judged_at_what_they_see():
    data = json.loads(inspect("-", "--json", config=GEMMA).stdout)
    sliding, full = data["parts"][0]["groups"]
    assert (sliding["window"], full["window"]) == (1024, None)
    assert (sliding["encodings"][0]["meaning"]["unfinished"], sliding["encodings"][0]["meaning"]["length"]) == (57, 1024)
    assert full["encodings"][0]["meaning"]["length"] == 131072
    assert "57 of 128 rotating pairs do not complete a turn in 1,024, all that the layer sees" in words(
        inspect(config=GEMMA).stdout
    )


def test_layers_without_attention_are_numbered_and_shown():
    config = {"model_type": "qwen3_next", "num_hidden_layers": 8, "rope_theta": 1e7, "max_position_embeddings": 262144}
    text = words(inspect(config=config).stdout)
    assert "8 layers, 16 heads and 2 key heads of 256 channels" in text
    assert "layers 3, 7 full attention, causal" in text
    assert "layers 0–2, 4–6 linear attention, not attention: no positions" in text
    spec = read_config(config)
    assert [type(spec.encoding(n)).__name__ for n in range(8)] == ["NoPE", "NoPE", "NoPE", "RoPE"] * 2
    with pytest.raises(ValueError, match="layer: 0 is linear attention, not attention"):
        spec.attend(0, *[torch.zeros(1, 1, 1, 256)] * 3, None)


def test_exact_is_one_argument():
    spec = read_config(LLAMA)
    assert spec.encoding(0, exact="model").frequencies.arithmetic == "float32"
    assert spec.encoding(0).frequencies.arithmetic == "float64"
    with pytest.raises(ValueError, match="exact: expected"):
        spec.encoding(0, exact="float32")


def test_the_report_names_both_choices_of_exact_with_their_errors():
    shown = {lang: words(inspect("-", "--verbose", "--lang", lang).stdout) for lang in ("en", "zh")}
    assert "with fp32 angles (exact='model')" in shown["en"]
    assert "exact='fp64' has none" in shown["en"]
    assert "fp32 角度（exact='model'）" in shown["zh"]
    assert "exact='fp64' 没有误差" in shown["zh"]


# Findings and facts.


def test_facts_of_every_model_are_told_once_and_on_demand():
    plain, asked = inspect(config=GEMMA).stdout, inspect("-", "--verbose", config=GEMMA).stdout
    assert "must be permuted" not in plain
    assert "bf16 collide" not in plain
    assert words(asked).count("must be permuted: posenc convert") == 1
    assert "fp32 angles" not in plain.split("\nno findings")[-1]
    assert "exact='model'" in words(asked)


# Width and language.


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("config", [LLAMA, GEMMA, {"model_type": "whisper"}, {"model_type": "deepseek_v3"}])
def test_a_report_fits_into_80_columns(config, lang):
    from rich.cells import cell_len

    shown = inspect("-", "--verbose", "--length", "300000", "--lang", lang, config=config).stdout
    assert max(cell_len(line.rstrip()) for line in shown.splitlines()) <= 80


def test_the_report_is_in_chinese():
    shown = inspect("-", "--verbose", "--lang", "zh", config=LLAMA).stdout
    lines = shown.splitlines()
    assert lines[0] == "llama: 训练长度 4,096"
    assert lines[1] == "32 层，32 个头，每头 128 个通道"
    assert lines[2] == "可安全服务的长度：4,096，即训练长度"
    assert lines[3] == "超过 4,096：32 层中，64 对里有 18 对出现训练中没有的角度"
    assert lines[4].startswith("怎么办：")
    assert "波长" in shown
    assert "must be permuted" not in shown
    assert inspect("-", "--lang", "fr").exit_code == 2


SHARED = [
    (LLAMA | {"rope_theta": None}, "缺失：LlamaConfig 默认为 10000"),
    (LLAMA | {"rope_tetha": 1e6}, "LlamaConfig 的代码不读这个键"),
    (LLAMA | {"rope_scaling": {"type": "linear", "factor": 0.5}}, "0.5 会缩短上下文"),
    (LLAMA | {"rope_scaling": {"type": "linear", "factor": 2.0, "x": 1}}, "linear 没有这个键，它的键是 factor：此键不读"),
    (LLAMA | {"rope_scaling": {"type": "yarn", "factor": 2.0}}, "缺失：transformers 用 max_position_embeddings=4096"),
    (LLAMA | {"rope_scaling": {"rope_type": "linear", "type": "dynamic", "factor": 2.0}}, "transformers 用 rope_type"),
    (LLAMA | {"rope_parameters": {"rope_theta": 5.0}, "rope_scaling": {"type": "linear", "factor": 2.0}}, "忽略前者"),
    (LLAMA | {"rope_layout": "interleaved"}, "权重已转换：通道按 interleaved 成对"),
    (LLAMA | {"model_type": "xverse"}, "远程代码：按公开代码的事实读取"),
    (LLAMA | {"model_type": "x", "architectures": ["LlamaForCausalLM"]}, "'x' 未知，远程代码："),
    (LLAMA | {"auto_map": {"AutoModel": "modeling_a.A"}}, "设 trust_remote_code 时，运行的是 modeling_a.A"),
    ({"model_type": "qwen3_next", "rope_theta": 1e7}, "它们保持次序；注意力在第"),
    ({"model_type": "qwen2", "rope_theta": 1e6, "sliding_window": 9}, "不使用：use_sliding_window 为 false"),
]


@pytest.mark.parametrize(("config", "told"), SHARED, ids=[told for _, told in SHARED])
def test_findings_that_families_share_are_in_chinese(config, told):
    shown = inspect("-", "--lang", "zh", config={key: one for key, one in config.items() if one is not None}, width=200)
    assert told in shown.stdout


QWEN_1M = {"model_type": "qwen2", "rope_theta": 1e7, "max_position_embeddings": 1_010_000, "hidden_size": 896} | {
    "dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192, "original_max_position_embeddings": 262144}
}


@pytest.mark.parametrize("model_type", ["qwen2", "qwen3", "qwen2_moe", "qwen3_moe"])
def test_dual_chunk_attention_is_no_trained_length(model_type):
    """transformers has no dual chunk attention: what that adds to max_position_embeddings is not in its reach."""
    shown = inspect("-", config=QWEN_1M | {"model_type": model_type}, width=200).stdout
    assert shown.splitlines()[0] == f"{model_type}: trained on 262,144 positions"
    assert "transformers does not, so that distances beyond 262144 are outside training there" in shown
    broken = QWEN_1M | {"dual_chunk_attention_config": {"original_max_position_embeddings": "262144"}}
    done = inspect("-", config=broken | {"model_type": model_type})
    assert done.exit_code == 1
    assert "dual_chunk_attention_config.original_max_position_embeddings: expected a whole" in str(done.exception)


# Several models.


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    for name, config in (("small", LLAMA), ("gemma", GEMMA)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    return [str(tmp_path / "small"), str(tmp_path / "gemma" / "config.json")]


def test_several_models_stand_side_by_side(two, tmp_path):
    rows = {line.split("  ")[0]: re.split(r"  +", line.strip())[1:] for line in inspect(*two).stdout.splitlines()}
    assert rows["layers"] == ["32", "34"]
    assert rows["usable"] == ["4,096", "131,072"]
    assert rows["windows"] == ["none", "1,024"]
    assert rows["scaling"] == ["none", "linear ×8"]
    both = json.loads(inspect(*two, "--json").stdout)
    assert [one["family"] for one in both] == ["llama", "gemma3_text"]
    assert inspect(*two, "--extend-to", "262144").exit_code == 2


@pytest.mark.parametrize(("width", "tables"), [(80, [3, 2]), (120, [3, 2]), (50, [2, 2, 1]), (30, [1, 1, 1, 1, 1])])
def test_five_models_fit_into_the_terminal(tmp_path, width, tables):
    from rich.cells import cell_len

    paths = []
    for number in range(5):
        (tmp_path / f"m{number}").mkdir()
        paths.append(tmp_path / f"m{number}" / "config.json")
        paths[-1].write_text(json.dumps(GEMMA if number else LLAMA | {"rope_scaling": {"type": "linear", "factor": 0.5}}))
    lines = inspect(*map(str, paths), width=width).stdout.splitlines()
    assert max(cell_len(line.rstrip()) for line in lines) <= width
    assert [len(re.findall(r"m\d", line)) for line in lines if re.search(r"m\d", line)] == tables
    found = " ".join(line for line in lines if line.startswith("findings"))
    assert "1 warning" in found
    assert not re.search(r"\b1 (warnings|notes|errors)", found)


# Extending.


def test_every_program_gets_its_whole_command(tmp_path):
    data = json.loads(inspect("-", "--extend-to", "16384", "--json").stdout)
    by_method = {one["method"]: {run["name"]: run for run in one["runtimes"]} for one in data["extensions"]}
    assert set(by_method["yarn"]) == {"transformers", "vLLM", "SGLang", "llama.cpp"}
    vllm = shlex.split(by_method["yarn"]["vLLM"]["command"])
    assert json.loads(vllm[vllm.index("--hf-overrides") + 1]) == {"max_position_embeddings": 16384, "rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096, "rope_theta": 10000.0}}  # fmt: skip
    assert vllm[-2:] == ["--max-model-len", "16384"]
    sglang = shlex.split(by_method["yarn"]["SGLang"]["command"])
    assert json.loads(sglang[sglang.index("--json-model-override-args") + 1])["rope_parameters"]["factor"] == 4.0
    assert by_method["yarn"]["llama.cpp"]["command"] == (
        "llama-server -m MODEL.gguf -c 16384 --override-kv llama.context_length=int:16384 "
        "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096"
    )
    assert by_method["linear"]["llama.cpp"]["command"].endswith("--rope-scaling linear --rope-scale 4")
    assert by_method["llama3"]["llama.cpp"]["command"] == ""
    assert all(run["version"] and run["ignores"] for runs in by_method.values() for run in runs.values())
    shown = words(inspect("-", "--extend-to", "16384").stdout)
    assert "what to do:" in words(inspect().stdout)
    assert "what to do:" not in shown, "settings for that length follow"
    assert f"vLLM {by_method['yarn']['vLLM']['version']} ({by_method['yarn']['vLLM']['date']}), ignores nothing" in shown


def test_one_method_is_printed_whole_and_the_others_by_name():
    shown = words(inspect("-", "--extend-to", "16384").stdout)
    assert shown.count("rope_scaling") == 1
    assert "to run it with yarn" in shown
    assert "other methods, with --method: ntk, linear, llama3, longrope" in shown
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 512}  # fmt: skip
    own = words(inspect("-", "--extend-to", "16384", config=LLAMA | {"rope_scaling": llama3}).stdout)
    assert "to run it with llama3" in own, "the scaling that the model was trained with"
    asked = words(inspect("-", "--extend-to", "16384", "--method", "ntk").stdout)
    assert "to run it with ntk" in asked
    assert "other methods" not in asked
    phi = {"model_type": "phi3", "rope_theta": 1e4, "max_position_embeddings": 4096, "hidden_size": 512}
    unfit = words(inspect("-", "--extend-to", "16384", config=phi).stdout)
    assert "to run it with ntk" in unfit
    assert "yarn (not for this family), linear (not for this family)" in unfit


SERVED = {
    "vllm": "vllm serve {folder} --max-model-len {length}",
    "sglang": "python -m sglang.launch_server --model-path {folder} --context-length {length}",
    "llama.cpp": "llama-server -m MODEL.gguf -c {length}",
    "transformers": 'AutoModelForCausalLM.from_pretrained("{folder}")',
}


@pytest.mark.parametrize("program", SERVED)
def test_the_command_that_serves_a_model_stands_alone(program, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    for options, length in (((), 4096), (("--length", "1000"), 1000)):
        printed = inspect(str(tmp_path), "--serve", program, *options)
        assert printed.stdout == SERVED[program].format(folder=tmp_path, length=length) + "\n"
    extended = inspect(str(tmp_path), "--serve", program, "--extend-to", "16384").stdout
    by_method = json.loads(inspect(str(tmp_path), "--extend-to", "16384", "--json").stdout)["extensions"]
    (command,) = (run["command"] for run in by_method[0]["runtimes"] if run["name"].lower() == program)
    assert by_method[0]["method"] == "yarn"
    assert extended == command.replace("MODEL", str(tmp_path), "llama" not in program) + "\n"


def test_no_command_is_printed_where_it_would_not_serve(tmp_path):
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
    for config, options, why in (
        (LLAMA, ("--length", "5000"), "reach angles not seen in training beyond 4096; --extend-to 5000"),
        (LLAMA | {"model_type": "xverse"}, (), "the model brings its own code"),
        (LLAMA | {"rope_scaling": yarn}, (), "a length above that of the file, 4096: write 16384 there"),
        ({"model_type": "gpt2"}, ("--extend-to", "4096"), "has no rotary frequencies"),
    ):
        refused = inspect("-", "--serve", "sglang", *options, config=config)
        assert refused.exit_code == 1
        assert why in str(refused.exception)
        assert not refused.stdout
    assert inspect("-", "--serve", "nobody").exit_code == 2


def test_llama_cpp_goes_on_with_what_the_model_was_trained_with():
    def command(method, scaling):
        config = LLAMA | {"rope_scaling": scaling}
        found = inspect("-", "--extend-to", "65536", "--method", method, "--json", config=config)
        return json.loads(found.stdout)["extensions"][0]["runtimes"][3]["command"].removeprefix(
            "llama-server -m MODEL.gguf -c 65536 --override-kv llama.context_length=int:65536 "
        )

    linear = {"rope_type": "linear", "factor": 4.0}
    assert command("linear", linear) == "--rope-scaling linear --rope-scale 16"
    assert command("ntk", linear) == f"--rope-scaling linear --rope-scale 4 --rope-freq-base {1e4 * 4 ** (128 / 126):.10g}"
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096, "beta_fast": 24.0}
    expected = "--rope-scaling yarn --rope-scale 16 --yarn-orig-ctx 4096 --yarn-beta-fast 24"
    assert command("yarn", yarn) == expected


SMALL = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 64,
    "pad_token_id": 0,
    "max_position_embeddings": 4096,
}
KINDS = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 64}
LINEAR = {"rope_type": "linear", "factor": 8.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
MSCALE = {"mscale": 1.0, "mscale_all_dim": 0.5, "beta_fast": 24, "beta_slow": 2}
LATENT = {"q_lora_rank": None, "kv_lora_rank": 16, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16}
FILES = {
    "v4": {"model_type": "llama", "rope_theta": 5e5},
    "v4 with null": {"model_type": "qwen2", "rope_theta": 1e6, "rope_scaling": None},
    "v5": {"model_type": "llama", "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
    "v4 scaled": {
        "model_type": "llama",
        "rope_theta": 5e5,
        "rope_scaling": {**LLAMA3, "original_max_position_embeddings": 512},
    },
    "part": {"model_type": "gpt_neox", "rotary_pct": 0.5, "rotary_emb_base": 10000},
    "part by default": {"model_type": "glm4", "rope_theta": 1e4},
    "sections": {
        "model_type": "qwen2_vl_text",
        "rope_theta": 1e6,
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
    },
    "linear": {"model_type": "llama", "rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 4.0}},
    "gemma": {"model_type": "gemma3_text", "rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": None, **KINDS},
    "gemma as published": {"model_type": "gemma3_text", "rope_scaling": LINEAR, **KINDS},
    "gemma of today": {
        "model_type": "gemma3_text",
        "rope_parameters": {
            "full_attention": {**LINEAR, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
        **KINDS,
    },
    "gemma bare": {"model_type": "gemma3_text", **KINDS},
    "yarn": {
        "model_type": "deepseek_v3",
        "rope_theta": 1e4,
        "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024, **MSCALE},
        **LATENT,
    },
}  # fmt: skip


def changed_layers(model):
    """Frequencies and their factor as transformers computes them for layers that see everything."""
    rotary = next(module for module in model.modules() if "otaryEmbedding" in type(module).__name__)
    names = [name for name, _ in rotary.named_buffers() if name.endswith("inv_freq") and "original" not in name]
    name = next((name for name in names if name.startswith("full_attention")), names[0])
    return getattr(rotary, name).double(), getattr(rotary, name.replace("inv_freq", "attention_scaling"))


@pytest.mark.parametrize("method", ["yarn", "ntk", "linear", "llama3"])
@pytest.mark.parametrize("file", list(FILES))
def test_the_commands_of_transformers_and_sglang_make_that_model(file, method, tmp_path):
    from transformers import AutoConfig, AutoModel

    given = {**SMALL, **FILES[file]}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(given))
    found = inspect(str(path), "--extend-to", "65536", "--method", method, "--json")
    if "linear" in str(given) and method in ("yarn", "llama3"):
        assert found.exit_code == 1
        assert "trained with linear scaling" in str(found.exception)
        return
    (made,) = json.loads(found.stdout)["extensions"]
    command = made["runtimes"][0]["command"]
    keys = eval(command.replace("AutoModelForCausalLM.from_pretrained", "dict").replace('"MODEL", ', ""))
    config, unused = AutoConfig.from_pretrained(tmp_path, return_unused_kwargs=True, **keys)
    assert unused == {}  # the model's class would get it and raise TypeError
    path.write_text(json.dumps(given | made["fragment"]))
    edited = AutoConfig.from_pretrained(tmp_path)
    assert config.max_position_embeddings == edited.max_position_embeddings == 65536
    expected = read_config(given | made["fragment"], defaults=True)
    rotation = next(use.rotation for layer in expected.layers for use in layer.uses if layer.reach is None)
    wanted = rotation.frequencies().at_length(1)
    for one in (config, edited):
        frequencies, factor = changed_layers(AutoModel.from_config(one))
        assert torch.allclose(frequencies, torch.tensor(wanted.values, dtype=torch.float64), rtol=5e-6, atol=0)
        assert factor == pytest.approx(wanted.cos_sin_scale, rel=1e-6)
    path.write_text(json.dumps(given))
    before, _ = changed_layers(AutoModel.from_config(AutoConfig.from_pretrained(tmp_path)))
    assert not torch.equal(before, frequencies)
    if "linear" in str(given):  # what it was trained with goes on: no pair turns faster than before
        assert bool((frequencies <= before * (1 + 1e-6)).all())
    if file == "yarn" and method == "yarn":
        constants = {"original_max_position_embeddings": 1024, **MSCALE}
        assert made["fragment"]["rope_scaling"] == {"rope_type": "yarn", "factor": 64.0, **constants}


# Pictures.


def test_one_picture_for_each_model(two, tmp_path):
    assert inspect("-", "--length", "300000", "--picture", str(tmp_path / "a.png")).exit_code == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert inspect(*two, "--picture", str(tmp_path / "b.svg")).exit_code == 0
    assert "window 1,024" in (tmp_path / "b-gemma.svg").read_text()
    assert "usable length 131,072" in (tmp_path / "b-gemma.svg").read_text()
    assert "trained length 4,096" in (tmp_path / "b-small.svg").read_text()
    assert inspect("-", "--extend-to", "16384", "--picture", str(tmp_path / "d.svg")).exit_code == 0
    drawn = (tmp_path / "d.svg").read_text()
    assert all(name in drawn for name in ("yarn, longrope", "ntk", "trained length 4,096", "wanted length 16,384"))
    assert isinstance(
        inspect("-", "--picture", str(tmp_path / "c.png"), config={"model_type": "gpt2"}).exception, ValueError
    )


def test_pictures_of_folders_with_one_name_are_two_files_and_none_is_replaced(two, tmp_path):
    folders = [tmp_path / "3.1" / "Llama-3.1", tmp_path / "3.2" / "Llama-3.1"]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(LLAMA))
    path = tmp_path / "p.svg"
    assert inspect(str(folders[0]), str(folders[1] / "config.json"), "--picture", str(path)).exit_code == 0
    drawn = sorted(file.name for file in tmp_path.glob("p*"))
    assert drawn == ["p-Llama-3.1-2.svg", "p-Llama-3.1.svg"]
    again = inspect(*map(str, folders), "--picture", str(path))
    assert again.exit_code == 1
    assert "p-Llama-3.1.svg: exists; --force replaces it" in again.stderr
    assert inspect(*map(str, folders), "--picture", str(path), "--force").exit_code == 0
    path.write_text("mine")
    assert isinstance(inspect(str(folders[0]), "--picture", str(path)).exception, FileExistsError)
    assert path.read_text() == "mine"


def test_a_length_beyond_int64_is_refused_by_its_option(two):
    result = inspect(two[0], "--length", str(2**63))
    assert result.exit_code == 2
    assert "--length" in result.stderr


@pytest.mark.parametrize(("length", "factor"), [(32768, 8.0), (16384, 4.0)])  # LLaMA-2-7B-32K, deepseek-coder-6.7b
def test_linear_scaling_has_two_readings_and_both_are_said(length, factor):
    """Both files give the length after scaling: 4096 positions were trained before it."""
    config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "rope_theta": 1e4}
    config |= {"max_position_embeddings": length, "rope_scaling": {"type": "linear", "factor": factor}}
    data = report(read_config(config))
    assert (data["verdict"]["usable"], data["verdict"]["or_only"]) == (round(length * factor), length)
    (said,) = [one["text"] for one in data["remarks"] if "deepseek-coder" in one["text"]]
    assert str(length) in said
    assert str(round(length * factor)) in said
    console = Console(width=200, file=io.StringIO())
    Page(console).show(data, [])
    assert f"(or {length:,})" in console.file.getvalue().splitlines()[0]
    with pytest.raises(ValueError, match="got 32768; where the file gives the length after its linear scaling"):
        extend(config, read_config(config), 32768)


def test_what_fails_under_each_reading_is_in_the_text_and_in_the_json():
    """base 10 000, d 64, linear by 4, in the file 16 384: pairs of a wavelength 2π·4·10000^(2i/64) above the length."""
    config = {
        "model_type": "llama",
        "hidden_size": 256,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "rope_theta": 1e4,
    }
    config |= {"max_position_embeddings": 16384, "rope_scaling": {"type": "linear", "factor": 4.0}}
    waves = [2 * math.pi * 4 * 10000 ** (i / 32) for i in range(32)]
    before, after = (len([one for one in waves if one > length]) for length in (65536, 16384))
    assert 0 < before < after
    data = report(read_config(config), length=70000)
    told, (part,) = data["verdict"], data["parts"]
    assert (part["usable_length"], part["or_only"], told["or_fails"]) == (65536, 16384, 16384)
    assert told["or_why"] == f"{after} of 32 pairs in 2 layers reach angles not seen in training"
    beyond = part["groups"][0]["encodings"][0]["beyond"]
    assert (len(beyond["pairs"]), len(beyond["or_pairs"])) == (before, after)
    console = Console(width=200, file=io.StringIO())
    Page(console).show(data, [])
    page = console.file.getvalue()
    assert page.splitlines()[3].endswith(" (or beyond 16,384)")
    assert f"(or {after}: " in page


def test_the_family_decides_where_it_gives_the_length_after():
    config = {"model_type": "gemma3_text", "num_hidden_layers": 2, "max_position_embeddings": 131072}
    config |= {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    assert report(read_config(config))["verdict"]["or_only"] is None


# compare-configs: what positions do, and what only the files say.

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        ({}, {"head_dim": 128}, "head_dim: not in the file against 128"),
        ({}, {"rope_scaling": None}, None),
        ({}, {"rope_scaling": {"type": "linear", "factor": 1.0}}, "rope_scaling: not in the file against"),
        ({"rope_scaling": YARN}, {"rope_scaling": YARN | {"beta_fast": 32, "beta_slow": 1}}, '"beta_fast": 32'),
        ({}, {"max_position_embeddings": 8192}, "trained length 4096 against 8192"),
    ],
)
def test_what_differs_in_the_file_only_is_told_apart(one, two, told, tmp_path):
    for name, config in (("one", one), ("two", two)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(LLAMA | config))
    done = in_process.posenc("compare-configs", tmp_path / "one", tmp_path / "two")
    assert done.returncode == 0
    assert done.stdout.startswith("the same: all layers have the same positions\n")
    if told:
        _, _, rest = words(done.stdout).partition("differs in the file, not in effect:")
        assert told in rest
    data = json.loads(in_process.posenc("compare-configs", tmp_path / "one", tmp_path / "two", "--json").stdout)
    assert (data["same"], data["differences"]) == (True, [])


def test_a_key_with_effect_is_not_among_those_without(tmp_path):
    for name, config in (("one", {}), ("two", {"rope_theta": 5e5, "head_dim": 128})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(LLAMA | config))
    data = json.loads(in_process.posenc("compare-configs", tmp_path / "one", tmp_path / "two", "--json").stdout)
    assert not data["same"]
    assert [one["what"] for one in data["not_in_effect"]] == ["head_dim: not in the file against 128"]


def test_keys_that_no_reader_reads_are_not_in_effect(tmp_path):
    """vocab_size and hidden_act, at the top and within a part; a part itself is told by its own keys."""
    text = {"model_type": "llama", "vocab_size": 9}
    for name, config in (
        ("one", LLAMA | {"vocab_size": 32000, "torch_dtype": "bfloat16"}),
        ("two", LLAMA | {"vocab_size": 32064, "hidden_act": "gelu", "torch_dtype": "bfloat16"}),
        ("three", {"model_type": "llava", "text_config": text}),
        ("four", {"model_type": "llava", "text_config": text | {"vocab_size": 8}}),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    for pair, expected in (
        (("one", "two"), [("", "vocab_size: 32000 against 32064"), ("", 'hidden_act: not in the file against "gelu"')]),
        (("three", "four"), [("text_config", "vocab_size: 9 against 8")]),
    ):
        data = json.loads(in_process.posenc("compare-configs", *(tmp_path / name for name in pair), "--json").stdout)
        assert data["same"]
        assert [(one["where"], one["what"]) for one in data["not_in_effect"]] == expected


@pytest.mark.parametrize(("length", "original", "more"), [  # AFM-4.5B, Yarn-Mistral-7b-128k
    (65536, 4096, {"model_type": "arcee", "factor": 20.0, "mscale": 1.0}),
    (32768, 8192, {"model_type": "mistral", "factor": 16.0, "finetuned": True}),
])  # fmt: skip
def test_a_right_file_with_another_length_than_its_factor_says_gets_no_warning(length, original, more):
    """modeling_rope_utils.py of transformers 5.23 computes with the factor: 1 + 0.1·ln factor scales cos and sin."""
    family, scaling = more["model_type"], {key: one for key, one in more.items() if key != "model_type"}
    scaling |= {"type": "yarn", "original_max_position_embeddings": original}
    config = LLAMA | {"model_type": family, "max_position_embeddings": length, "rope_scaling": scaling}
    data = report(read_config(config))
    assert {one["grade"] for one in data["remarks"]} == {"note"}
    (rotation,) = [one["rotation"] for one in data["parts"][0]["groups"][0]["encodings"]]
    assert rotation["cos_sin_scale"] == pytest.approx(1 + 0.1 * math.log(scaling["factor"]))
    assert any(one["text"].startswith(f"factor {scaling['factor']:g} is used") for one in data["remarks"])


MINISTRAL_8B = {
    "model_type": "mistral",
    "hidden_size": 4096,
    "head_dim": 128,
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "max_position_embeddings": 32768,
    "rope_theta": 1e8,
    "sliding_window": 32768,
}


@pytest.mark.parametrize("window", [4096, 32768])
def test_no_settings_where_windows_keep_every_distance_within_training(window):
    """A command that does nothing is not printed: the farthest key is as near as in training at every length."""
    config = MINISTRAL_8B | {"sliding_window": window}
    with pytest.raises(ValueError, match=f"every layer of mistral that rotates has a window, of at most {window} tokens"):
        extend(config, read_config(config), 131072)


@pytest.mark.parametrize("window", [None, 65536])
def test_settings_where_some_distance_goes_beyond_training(window):
    config = MINISTRAL_8B | {"sliding_window": window}
    assert all(one.fragment for one in extend(config, read_config(config), 131072))


@pytest.mark.parametrize("model_type", ["gptj", "codegen", "roformer"])
def test_settings_are_not_promised_where_the_code_reads_none(model_type):
    assert "--extend-to" not in limit(read_config({"model_type": model_type})).remedy.en
    assert "--extend-to" in limit(read_config({"model_type": "llama"})).remedy.en


@pytest.mark.parametrize("model_type", ["omniasr", "got_ocr2", "pp_chart2table", "moonshine"])
def test_a_part_without_a_section_of_its_own_is_refused(model_type):
    """The class fills these parts with sizes that the family of the part alone does not have."""
    config = {"model_type": model_type}
    path, part = extensible(read_config(config))
    with pytest.raises(ValueError, match="settings are written into the section of one part, and the file has none"):
        extend(config, part, 64 * part.trained_length, path=path)


def test_a_share_of_turning_channels_that_a_method_would_lose_is_its_reason():
    config = {"model_type": "nemotron3_5_transcribe_asr_audio"}
    path, part = extensible(read_config(config))
    made = extend(config, part, 64 * part.trained_length, path=path)
    assert {one.note.en for one in made} == {
        "not for this family: rope_parameters: other pairs would turn than in this model"
    }


# The trained length -----------------------------------------------------------------------------------------------------


def test_the_length_that_the_file_says_it_was_trained_on():
    """nomic-embed-text-v1.5: 8 192 positions fit, and 2 048 were trained on."""
    nomic = {"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 8192,
             "auto_map": {"AutoConfig": "configuration_hf_nomic_bert.NomicBertConfig"}, "max_trained_positions": 2048,
             "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False}  # fmt: skip
    assert limit(read_config(nomic)).trained == 2048
    assert limit(read_config({**nomic, "max_trained_positions": None})).trained == 8192


SHORT = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
         "max_position_embeddings": 16384}  # fmt: skip


@pytest.mark.parametrize("outer", [False, True])
def test_an_original_length_beyond_the_maximum_is_no_headline(outer):
    """The smaller of two lengths that contradict each other is what was surely trained on, and both are named."""
    original = {"original_max_position_embeddings": 10**7}
    scaling = {"rope_type": "yarn", "factor": 4.0, **({} if outer else original)}
    spec = read_config({**SHORT, **(original if outer else {}), "rope_theta": 10000.0, "rope_scaling": scaling})
    assert limit(spec).trained == 16384
    (warned,) = (remark for remark in spec.remarks if remark.grade == "warning")
    assert warned.key.endswith("original_max_position_embeddings")
    assert "10000000 is longer than max_position_embeddings=16384" in warned.words.en


@pytest.mark.parametrize(
    "config", [{"rope_theta": None}, {"rope_parameters": {"rope_type": "default", "rope_theta": None}}]
)
def test_a_base_of_null_is_an_error_as_transformers_fails(config):
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    with pytest.raises(TypeError):
        LlamaRotaryEmbedding(LlamaConfig(**{**SHORT, **config}))
    (told,) = (remark for remark in read_config({**SHORT, **config}).remarks if remark.grade == "error")
    assert told.key == ("rope_parameters.rope_theta" if "rope_parameters" in config else "rope_theta")
    assert "null, with which LlamaConfig fails" in told.words.en
    assert not [remark for remark in read_config(SHORT).remarks if remark.grade == "error"]
