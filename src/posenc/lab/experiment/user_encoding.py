"""A researcher's own encoding: a class in a file, named `my_encoding.py:MyEncoding`.

The file is the user's own code and is executed. Its text travels with every trial, so that a worker on another machine
runs the same class, and a changed file is another encoding.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

from posenc.encoding import PositionalEncoding
from posenc.support import apart

REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def load(word: str, source: str) -> type[PositionalEncoding]:
    """The class that `word` names in `source`.

    Raises ValueError where there is no such class, or where it is not a positional encoding. What the file raises is
    passed on.
    """
    file, _, name = word.partition(":")
    found = getattr(_module(file, source), name, None)
    if found is None:
        raise ValueError(f"{word}: expected a subclass of posenc.PositionalEncoding called {name!r}, got a file without it")
    if not (isinstance(found, type) and issubclass(found, PositionalEncoding)):
        raise ValueError(f"{word}: expected a subclass of posenc.PositionalEncoding called {name!r}, got {found!r}")
    return found


def check(sources: Mapping[str, str]) -> None:
    """Loads each class, by word and source, in a process of its own.

    Raises ValueError, in one line, where `load` raises anything, and where a file ends Python or does not come to an end.
    """
    loading = ""
    try:
        for word in apart.told(_loaded, dict(sources)) if sources else ():
            loading = word
    except apart.NoVerdict as error:
        raise ValueError(f"{loading}: the file {error}; it must only define the class") from None


def _loaded(sources: dict[str, str]) -> Iterator[str]:
    """Each word before it is loaded."""
    for word, source in sources.items():
        yield word
        try:
            load(word, source)
        except Exception as error:
            raise ValueError(in_one_line(word, error)) from error


def in_one_line(word: str, error: Exception) -> str:
    """An error of a user's file, with the name of the encoding."""
    said = str(error) if str(error).startswith(word) else f"{word}: {type(error).__name__}: {error}"
    return said.splitlines()[0]


def create(word: str, source: str, sizes: dict[str, int]) -> PositionalEncoding:
    """One built from those of the sizes that its constructor asks for by name: d_model, n_heads, d_head, n_layers,
    max_positions. Raises ValueError where it needs anything else.
    """
    given = {**sizes, "d_head": sizes["d_model"] // sizes["n_heads"]}
    parameters = inspect.signature(made := load(word, source)).parameters
    required = {name for name, about in parameters.items() if about.default is about.empty and about.kind not in REST}
    if unknown := sorted(required - given.keys()):
        raise ValueError(f"{word}: its constructor needs {', '.join(unknown)}; the lab knows {', '.join(given)}")
    return made(**{name: size for name, size in given.items() if name in parameters})


def _module(file: str, source: str) -> types.ModuleType:
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    name = f"posenc_own_{digest}"
    if name not in sys.modules:
        module: Any = types.ModuleType(name)
        module.__file__ = f"<{file} {digest}>"
        linecache.cache[module.__file__] = (len(source), None, source.splitlines(True), module.__file__)
        sys.modules[name] = module
        try:
            exec(compile(source, module.__file__, "exec"), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
