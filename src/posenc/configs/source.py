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
    "peft_type": "the configuration of an adapter",
    "image_processor_type": "the configuration of an image processor",
    "feature_extractor_type": "the configuration of a feature extractor",
    "processor_class": "the configuration of a processor",
    "eos_token_id": "perhaps a generation_config.json",
    "error": "perhaps the message of a server",
}


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
        raise FileNotFoundError(f"{path}: no such file; give a config.json, a folder with one, or -")
    if not path.is_file():
        raise ConfigError(f"{path}: not a regular file; give a config.json, a folder with one, or -")
    with path.open("rb") as file:
        return parsed(file.read(LARGEST + 1), str(path))


def family(data: Mapping[str, Any]) -> Any:
    """The model type, or what says as much: diffusers' _class_name, the keys of Mistral's params.json.

    "" if only architectures can tell; None if nothing does.
    """
    if data.get("model_type") in (None, "transformer") and data.keys() >= MISTRAL:
        return "params.json"
    model_type = data.get("model_type", data.get("_class_name"))
    return "" if model_type is None and data.get("architectures") else model_type


def another(data: Mapping[str, Any]) -> str:
    """Which other file beside a model's weights these keys are; "" where it is not known."""
    return next((name for key, name in OTHER_FILES.items() if key in data), "")


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
