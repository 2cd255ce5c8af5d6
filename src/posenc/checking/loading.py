"""The implementation that a command names: FILE.py, FILE.py:NAME or package.module:attribute, and its seam.

Functions `write` and `read` of a file, or of an object that it names, are a cache.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from torch import nn

from posenc.checking.adapters import LENGTHS, CosSinTable, HuggingFaceRotary, TokensFirst
from posenc.checking.errors import Unusable
from posenc.checking.subject import Seam
from posenc.encoding import PositionalEncoding

SEAMS: tuple[str, ...] = get_args(Seam)
CACHE = "cache"


def load(target: str, seam: str | None) -> tuple[str, Any]:
    """(seam, callable). Classes, and functions that take nothing, are called; a posenc encoding has the seam "encoding",
    and what has `write` and `read` the seam "cache".

    Without NAME, the names of the seams (rotate, embed, table, bias, attention) are looked for in the file; without `seam`,
    the name decides, or the names of its arguments. Raises ValueError for what names no implementation.
    """
    where, _, name = target.partition(":") if ".py:" in target or not target.endswith(".py") else (target, "", "")
    module = _file(Path(where)) if where.endswith(".py") else _module(where)
    if not name:
        names = [seam_name for seam_name in SEAMS if callable(getattr(module, seam_name, None))]
        if not names and is_cache(module):
            return CACHE, module
        if len(names) != 1:
            got = f"has {', '.join(names)}" if names else "has none of them"
            raise ValueError(
                f"{target}: expected one function named {', '.join(SEAMS)}, or write and read of a cache, it {got}; "
                f"name one: {where}:NAME"
            )
        name = names[0]
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise ValueError(f"{target}: {where} has no {name}")
        value = getattr(value, part)
    named = value
    if isinstance(value, type):
        try:
            value = value()
        except TypeError as error:
            hint = f"def mine(): return {name}(…)"
            raise ValueError(
                f"{target}: a class is made without arguments, and {name} needs some ({error}); name a function that makes "
                f"one: {hint!r}, then {where}:mine"
            ) from error
    if name not in SEAMS and not isinstance(value, nn.Module):
        value = _built(target, value)
    if isinstance(value, PositionalEncoding):
        return "encoding", value
    if not seam and is_cache(value):
        return CACHE, value
    if isinstance(value, nn.Module) and "input_ids" in inspect.signature(value.forward).parameters:
        raise ValueError(_of_a_model(where, name, called=value is not named))
    if isinstance(value, nn.Module) and not seam:
        return _of_module(target, name, value, getattr(module, "apply_rotary_pos_emb", None))
    if not callable(value):
        raise ValueError(f"{target}: expected a callable, got {type(value).__name__}")
    return seam or _seam(target, name, value), value


def is_cache(value: Any) -> bool:
    """Whether it is an adapter of a cache: posenc.checking.caches says what its functions are."""
    return callable(getattr(value, "write", None)) and callable(getattr(value, "read", None))


def _built(target: str, value: Any) -> Any:
    """What a function without arguments returns; anything else as it is."""
    if not inspect.isfunction(value) or inspect.signature(value).parameters:
        return value
    try:
        return value()
    except Exception as error:
        raise Unusable(f"{target}: {type(error).__name__}: {error}") from error


def _of_a_model(where: str, name: str, *, called: bool) -> str:
    """What to run instead for a model that reads tokens. `called` says whether it is made by calling what has the name."""
    if where.endswith(".py"):
        code = f"runpy.run_path({where!r})[{name.split('.')[0]!r}]" + "".join(f".{part}" for part in name.split(".")[1:])
        modules = "runpy, "
    else:
        code, modules = f"{where}.{name}", f"{where}, "
    call = f"import {modules}posenc.transformers as pt; print(pt.check({code}{'()' * called}))"
    return f"{where}:{name} is a whole model, which other laws are for; run: python -c {shlex.quote(call)}"


def _of_module(target: str, name: str, module: nn.Module, apply: Any) -> tuple[str, Any]:
    """The seam of a loaded module by the arguments of its forward, and what calls it there.

    (x, position_ids) -> (cos, sin), as in transformers, is a table; with apply_rotary_pos_emb in the file, a rotation.
    """
    parameters = inspect.signature(module.forward).parameters
    arguments = [parameter for parameter in parameters if parameter != "self"]
    if "input_pos" in parameters:
        return "rotate", TokensFirst(module)
    if len(arguments) >= 2 and arguments[1] == "position_ids":
        if callable(apply):
            return "rotate", HuggingFaceRotary(module, apply)
        return "table", CosSinTable(module)
    return _seam(target, name, module), module


def _seam(target: str, name: str, function: Callable[..., Any]) -> str:
    if name in SEAMS:
        return name
    called = function.forward if isinstance(function, nn.Module) else function
    try:
        arguments = list(inspect.signature(called).parameters)
    except (TypeError, ValueError):
        arguments = []
    for seam, wanted in (
        ("attention", ["q", "k", "v", "q_positions", "k_positions"]),
        ("bias", ["q_positions", "k_positions"]),
        ("table", ["positions"]),
    ):
        if arguments[: len(wanted)] == wanted:
            return seam
    if arguments and arguments[0] in LENGTHS:
        return "bias" if len(arguments) == 2 and arguments[1] in LENGTHS else "table"
    raise ValueError(f"{target}: which seam is {name}? say it with --as: {', '.join(SEAMS)}")


def _file(path: Path) -> Any:
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # for dataclasses and pickles of the file
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        if before is not None:
            sys.modules[path.stem] = before
        raise Unusable(f"{path}: {type(error).__name__}: {error}") from error
    return module


def _module(name: str) -> Any:
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ValueError(f"{name}: {error}; give FILE.py:NAME or package.module:attribute") from error
    finally:
        sys.path.remove("")
