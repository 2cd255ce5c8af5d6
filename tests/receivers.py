"""What becomes of a command in the programs that receive it: transformers' rotary modules, and the functions of vLLM and
SGLang that decide it, from unpacked releases, without their packages.

Everything else of a package is a stand-in: only the files named here run.
"""

from __future__ import annotations

import ast
import copy
import importlib
import importlib.abc
import importlib.util
import inspect
import logging
import subprocess
import sys
import types
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn


def read(file: dict[str, Any], path: str, changes: dict[str, Any]) -> Any:
    """The configuration of the part at `path` of a file, as from_pretrained(…, **changes) makes it."""
    from transformers import CONFIG_MAPPING

    config = CONFIG_MAPPING[file["model_type"]].from_dict(copy.deepcopy(file), **copy.deepcopy(changes))
    for name in filter(None, path.split(".")):
        config = getattr(config, name)
    return config


def arguments(command: str) -> dict[str, Any]:
    """The keywords of a call that is written out."""
    (call,) = [node for node in ast.walk(ast.parse(command)) if isinstance(node, ast.Call)]
    return {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}


Table = tuple[list[float], float]  # frequencies; what multiplies cos and sin


def tables(config: Any, length: int) -> dict[str, Table]:
    """What each rotary module of transformers that takes this configuration computes at position length - 1, by its class
    and the kind of layer. Modules that refuse the configuration are left out.
    """
    package = type(config).__module__.rpartition(".")[0]
    modeling = importlib.import_module(f"{package}.modeling_{package.rpartition('.')[2]}")
    found: dict[str, Table] = {}
    for name, one in vars(modeling).items():
        if not (inspect.isclass(one) and "Rotary" in name and "config" in inspect.signature(one.__init__).parameters):
            continue
        try:
            module = one(config=copy.deepcopy(config))
            types = module.rope_type if isinstance(module.rope_type, dict) else {"": module.rope_type}
            for kind, rope_type in types.items():
                given, start = ({"layer_type": kind}, f"{kind}_") if kind else ({}, "")
                if rope_type == "longrope":  # chosen for each request
                    at = torch.tensor([[0, length - 1]])
                    module(torch.zeros(1), at.expand(3, 1, 2) if "mrope_section" in str(config) else at, **given)
                scale = getattr(module, f"{start}attention_scaling")
                found[f"{name} {kind}"] = getattr(module, f"{start}inv_freq").double().flatten().tolist(), float(scale)
        except (AttributeError, KeyError, TypeError, ValueError, RuntimeError):
            continue
    return found


def unpacked(folder: Path, *wheels: str) -> Path:
    """The Python files of released wheels, which pip downloads, without their packages."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*pip, "--only-binary", ":all:", *wheels], check=True)
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as inside:
            inside.extractall(folder, [name for name in inside.namelist() if name.endswith(".py")])
    return folder


def functions(path: Path, *names: str, **namespace: Any) -> dict[str, Any]:
    """The functions of a file, methods too, compiled alone; `namespace` is what they find around them."""
    every = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    found = [next(node for node in every if node.name == name) for name in names]  # of methods, the base class's
    for node in found:
        node.decorator_list, node.returns = [], None
        for argument in (*node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
    scope = {"logger": logging.getLogger("received"), "Any": Any} | namespace
    exec(compile(ast.Module(list(found), []), str(path), "exec"), scope)
    scope["logger"].warning_once = lambda *_: None
    return scope


PROGRAMS = ("vllm", "sglang")  # SGLang takes an operator from vLLM


class Operation(nn.Module):
    """In place of CustomOp and BaseFusedOp: a module with a register that changes nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    @classmethod
    def register(cls, *_: Any, **__: Any) -> Any:
        return lambda made: made

    def enabled(self) -> bool:
        return False


class Nothing:
    """In place of everything else: false, not above anything, and so is what it returns and holds."""

    rl_on_policy_target = None  # SGLang compares it with None

    def __bool__(self) -> bool:
        return False

    def __gt__(self, _: Any) -> bool:
        return False

    def __call__(self, *_: Any, **__: Any) -> Nothing:
        return self

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


@contextmanager
def package(root: Path, program: str, real: str) -> Iterator[types.ModuleType]:
    """The subpackage `real` of a program, its own files as they are, all other modules of the program stand-ins."""

    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            if name.split(".")[0] not in PROGRAMS:
                return None
            if name == real or name.startswith(f"{real}."):
                file = root.joinpath(*name.split("."))
                file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
                return importlib.util.spec_from_file_location(name, file)
            return importlib.util.spec_from_loader(name, self, is_package=True)

        def create_module(self, spec: Any) -> types.ModuleType:
            made = types.ModuleType(spec.name)
            made.__path__ = []

            def stand_in(key: str) -> Any:
                if key.startswith("__"):
                    raise AttributeError(key)
                operations = key in ("CustomOp", "BaseFusedOp", "MultiPlatformOp", "PluggableLayer")
                return Operation if operations else Nothing()

            made.__getattr__ = stand_in  # type: ignore[method-assign]
            return made

        def exec_module(self, module: types.ModuleType) -> None: ...

    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module(real)
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] in PROGRAMS]:
            del sys.modules[name]
