"""What is attached, as the entry "posenc" of a config.json: a saved folder says it, and `from_pretrained` reads it.

    {"format": 1,
     "model_type": "llama",                           the model's own, since the folder has another
     "encodings": [{"class": "posenc.encodings.rope.RoPE", "arguments": {"d_head": 64, …}},
                   {"stack": [{"class": "my_package.mine:Mine", "arguments": {}}, …]}],
     "layers": {"0": 0, "1": 0, "2": 1}}              which encoding each layer has; "encoder.0" in a model with two parts

Encodings of posenc are found by themselves. The module of another is imported only where the caller trusts its code.
"""

from __future__ import annotations

import math
import pkgutil
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from torch import nn

from posenc.combined import Stack
from posenc.configs.attached import KEY, by_part
from posenc.encoding import PositionalEncoding
from posenc.frequencies import Frequencies
from posenc.support.checks import shown
from posenc.support.identity import left_out

FORMAT = 1
OWN = ("posenc.encoding.", "posenc.encodings.")  # where posenc's encodings are
DEEPEST = 8  # lists within lists, and stacks within stacks, whose traits take 2^depth steps
LARGEST = {"d_model": 2**20, "d_head": 2**20, "n_heads": 2**20}  # sizes from which lists are made; others have 2**53
LAYER = re.compile(r"((encoder|decoder)\.)?(0|[1-9][0-9]{0,8})")  # a key of the entry "layers"
SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf}  # as transformers writes them: {"__float__": "Infinity"}


def entry_of(model_type: str, held: nn.ModuleList, layers: Mapping[str, Mapping[int, int]]) -> dict[str, Any]:
    """The entry: the encodings as classes with their arguments, and which layer of which part has which.

    Raises TypeError for an encoding that could not be made again from it.
    """
    return {
        "format": FORMAT,
        "model_type": model_type,
        "encodings": [described(encoding) for encoding in held],
        "layers": {
            f"{part}.{n}" if part else str(n): number for part, of_part in layers.items() for n, number in of_part.items()
        },
    }


def described(encoding: Any) -> dict[str, Any]:
    """Plain JSON from which `restored` makes the encoding again, without its parameters. Raises TypeError as `entry_of`."""
    if isinstance(encoding, Stack):
        return {"stack": [described(part) for part in encoding]}
    kind = type(encoding)
    if lost := left_out(kind, encoding.configuration):
        name = lost[0]
        raise TypeError(
            f"encoding: {kind.__name__}'s configuration lacks its argument {name}, so a folder could not say it; "
            f"pass it on in its constructor: super().__init__({name}={name})"
        )
    return {
        "class": _path(kind),
        "arguments": {name: _plain(kind.__name__, name, value) for name, value in encoding.configuration.items()},
    }


def _path(kind: type) -> str:
    """Where the class is found again: "posenc.encodings.rope.RoPE", or "module:Name" for one that is not posenc's."""
    path = f"{kind.__module__}.{kind.__qualname__}"
    if path.startswith(OWN):
        return path
    value: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        value = getattr(value, name, None)
    if value is not kind or kind.__module__ == "__main__":
        raise TypeError(
            f"encoding: the class {path} could not be found again by a program that loads the folder; define it at the top "
            "of a module that can be imported, not in a script or within a function"
        )
    return f"{kind.__module__}:{kind.__qualname__}"


def _plain(owner: str, name: str, value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(owner, name, item) for item in value]
    if isinstance(value, frozenset):
        return {"frozenset": sorted(value)}
    if isinstance(value, Frequencies):
        return {"frequencies": {field.name: _plain(owner, name, getattr(value, field.name)) for field in fields(value)}}
    raise TypeError(f"encoding: {owner}'s {name} is a {type(value).__name__}, which a config.json cannot hold")


def restored(entry: Any, *, trust_code: bool) -> tuple[list[PositionalEncoding], dict[str, dict[int, int]]]:
    """The encodings, with fresh parameters, and the number of each layer's, by part of the model.

    Raises ValueError, which names the place within the entry, for what `entry_of` does not write.
    """
    held = _object(KEY, entry, ("format", "model_type", "encodings", "layers"))
    if type(held["format"]) is not int or held["format"] != FORMAT:
        raise _wrong(f"{KEY}.format", f"{FORMAT}, which this posenc reads", held["format"])
    entries = _list(f"{KEY}.encodings", held["encodings"])
    encodings = [_encoding(f"{KEY}.encodings[{n}]", entry, trust_code, 0) for n, entry in enumerate(entries)]
    if not isinstance(held["layers"], dict) or not held["layers"]:
        raise _wrong(f"{KEY}.layers", "an object with a number for each layer", held["layers"])
    for name, number in held["layers"].items():
        if not LAYER.fullmatch(name):
            raise _wrong(f"{KEY}.layers", "keys such as '0' or 'encoder.0', the numbers of layers", name)
        if type(number) is not int or not 0 <= number < len(encodings):
            raise _wrong(f"{KEY}.layers.{name}", f"the number of an encoding, from 0 to {len(encodings) - 1}", number)
    if unused := sorted(set(range(len(encodings))) - set(held["layers"].values())):
        raise ValueError(f"{KEY}.layers: no layer has encoding {unused[0]}")
    return encodings, by_part(held["layers"])


