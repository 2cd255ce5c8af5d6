"""Loads a configuration from a file, a folder, standard input or a mapping, as data and within limits."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from posenc.dialects.errors import ConfigError

LARGEST = 16 * 2**20  # bytes: a configuration with long factors is some kilobytes
DEEPEST = 32


def load(source: str | PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """The configuration as a dict. `source` is a file, a folder with config.json, "-" for standard input, or a mapping.

    Raises ConfigError for what is no model's configuration, FileNotFoundError if there is no file.
    """
    if isinstance(source, Mapping):
        return checked(dict(source), "the mapping")
    if str(source) == "-":
        return parsed(sys.stdin.buffer.read(LARGEST + 1), "standard input")
    path = Path(source)
    if path.is_dir():
        path = path / "config.json"
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; give a config.json, a folder with one, or -")
    if not path.is_file():
        raise ConfigError(f"{path}: not a regular file; give a config.json, a folder with one, or -")
    with path.open("rb") as file:
        return parsed(file.read(LARGEST + 1), str(path))


def parsed(text: bytes, name: str) -> dict[str, Any]:
    if len(text) > LARGEST:
        raise ConfigError(f"{name}: larger than {LARGEST // 2**20} MiB, which is too large for a model's configuration")
    try:
        found = json.loads(text.decode("utf-8-sig"), parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: not a text file in UTF-8") from None
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply for a model's configuration") from None
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    except ValueError as error:
        raise ConfigError(f"{name}: not JSON: {str(error)[:200]}") from None
    return checked(found, name)


def checked(found: Any, name: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ConfigError(f"{name}: expected a JSON object such as a model's config.json, got {_kind(found)}")
    _check_depth(found, name)
    return found


def _check_depth(found: Any, name: str) -> None:
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise ConfigError(f"{name}: nested deeper than {DEEPEST} levels, too deep for a model's configuration")


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, Mapping) else list(value) if isinstance(value, (list, tuple)) else []


def _no_constant(text: str) -> float:
    if text == "Infinity":  # published files of Mamba 2 and its hybrids have it in time_step_limit; no key of ours takes it
        return math.inf
    raise ConfigError(f"holds {text}, which is not a JSON number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ConfigError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return found


def _kind(value: Any) -> str:
    return {list: "a list", str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")
