"""Saved folders and printed commands in a vLLM that runs, on the processor: target vllm of tools/acceptance.py.

Small models with random weights, float32. What vLLM gives is compared with `pt.from_pretrained` in this process, and its
tables of cos and sin, which `llm.apply_model` reads, with posenc's.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

import posenc
import posenc.transformers as pt
from posenc.configs import read_config
from posenc.configs.report.extension import extend, extensible
from posenc.configs.report.extension_methods import METHODS
from posenc.configs.report.runtimes import runtimes
from posenc.transformers import vllm as plugin

SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
os.environ |= SETTINGS | {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_ALLOW_INSECURE_SERIALIZATION": "1"}
vllm = pytest.importorskip("vllm")
logging.getLogger("torch.__trace").setLevel(logging.WARNING)  # thousands of lines below a failure

TRAINED, D_HEAD, HEADS, LAYERS = 128, 32, 2, 4
SIZES = {
    "vocab_size": 512,
    "hidden_size": HEADS * D_HEAD,
    "intermediate_size": 128,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 1,
    "head_dim": D_HEAD,
    "max_position_embeddings": TRAINED,
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
PROMPT = torch.randint(3, 512, (100,), generator=torch.Generator().manual_seed(0)).tolist()
START = 1800  # seconds; a minute where the processors are free
NEAR = 2e-3  # log probabilities of two programs in float32


def saved(folder: Path, model_type: str = "llama", attached: dict[tuple[int, ...], Any] | None = None) -> Path:
    """A folder of a small model, with encodings attached to some of its layers."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **SIZES)
    config.dtype = "float32"
    model = transformers.AutoModelForCausalLM.from_config(config)
    for layers, encoding in (attached or {}).items():
        pt.attach(model, encoding, layers=layers)
    model.save_pretrained(folder)
    return folder


@contextlib.contextmanager
def serving(folder: Path, length: int = TRAINED, **options: Any) -> Iterator[Any]:
    from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

    given = {"dtype": "float32", "enforce_eager": True, "max_num_seqs": 2, "skip_tokenizer_init": True}
    llm = vllm.LLM(str(folder), max_model_len=length, **(given | {"distributed_executor_backend": "uni"} | options))
    try:
        yield llm
    finally:
        llm.llm_engine.engine_core.shutdown()
        del llm
        gc.collect()
        cleanup_dist_env_and_memory()


def read(llm: Any, prompt: list[int], **request: Any) -> tuple[torch.Tensor, list[int]]:
    """The log probability of each token of the prompt after the first, and 8 greedy tokens after it."""
    options = vllm.SamplingParams(temperature=0, max_tokens=8, prompt_logprobs=0, ignore_eos=True, detokenize=False)
    (out,) = llm.generate({"prompt_token_ids": prompt}, options, use_tqdm=False, **request)
    chosen = [row[token].logprob for row, token in zip(out.prompt_logprobs[1:], prompt[1:], strict=True)]
    return torch.tensor(chosen), list(out.outputs[0].token_ids)


def read_here(folder: Path, prompt: list[int], load: Any = pt.from_pretrained) -> tuple[torch.Tensor, list[int]]:
    """The same in this process."""
    model, ids = load(folder, dtype=torch.float32).eval(), torch.tensor([prompt])
    with torch.no_grad():
        chosen = model(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        for _ in range(8):
            ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], dim=1)
    return chosen, ids[0, len(prompt) :].tolist()


def tables(model: Any) -> dict[str, tuple[int, list[int]] | None]:
    """Where the table of each layer lies, and its shape; None for a layer that turns nothing."""
    found = {}
    for path, module in model.named_modules():
        if path.endswith("rotary_emb"):
            table = getattr(module, "cos_sin_cache", None)
            found[path] = None if table is None else (table.data_ptr(), list(table.shape))
    return found