def _encoding(where: str, entry: Any, trust_code: bool, depth: int) -> PositionalEncoding:
    if depth == DEEPEST:
        raise ValueError(f"{where}: nested too deeply")
    if isinstance(entry, dict) and "stack" in entry:
        parts = _list(f"{where}.stack", _object(where, entry, ("stack",))["stack"])
        encodings = [_encoding(f"{where}.stack[{n}]", part, trust_code, depth + 1) for n, part in enumerate(parts)]
        return _built(f"{where}.stack", Stack, *encodings)
    held = _object(where, entry, ("class", "arguments"))
    if not isinstance(held["arguments"], dict):
        raise _wrong(f"{where}.arguments", "an object", held["arguments"])
    arguments = {
        name: _value(f"{where}.arguments.{name}", argument, most=LARGEST.get(name, 2**53))
        for name, argument in held["arguments"].items()
    }
    return _built(f"{where}.arguments", _class(f"{where}.class", held["class"], trust_code), **arguments)


def _class(where: str, path: Any, trust_code: bool) -> type[PositionalEncoding]:
    if not isinstance(path, str):
        raise _wrong(where, "the path of a class", path)
    if not path.startswith(OWN):
        if ":" not in path or path.startswith("__main__"):
            raise _wrong(where, "a class of posenc.encodings, or 'module:Name' for another", path)
        if not trust_code:
            raise ValueError(
                f"{where}: {shown(path)} is not posenc's, and importing its module runs its code; if you trust it, call "
                "from_pretrained(…, trust_code=True)"
            )
    module, _, name = path.partition(":") if ":" in path else path.rpartition(".")
    try:
        kind = pkgutil.resolve_name(f"{module}:{name}")
    except Exception as error:  # of the module's own code too
        raise ValueError(f"{where}: {shown(path)} cannot be imported: {_said(error)}") from error
    if not (isinstance(kind, type) and issubclass(kind, PositionalEncoding)):
        raise _wrong(where, "the path of an encoding's class", path)
    return kind


def _built(where: str, kind: type[PositionalEncoding], *parts: PositionalEncoding, **arguments: Any) -> PositionalEncoding:
    try:
        return kind(*parts, **arguments)
    except Exception as error:  # whatever the constructor makes of damaged values
        raise ValueError(f"{where}: {kind.__name__} refuses them: {_said(error)}") from error


def _value(where: str, value: Any, depth: int = 0, most: int = 2**53) -> Any:
    if depth == DEEPEST:
        raise ValueError(f"{where}: nested too deeply")
    if isinstance(value, list):
        return tuple(_value(f"{where}[{n}]", item, depth + 1) for n, item in enumerate(value))
    if isinstance(value, int) and abs(value) > most:
        raise ValueError(f"{where}: expected a number up to {most}, got one of {value.bit_length()} bits")
    if not isinstance(value, dict):
        return value
    tag, held = next(iter(value.items()), ("", None))
    if len(value) == 1 and tag == "__float__" and held in SPECIAL:
        return SPECIAL[held]
    if len(value) == 1 and tag == "frozenset":
        numbers = _list(f"{where}.{tag}", held, least=0)
        if any(isinstance(item, (dict, list)) for item in numbers):
            raise _wrong(f"{where}.{tag}", "numbers or words", held)
        return frozenset(_value(f"{where}.{tag}[{n}]", item) for n, item in enumerate(numbers))
    if len(value) == 1 and tag == "frequencies":
        known = _object(f"{where}.{tag}", held, tuple(field.name for field in fields(Frequencies)))
        arguments = {name: _value(f"{where}.{tag}.{name}", item, depth + 1) for name, item in known.items()}
        try:
            return Frequencies(**arguments)
        except Exception as error:
            raise ValueError(f"{where}.{tag}: {_said(error)}") from error
    raise _wrong(where, "a value, a list, or an object with the one key frozenset or frequencies", value)


def _object(where: str, value: Any, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, f"an object with the keys {', '.join(keys)}", value)
    if missing := [key for key in keys if key not in value]:
        raise ValueError(f"{where}: the key {missing[0]!r} is missing")
    if unknown := [key for key in value if key not in keys]:
        raise ValueError(f"{where}: the key {shown(unknown[0])} is not known, expected {', '.join(keys)}")
    return value


def _list(where: str, value: Any, least: int = 1) -> list[Any]:
    if not isinstance(value, list) or len(value) < least:
        raise _wrong(where, "a list" if not least else "a list that is not empty", value)
    return value


def _wrong(where: str, expected: str, got: Any) -> ValueError:
    return ValueError(f"{where}: expected {expected}, got {shown(got)}")


def _said(error: Exception) -> str:
    """An error of code that is not known, on one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
