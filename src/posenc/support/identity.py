"""The identity of an encoding: its class, its configuration and, if its tables hold parameters, which parameters.

Tables that one encoding prepared are used by another only where both have the same identity. A configuration is frozen
and compared by SHA-256 of all that is in it: every entry of a tensor, every bit of a float.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import inspect
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc.support.checks import shown

WRITTEN = (int, float, str, bool, type(None))
"""Told by their printed form, which for a float is exact."""


class Configuration(Mapping[str, Any]):
    """The arguments that made an encoding, frozen: lists become tuples; tensors and arrays are copied.

    `digest` is SHA-256 of names and values. Two configurations are equal where their digests are. A value that cannot be
    told by what is in it (a lambda, a parameter, a tensor without data) makes the configuration unlike every other.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: _frozen(value) for name, value in values.items()}
        self.get = self._values.get  # type: ignore[method-assign]  # asked at every call of attention
        self.encoded = {name: _encoded(value) for name, value in self._values.items()}
        named = (part for name in sorted(self.encoded) for part in (str(name).encode(), self.encoded[name]))
        self.digest = hashlib.sha256(_joined(named)).digest()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __or__(self, changes: Mapping[str, Any]) -> Configuration:
        return Configuration({**self._values, **changes})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return self.digest == (other if isinstance(other, Configuration) else Configuration(other)).digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Configuration({self._values})"

    def __reduce__(self) -> tuple[type[Configuration], tuple[dict[str, Any]]]:
        return Configuration, (self._values,)


class Identity:
    """Two names of an encoding, computed once: by its configuration, and by these very parameters too.

    A copy has the same name by configuration, and another by parameters, since it has parameters of its own. Where the
    configuration lacks an argument of the constructor, nothing but the object itself is equal to it.
    """

    def __init__(self, kind: type, configuration: Configuration) -> None:
        self._made_of = kind, configuration
        name = f"{kind.__module__}.{kind.__qualname__}".encode() + configuration.digest
        name += os.urandom(16) if left_out(kind, configuration) else b""
        self.by_configuration = (
            f"{kind.__name__}({described(kind, configuration)}) #{hashlib.sha256(name).hexdigest()[:16]}"
        )
        self.by_parameters = f"{self.by_configuration} with parameters #{os.urandom(8).hex()}"

    def __reduce__(self) -> tuple[type[Identity], tuple[type, Configuration]]:
        return Identity, self._made_of


def left_out(kind: type, configuration: Mapping[str, Any]) -> list[str]:
    """The arguments of a constructor outside posenc that `super().__init__` was not given: nothing else says them.

    posenc's own may say one by another: ALiBi's bias_max is in its slopes.
    """
    return [name for name in _own_arguments(kind) if name not in configuration]


@functools.cache
def _own_arguments(kind: type) -> tuple[str, ...]:
    """The names of the constructor's arguments, but for *args and **options; none where posenc has written it."""
    written = next(base for base in kind.__mro__ if "__init__" in vars(base))
    if written.__module__.partition(".")[0] == "posenc":
        return ()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = list(inspect.signature(vars(written)["__init__"]).parameters.values())[1:]
    return tuple(parameter.name for parameter in parameters if parameter.kind in named)


def without_digests(identity: str) -> str:
    """An identity as messages say it: class and arguments."""
    return re.sub(r",? (with parameters )?#[0-9a-f]{8,16}", "", identity)


def label(encoding: Any) -> str:
    """The identity of an encoding as messages say it."""
    return without_digests(encoding.identity)


def described(kind: type, configuration: Configuration) -> str:
    """The arguments that differ from the defaults of the constructor, as a reader would write them."""
    usual, large = _defaults(kind), (Tensor, np.ndarray)
    return ", ".join(
        f"{name}={shown(value) if isinstance(value, large) else repr(value)}"
        for name, value in configuration.items()
        if configuration.encoded[name] != usual.get(name)
    )


@functools.cache
def _defaults(kind: type) -> dict[str, bytes]:
    """The defaults of the constructor and of the base constructors that receive its **options."""
    constructors = (vars(base)["__init__"] for base in reversed(kind.__mro__[:-1]) if "__init__" in vars(base))
    parameters = (p for init in constructors for p in inspect.signature(init).parameters.values())
    return {p.name: _encoded(_frozen(p.default)) for p in parameters if p.default is not inspect.Parameter.empty}


def _frozen(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value if value.requires_grad or value.is_meta else value.clone()
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.setflags(write=False)
        return value
    if type(value) in (list, tuple):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return Configuration(value)
    return frozenset(value) if isinstance(value, set) else value


def _encoded(value: Any) -> bytes:
    """Bytes that tell a value from all others: of its kind and its parts, each with its length before it."""
    if type(value) in WRITTEN:
        return f"{type(value).__name__}:{value!r}".encode()
    parts = _parts(value)
    if parts is None:
        return os.urandom(32)  # its value cannot be read, so it equals nothing, not even itself
    return _joined(parts)


def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join([piece for part in parts for piece in (len(part).to_bytes(8, "little"), part)])


def _parts(value: Any) -> list[bytes] | None:
    """The kind of a value and what distinguishes it from others of that kind; None if nothing does."""
    if isinstance(value, np.generic):
        return [_encoded(value.item())]
    if isinstance(value, (bool, int, float, str, bytes, enum.Enum, torch.dtype, torch.device)):
        return [_name(type(value)), repr(value).encode()]
    if isinstance(value, Configuration):
        return [b"configuration", value.digest]
    if isinstance(value, Mapping):
        return [b"mapping", *sorted(_encoded(name) + _encoded(item) for name, item in value.items())]
    if isinstance(value, frozenset):
        return [b"set", *sorted(map(_encoded, value))]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (_encoded(getattr(value, field.name)) for field in dataclasses.fields(value))
        return [b"dataclass", _name(type(value)), *fields]
    if type(value) is tuple and value and all(type(item) is float for item in value):  # frequencies, all at once
        return [b"floats", array("d", value).tobytes()]
    if isinstance(value, tuple):
        return [b"tuple", _name(type(value)), *map(_encoded, value)]
    if isinstance(value, Tensor):
        return _parts_of_tensor(value)
    if isinstance(value, np.ndarray):
        plain = value.dtype.kind in "biufc"
        whole = hashlib.sha256(value.tobytes()).digest()
        return [b"array", str(value.dtype).encode(), str(value.shape).encode(), whole] if plain else None
    if isinstance(value, type) or inspect.isroutine(value):
        known = "<" not in value.__qualname__ and not inspect.ismethod(value)
        return [b"name", _name(value)] if known else None
    return [b"encoding", identity.encode()] if isinstance(identity := getattr(value, "identity", None), str) else None


def _parts_of_tensor(value: Tensor) -> list[bytes] | None:
    """dtype, shape and SHA-256 of every byte; None where the bytes are not there, or change by training."""
    if value.requires_grad or value.is_meta or value.is_quantized or value.layout is not torch.strided:
        return None
    flat = value.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
    whole = hashlib.sha256(flat.numpy().data).digest()
    return [b"tensor", str(value.dtype).encode(), str(list(value.shape)).encode(), whole]


def _name(value: Any) -> bytes:
    return f"{value.__module__}.{value.__qualname__}".encode()
