"""What is attached, written into a model's configuration: a saved folder says it, and `from_pretrained` restores it."""

from __future__ import annotations

import importlib
from typing import Any

from torch import nn

KEY = "posenc"
FORMAT = 1


def write_config(model: nn.Module, held: nn.ModuleList, layers: dict[int, int]) -> None:
    """Sets `model.config.posenc`: the encodings as classes with their arguments, and which layer has which."""
    setattr(
        model.config,
        KEY,
        {
            "format": FORMAT,
            "encodings": [described(encoding) for encoding in held],
            "layers": {str(n): number for n, number in layers.items()},
        },
    )


def forget_config(model: nn.Module) -> None:
    if hasattr(model.config, KEY):
        delattr(model.config, KEY)


def described(encoding: Any) -> dict[str, Any]:
    """Plain JSON from which `restored` makes the encoding again, without its parameters."""
    from posenc.stack import Stack

    if isinstance(encoding, Stack):
        return {"stack": [described(part) for part in encoding]}
    kind = type(encoding)
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "arguments": {name: _plain(kind.__name__, name, value) for name, value in encoding.configuration.items()},
    }


def _plain(owner: str, name: str, value: Any) -> Any:
    from posenc.frequencies import Frequencies

    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(owner, name, one) for one in value]
    if isinstance(value, frozenset):
        return {"frozenset": sorted(value)}
    if isinstance(value, Frequencies):
        fields = {field: _plain(owner, name, getattr(value, field)) for field in value.__dataclass_fields__}
        return {"frequencies": fields}
    raise TypeError(f"encoding: {owner}'s {name} is a {type(value).__name__}, which a config.json cannot hold")


def restored(made: dict[str, Any]) -> Any:
    """The encoding that `described` was given, with fresh parameters. Raises ValueError for what it did not write."""
    from posenc.encoding import PositionalEncoding
    from posenc.stack import Stack

    if "stack" in made:
        return Stack(*(restored(part) for part in made["stack"]))
    module, _, name = str(made.get("class", "")).rpartition(".")
    if not module.startswith("posenc."):
        raise ValueError(f"posenc: the configuration names the class {made.get('class')!r}; only posenc's own are restored")
    kind = getattr(importlib.import_module(module), name, None)
    if not (isinstance(kind, type) and issubclass(kind, PositionalEncoding)):
        raise ValueError(f"posenc: {made['class']!r} is no encoding of this version of posenc")
    return kind(**{key: _value(value) for key, value in made["arguments"].items()})


def _value(value: Any) -> Any:
    from posenc.frequencies import Frequencies

    if isinstance(value, list):
        return tuple(_value(one) for one in value)
    if isinstance(value, dict) and "frozenset" in value:
        return frozenset(value["frozenset"])
    if isinstance(value, dict) and "frequencies" in value:
        return Frequencies(**{key: _value(one) for key, one in value["frequencies"].items()})
    return value
