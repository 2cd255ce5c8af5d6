"""Loads a configuration from a file, a folder, standard input or a mapping, as data and within limits."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.support import strict_json

LARGEST = 16 * 2**20  # bytes: a configuration with long factors is some kilobytes
NAMES = ("config.json", "params.json")  # the second is Mistral's own format
MISTRAL = {"dim", "n_layers", "n_heads", "head_dim", "hidden_dim"}
CONSTANTS = {"Infinity": math.inf}  # time_step_limit of Mamba 2 and its hybrids; no key that posenc reads
OTHER_FILES = {  # a key of other JSON files beside a model's weights -> what the file is
    "weight_map": "the index of a checkpoint's files",
    "added_tokens": "a tokenizer",
    "tokenizer_class": "the configuration of a tokenizer",
    "added_tokens_decoder": "the configuration of a tokenizer",
    "unk_token": "the special tokens of a tokenizer",
    "chat_template": "a chat template",
    "peft_type": "the configuration of an adapter",
    "image_processor_type": "the configuration of an image processor",
    "video_processor_type": "the configuration of a video processor",
    "feature_extractor_type": "the configuration of a feature extractor",
    "processor_class": "the configuration of a processor",
    "pooling_mode_mean_tokens": "the pooling of sentence-transformers",
    "log_history": "the state of a trainer",
}
PERHAPS = {  # the same, of keys that say less
    "eos_token_id": "perhaps a generation_config.json",
    "quant_method": "perhaps the settings of a quantization",
    "error": "perhaps the message of a server",
    "message": "perhaps the message of a server",
    "detail": "perhaps the message of a server",
}
GIVE = "a config.json, a folder with one, or -"
NAMED = 4  # files of a folder in a message


def load(source: str | PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """The configuration as a dict. `source` is a file, a folder with config.json, "-" for standard input, or a mapping.

    Raises ConfigError for what is no model's configuration, FileNotFoundError if there is no file.
    """
    if isinstance(source, Mapping):
        return checked(dict(source), "the mapping")
    if str(source) == "-":
        if sys.stdin is None:  # Python's, where a shell closed it: <&-
            raise ConfigError("-: standard input is closed; give a config.json, or write one into a pipe")
        return parsed(sys.stdin.buffer.read(LARGEST + 1), "standard input")
    path = Path(source)
    if path.is_dir():
        path = next((path / name for name in NAMES if (path / name).exists()), path / NAMES[0])
    if path.is_symlink() and not path.exists():
        raise FileNotFoundError(
            f"{path}: a link to {path.readlink()}, which is not there; download the file (git annex get, git lfs pull)"
        )
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; {_instead(path.parent) if path.name in NAMES else ''}give {GIVE}")
    if not path.is_file():
        raise ConfigError(f"{path}: not a regular file; give {GIVE}")
    with path.open("rb") as file:
        return parsed(file.read(LARGEST + 1), str(path))


def family(data: Mapping[str, Any]) -> Any:
    """The model type, or what says as much: diffusers' _class_name, the keys of Mistral's params.json.

    "" if only architectures can tell; None if nothing does.
    """
    if data.get("model_type") in (None, "transformer") and data.keys() >= MISTRAL:
        return "params.json"
    model_type = data.get("model_type", None if _is_pipeline(data) else data.get("_class_name"))
    return "" if model_type is None and data.get("architectures") else model_type


def another(data: Mapping[str, Any], *, sure: bool = False) -> str:
    """Which other file beside a model's weights these keys are; "" where it is not known, or with `sure` not certain."""
    if _is_pipeline(data):
        return "the index of a pipeline of diffusers, whose parts are folders beside it"
    known = OTHER_FILES if sure else OTHER_FILES | PERHAPS
    return next((name for key, name in known.items() if key in data), "")


def _is_pipeline(data: Mapping[str, Any]) -> bool:
    return str(data.get("_class_name", "")).endswith("Pipeline")


def _instead(folder: Path) -> str:
    """What a folder without a config.json has: folders with one and GGUF files first."""
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    better = [one for one in inside if one.suffix == ".gguf" or (one / NAMES[0]).exists()]
    named = [one.name for one in (better or inside)]
    more = ", …" * (len(named) > NAMED)
    return f"{folder} has {', '.join(named[:NAMED])}{more}; " if named else ""


def folder(source: str | PathLike[str] | Mapping[str, Any]) -> Path | None:
    """The folder whose config.json `source` is; None for anything else."""
    if isinstance(source, Mapping) or str(source) == "-":
        return None
    path = Path(source)
    return path if path.is_dir() else path.parent if path.name == "config.json" else None


def parsed(text: bytes, name: str) -> dict[str, Any]:
    if len(text) > LARGEST:
        raise ConfigError(f"{name}: larger than {LARGEST // 2**20} MiB, which is too large for a model's configuration")
    try:
        data = strict_json.loads(text, CONSTANTS)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None
    return checked(data, name)


def checked(data: Any, name: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ConfigError(f"{name}: expected a JSON object such as a model's config.json, got {_kind(data)}")
    try:
        strict_json.check_depth(data)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}, too deep for a model's configuration") from None
    return data


def _kind(value: Any) -> str:
    return {list: "a list", str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")