HALF = {"d_head": D_HEAD, "layout": "half"}
YARN = "yarn", HALF | {"factor": 4.0, "trained_length": 32}
OTHER_BASE = "rope", HALF | {"base": 500.0}
FOLDERS = {
    "yarn": {range(LAYERS): YARN},
    "ntk": {range(LAYERS): ("ntk", HALF | {"factor": 4.0})},
    "linear": {range(LAYERS): ("linear", HALF | {"factor": 4.0})},
    "llama3": {range(LAYERS): ("llama3", HALF | {"trained_length": 32})},
    "a part of the head": {range(LAYERS): ("rope", HALF | {"rotary_dim": 16, "base": 500.0})},
    "the other way": {range(LAYERS): ("rope", HALF | {"reverse": True})},
    "layers without positions": {(3,): ("nope", {})},
    "two encodings": {(0, 2): YARN, (1, 3): OTHER_BASE},
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_gives_what_it_gives_here(name, tmp_path):
    attached = {tuple(layers): posenc.create(kind, **options) for layers, (kind, options) in FOLDERS[name].items()}
    folder = saved(tmp_path / "saved", attached=attached)
    with serving(folder) as llm:
        chosen, greedy = read(llm, PROMPT)
        (found,) = llm.apply_model(tables)
    wanted, tokens = read_here(folder, PROMPT)
    assert (chosen - wanted).abs().max() < NEAR
    assert greedy == tokens
    plain, _ = read_here(saved(tmp_path / "plain"), PROMPT, transformers.AutoModelForCausalLM.from_pretrained)
    assert (chosen - plain).abs().max() > 100 * NEAR  # so that it is seen
    held = [one for one in found.values() if one is not None]
    turning = [kind for kind, _ in FOLDERS[name].values() if kind != "nope"]
    own = sum(map(len, FOLDERS[name])) < LAYERS  # layers with the model's own encoding
    assert len({place for place, _ in held}) == len(turning) + own  # one table for each encoding, not for each layer
    assert {shape[0] for _, shape in held} == {TRAINED}


def configured(folder: Path, **options: Any) -> Any:
    """What vLLM's first process does, before it starts a worker and reads weights."""
    return vllm.EngineArgs(str(folder), skip_tokenizer_init=True, **options).create_engine_config()


REFUSED = {
    "alibi": ({"n_heads": HEADS}, "ALiBi: it is not a rotation"),
    "xpos": (HALF, "XPos: it is not a rotation"),
    "deepseek_yarn": (HALF | {"factor": 4.0, "trained_length": 32}, "RoPE: it changes the scale of the softmax"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_vllm_has_no_place_for_is_refused_in_the_first_process(name, tmp_path):
    options, message = REFUSED[name]
    folder = saved(tmp_path, attached={tuple(range(LAYERS)): posenc.create(name, **options)})
    (folder / "model.safetensors").unlink()
    with pytest.raises(Exception, match=f"vLLM cannot serve {message}"):
        configured(folder)


FACTORS = {"short_factor": (1.0,) * 16, "long_factor": (2.0,) * 16}
FOLLOWING = {"longrope": ("LongRoPE", FACTORS), "dynamic": ("DynamicNTK", {})}


@pytest.mark.parametrize("name", FOLLOWING)
def test_frequencies_that_follow_the_length_have_no_folder(name, tmp_path):
    kind, options = FOLLOWING[name]
    encoding = posenc.create(name, **HALF, **options, trained_length=TRAINED, factor=4.0)
    with pytest.raises(TypeError, match=f"is a {kind}, which a config"):
        saved(tmp_path, attached={tuple(range(LAYERS)): encoding})


# What vLLM does with requests.


@pytest.fixture
def several(tmp_path):
    """A folder of three encodings: YaRN, another base, and layer 3 without positions."""
    attached = {(0, 2): posenc.create(YARN[0], **YARN[1]), (1,): posenc.create(OTHER_BASE[0], **OTHER_BASE[1])}
    return saved(tmp_path / "several", attached=attached | {(3,): posenc.create("nope")})


def test_a_prompt_in_pieces(several):
    with serving(several, enable_chunked_prefill=True, max_num_batched_tokens=32) as llm:
        chosen, greedy = read(llm, PROMPT)
    wanted, tokens = read_here(several, PROMPT)
    assert (chosen - wanted).abs().max() < NEAR
    assert greedy == tokens


def test_a_prefix_that_is_kept(several):
    options = vllm.SamplingParams(temperature=0, max_tokens=8, logprobs=0, ignore_eos=True, detokenize=False)
    with serving(several, enable_prefix_caching=True, block_size=32) as llm:
        first, second = (llm.generate({"prompt_token_ids": PROMPT}, options, use_tqdm=False)[0] for _ in range(2))
    assert (first.num_cached_tokens, second.num_cached_tokens) == (0, 96)
    assert list(second.outputs[0].token_ids) == read_here(several, PROMPT)[1]
    scores = [
        [row[token].logprob for row, token in zip(one.outputs[0].logprobs, one.outputs[0].token_ids, strict=True)]
        for one in (first, second)
    ]
    assert scores[1] == pytest.approx(scores[0], abs=NEAR)


def test_an_adapter_of_low_rank(several, tmp_path):
    from safetensors.torch import load_file, save_file
    from vllm.lora.request import LoRARequest

    adapter, merged = tmp_path / "adapter", tmp_path / "merged"
    adapter.mkdir()
    shutil.copytree(several, merged)
    weights, parts, draw = load_file(several / "model.safetensors"), {}, torch.Generator().manual_seed(1)
    for name in [one for one in weights if "q_proj" in one or "k_proj" in one]:
        rows, columns = weights[name].shape
        down, up = torch.randn(8, columns, generator=draw) * 0.2, torch.randn(rows, 8, generator=draw) * 0.2
        weights[name] = weights[name] + up @ down
        path = f"base_model.model.{name.removesuffix('.weight')}"
        parts |= {f"{path}.lora_A.weight": down, f"{path}.lora_B.weight": up}
    save_file(weights, merged / "model.safetensors", {"format": "pt"})
    save_file(parts, adapter / "adapter_model.safetensors")
    told = {"peft_type": "LORA", "r": 8, "lora_alpha": 8, "target_modules": ["q_proj", "k_proj"], "bias": "none"}
    (adapter / "adapter_config.json").write_text(json.dumps(told | {"task_type": "CAUSAL_LM"}), "utf-8")
    with serving(several, enable_lora=True, max_lora_rank=8) as llm:
        plain, _ = read(llm, PROMPT)
        chosen, greedy = read(llm, PROMPT, lora_request=LoRARequest("adapter", 1, str(adapter)))
    wanted, tokens = read_here(merged, PROMPT)
    assert (chosen - wanted).abs().max() < NEAR
    assert greedy == tokens
    assert (plain - wanted).abs().max() > 100 * NEAR


def test_tensor_parallel_in_two_processes(several):
    with serving(several, tensor_parallel_size=2, distributed_executor_backend="mp") as llm:
        chosen, greedy = read(llm, PROMPT)
        found = llm.apply_model(tables)
    wanted, tokens = read_here(several, PROMPT)
    assert (chosen - wanted).abs().max() < NEAR
    assert greedy == tokens
    assert len(found) == 2
    assert [{one[1][0] for one in held.values() if one} for held in found] == [{TRAINED}] * 2


@pytest.mark.parametrize("model_type", ["gemma2", "glm4", "llama"])
def test_float16_is_refused_as_for_the_family(model_type, tmp_path):
    options = {"layout": "interleaved", "rotary_dim": 16} if model_type == "glm4" else {"layout": "half"}
    attached = {tuple(range(LAYERS)): posenc.create("rope", d_head=D_HEAD, base=500.0, **options)}
    folders = saved(tmp_path / "plain", model_type), saved(tmp_path / "attached", model_type, attached)
    assert json.loads((folders[1] / "config.json").read_text("utf-8"))["model_type"] == f"posenc_{model_type}"
    for folder in folders:
        if model_type == "llama":
            assert configured(folder, dtype="float16").model_config.dtype == torch.float16
            continue
        with pytest.raises(Exception, match=f"'{model_type}' does not support float16"):
            configured(folder, dtype="float16")


def test_a_folder_that_reads_further_than_its_length_needs_the_new_length(tmp_path):
    """docs/transformers.md: --hf-overrides '{"max_position_embeddings": 512}'."""
    attached = {tuple(range(LAYERS)): posenc.create("yarn", **HALF, factor=4.0, trained_length=TRAINED)}
    folder, prompt = saved(tmp_path, attached=attached), (PROMPT * 4)[:300]
    with pytest.raises(Exception, match="max_position_embeddings"):
        configured(folder, max_model_len=512)
    with serving(folder, 512, hf_overrides={"max_position_embeddings": 512}) as llm:
        chosen, greedy = read(llm, prompt)
    wanted, tokens = read_here(folder, prompt)
    assert (chosen - wanted).abs().max() < NEAR
    assert greedy == tokens


# What posenc inspect --extend-to prints, for each family.

FAMILIES = [
    *("llama", "qwen2", "qwen3", "mistral", "gemma", "gemma2", "gemma3_text"),
    *("phi3", "glm4", "olmo2", "granite", "stablelm", "cohere"),
]
LENGTH = 4 * TRAINED
AT = [0, 1, TRAINED, LENGTH - 1]


def rows(model: Any) -> list[list[float]]:
    """Of the first layer's table."""
    for path, module in model.named_modules():
        if path.endswith("layers.0.self_attn.rotary_emb"):
            held = getattr(module, "cos_sin_cache", None)
            if held is None:  # of longrope: short factors, then long ones
                start = module.original_max_position_embeddings if module.use_long_rope else 0
                return module.long_short_cos_sin_cache[[start + at for at in AT]].float().tolist()
            return held[AT].float().tolist()
    raise AssertionError("no rotary_emb")


@pytest.mark.parametrize("model_type", FAMILIES)
def test_printed_commands_turn_as_posenc_reads_their_settings(model_type, tmp_path):
    folder = saved(tmp_path, model_type)
    written = json.loads((folder / "config.json").read_text("utf-8"))
    path, part = extensible(read_config(written, defaults=True))
    tried = []
    for method in METHODS:
        try:
            (extension,) = extend(written, part, LENGTH, (method,), path)
        except ValueError:
            continue
        (command,) = (one.command for one in runtimes(extension) if one.name == "vLLM")
        if not command:
            continue
        words = shlex.split(command)
        overrides = json.loads(words[words.index("--hf-overrides") + 1])
        length = int(words[words.index("--max-model-len") + 1])
        with serving(folder, length, hf_overrides=overrides, load_format="dummy") as llm:
            (found,) = llm.apply_model(rows)
        encoding = read_config(written | overrides, defaults=True).encoding(0)
        encoding = encoding.at_length(length) if encoding.made_for is not None else encoding
        cos, sin = encoding.tables(posenc.Positions.at(torch.tensor([AT])), torch.float32)
        wanted = torch.cat((cos[0], sin[0]), dim=-1)
        torch.testing.assert_close(
            torch.tensor(found), wanted, rtol=0, atol=1e-4, msg=lambda text, m=method: f"{m}: {text}"
        )
        tried.append(method)
    assert tried, "no command was printed"


# A server.


def test_a_server_answers_over_http(tmp_path):
    attached = {(0, 1): posenc.create("yarn", **HALF, factor=4.0, trained_length=32), (3,): posenc.create("nope")}
    folder = saved(tmp_path / "saved", attached=attached)
    words = Tokenizer(WordLevel({f"w{n}": n for n in range(512)}, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w2").save_pretrained(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--port", str(port)]
    command += [
        "--host",
        "127.0.0.1",
        "--distributed-executor-backend",
        "uni",
        "--dtype",
        "float32",
        "--max-model-len",
        str(TRAINED),
        "--enforce-eager",
    ]
    command += ["--served-model-name", "small", "--max-num-seqs", "2"]
    log = tmp_path / "log"
    environment = {key: value for key, value in os.environ.items() if key != "VLLM_ENABLE_V1_MULTIPROCESSING"}
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, env=environment | SETTINGS)
    try:
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + START
        while not _healthy(f"{address}/health"):
            assert server.poll() is None, log.read_text("utf-8")[-3000:]
            assert time.monotonic() < until, log.read_text("utf-8")[-3000:]
            time.sleep(2)
        asked = {"model": "small", "prompt": PROMPT, "temperature": 0, "max_tokens": 8}
        asked |= {"ignore_eos": True, "return_token_ids": True}
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{address}/v1/completions", json.dumps(asked).encode(), headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            given = json.loads(answer.read())
    finally:
        server.terminate()
        try:
            server.wait(300)
        except subprocess.TimeoutExpired:
            server.kill()
    assert given["choices"][0]["token_ids"] == read_here(folder, PROMPT)[1]


def _healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_the_families_of_the_plugin_are_tried():
    """Those of one rotation alone; their mixtures of experts have the same attention file by file."""
    assert set(plugin.SERVED) - {"mixtral", "qwen2_moe", "qwen3_moe"} <= set(FAMILIES)
