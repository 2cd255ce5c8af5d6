"""What a callable keeps outside of itself: in globals of its package, in what it closes over, on its classes.

A deep copy of a function is the function itself, so that all copies share such state. A law about a very first call puts it
back to what it was before any call, and afterwards to what it had become.
"""

from __future__ import annotations

import contextlib
import copy
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from torch import nn

MOST_PARAMETERS = 10_000_000  # larger modules are left as they are: a copy takes as much memory again
CODE = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


class Place(NamedTuple):
    """Where something is kept: how it is read and written."""

    read: Callable[[], Any]
    write: Callable[[Any], None]


class Kept:
    """The state of a callable that deep copies of it share. Made before the first call."""

    def __init__(self, function: object) -> None:
        self.places: list[Place] = []
        self.before: list[Any] = []
        for place in _places(function):
            with contextlib.suppress(Exception):  # what cannot be copied or written is left as it is
                value = place.read()
                if not isinstance(value, CODE) and not _is_large(value):
                    before = copy.deepcopy(value)
                    place.write(value)
                    self.places.append(place)
                    self.before.append(before)

    @contextlib.contextmanager
    def as_before(self) -> Iterator[None]:
        """The state is what it was before any call inside; then again what it had become."""
        now = [place.read() for place in self.places]
        try:
            for place, value in zip(self.places, self.before, strict=True):
                place.write(copy.deepcopy(value))
            yield
        finally:
            for place, value in zip(self.places, now, strict=True):
                place.write(value)


def _is_large(value: object) -> bool:
    return isinstance(value, nn.Module) and sum(p.numel() for p in value.parameters()) > MOST_PARAMETERS


def _places(function: object) -> Iterator[Place]:
    waiting = [function]
    if _package(function) == "posenc":  # an adapter: what it adapts is of interest
        waiting = list(vars(function).values()) if hasattr(function, "__dict__") else []
    packages = {_package(value) for value in waiting} - {"posenc", "torch", "builtins", "functools"}
    seen = set()
    while waiting:
        value = waiting.pop()
        value = value if isinstance(value, types.FunctionType | type) else type(value)
        if value in seen or _package(value) not in packages:
            continue
        seen.add(value)
        if isinstance(value, type):
            waiting += [*vars(value).values(), *value.__bases__]
            yield from (_attribute(value, name) for name in vars(value) if not name.startswith("__"))
            continue
        for cell in value.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty one
                waiting.append(cell.cell_contents)
            yield _attribute(cell, "cell_contents")
        for name in _names(value.__code__) & value.__globals__.keys():
            waiting.append(value.__globals__[name])
            yield _entry(value.__globals__, name)
        yield from (_attribute(value, name) for name in ("__defaults__", "__dict__"))


def _package(value: object) -> str:
    """The first part of the name of the module of a function, a class or an object's class."""
    code = value if isinstance(value, types.FunctionType | type) else type(value)
    return str(code.__module__).partition(".")[0]


def _attribute(of: Any, name: str) -> Place:
    return Place(lambda: getattr(of, name), lambda value: setattr(of, name, value))


def _entry(of: dict[str, Any], name: str) -> Place:
    return Place(lambda: of[name], lambda value: of.__setitem__(name, value))


def _names(code: types.CodeType) -> set[str]:
    """What the code and the functions inside of it read by name."""
    inside = (_names(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*inside)


NOTHING = Kept(None)
