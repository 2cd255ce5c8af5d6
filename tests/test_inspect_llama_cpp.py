"""Converted files and printed commands in a llama.cpp that runs, on the processor: target llama-cpp of tools/acceptance.py.

Its own converter makes the files, in float32. Their logits, through the API of llama-cpp-python, are compared with those of
transformers for the same weights and for the settings that `posenc inspect --extend-to` writes for it.
"""

from __future__ import annotations

import copy
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
import trained_models
import transformers

import gguf_logits
from posenc.configs import read_config, spec_of
from posenc.configs.report.difference import differences
from posenc.configs.report.extension import extend, extensible
from posenc.configs.report.extension_methods import METHODS
from posenc.configs.report.runtimes import runtimes

pytest.importorskip("llama_cpp")
transformers.logging.set_verbosity_error()

TRAINED, LENGTH = 128, 512
SIZES = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": TRAINED,
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
FAMILIES: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("llama", "mistral", "qwen2", "qwen3", "gemma", "granite", "cohere")},
    **{name: {} for name in ("smollm3", "olmo", "starcoder2")},
    "gemma2": {"sliding_window": 64, "query_pre_attn_scalar": 32},  # llama.cpp divides by the root of the head alone
    "gemma3_text": {"sliding_window": 64, "query_pre_attn_scalar": 32, "num_hidden_layers": 6},
    "phi3": {},
    "stablelm": {"partial_rotary_factor": 0.5},
    "glm4": {"partial_rotary_factor": 0.5},
    "phi": {"partial_rotary_factor": 0.5, "num_key_value_heads": 2, "intermediate_size": 256},
}
TOKENIZER = {"model": {"type": "WordPiece", "vocab": {f"w{n}": n for n in range(512)}}, "added_tokens": []}
TOKENS = torch.randint(3, 512, (LENGTH - 12,), generator=torch.Generator().manual_seed(0)).tolist()
AT = [*range(16), *range(len(TOKENS) - 16, len(TOKENS))]
NEAR = (
    2e-2  # log probabilities of two programs in float32; settings that are not read change them by more than ten times that
)
OF_TABLE = 5e-2  # the same where llama.cpp looks GELU up in a table of float16: ggml-cpu/vec.h
GELU = {"gemma", "gemma2", "gemma3_text", "starcoder2", "phi"}


@pytest.fixture(scope="module", autouse=True)
def converter(tmp_path_factory):
    gguf_logits.use(gguf_logits.sources(tmp_path_factory.mktemp("sources")))


def saved(folder: Path, model_type: str, **more: Any) -> Path:
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **(SIZES | FAMILIES.get(model_type, {}) | more))
    config.dtype = "float32"
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER), "utf-8")  # for converters that look into it
    return folder


def converted(folder: Path) -> Path:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    return gguf_logits.converted(folder, config["architectures"][0], config["vocab_size"])


@torch.no_grad()
def expected(folder: Path, tokens: list[int], at: list[int], **changes: Any) -> torch.Tensor:
    """Log probabilities in transformers."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **changes).eval()
    return model(torch.tensor([tokens]), logits_to_keep=torch.tensor(at)).logits[0].log_softmax(-1)


def found(path: Path, tokens: list[int], at: list[int], **options: Any) -> torch.Tensor:
    return gguf_logits.logits(path, tokens, at, **options).log_softmax(-1)


def commands(config: dict[str, Any], length: int) -> dict[str, tuple[list[str], dict[str, Any]]]:
    """For each method that has one: the words of the command, and the same settings for transformers."""
    path, part = extensible(read_config(config, defaults=True))
    made = {}
    for method in METHODS:
        try:
            (extension,) = extend(config, part, length, (method,), path)
        except ValueError:
            continue  # a method that the family's code does not support
        (command,) = (one.command for one in runtimes(extension) if one.name == "llama.cpp")
        if command:
            made[method] = shlex.split(command), extension.standard
    return made


def held(folder: Path, length: int, tokens: list[int], at: list[int], near: float = NEAR) -> dict[str, float]:
    """The largest error of the file alone, "", and of each printed command, whose settings must make a difference."""
    config, path = json.loads((folder / "config.json").read_text("utf-8")), converted(folder)
    assert differences(spec_of(path), spec_of(config)) == []
    plain = expected(folder, tokens, at)
    errors = {"": (found(path, tokens, at, n_ctx=length) - plain).abs().max().item()}
    for method, (words, standard) in commands(config, length).items():
        wanted = expected(folder, tokens, at, **standard)
        assert (wanted - plain).abs().max() > 10 * near, method
        errors[method] = (found(path, tokens, at, **gguf_logits.settings(words)) - wanted).abs().max().item()
    print({name: f"{error:.1e}" for name, error in errors.items()})
    return errors


@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_converted_file_and_every_printed_command_give_what_transformers_gives(model_type, tmp_path):
    near = OF_TABLE if model_type in GELU else NEAR
    errors = held(saved(tmp_path, model_type), LENGTH, TOKENS, AT, near)
    assert {name for name, error in errors.items() if error >= near} == set()
    assert set(errors) >= ({"", "ntk"} if model_type == "phi3" else {"", "ntk", "linear"})


def test_smollm2_beyond_its_length(tmp_path):
    """All 30 trained layers, whose file says 2 048 of its 8 192 positions here, read 2 600 tokens of a novel."""
    file = trained_models.smollm2()
    model = transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    config = copy.deepcopy(model.config)
    del config.quantization_config
    config.max_position_embeddings = 2048
    plain = type(model)(config)
    plain.load_state_dict(model.state_dict())
    plain.save_pretrained(tmp_path)
    tokens = tokenizer(trained_models.botchan().read_text("utf-8")[:16000]).input_ids[:2600]
    errors = held(tmp_path, 8192, tokens, [0, 1, 2, 3, 1000, *range(2590, 2600)])
    assert len(tokens) == 2600
    assert max(errors.values()) < NEAR
    assert set(errors) == {"", "yarn", "ntk", "linear"}
