"""A class in a researcher's own file, named `my_encoding.py:MyEncoding`, and the text of such a file.

The file is the user's own code and is executed. Its text travels with every trial, so that a worker on another machine
runs the same class, and a changed file is another encoding or another task.
"""

from __future__ import annotations

import hashlib
import linecache
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from posenc.support import apart

LARGEST = 4 * 2**20  # bytes
Class = TypeVar("Class")


def class_in(word: str, source: str, base: type[Class], called: str) -> type[Class]:
    """The subclass of `base` that `word` names in `source`; `called` is how users import `base`.

    Raises ValueError where there is none. What the file raises is passed on.
    """
    file, _, name = word.partition(":")
    wanted = f"expected a subclass of {called} called {name!r}"
    value = getattr(_module(file, source), name, None)
    if value is None:
        raise ValueError(f"{word}: {wanted}, got a file without it")
    if not (isinstance(value, type) and issubclass(value, base)):
        raise ValueError(f"{word}: {wanted}, got {value!r}")
    return value


def text_of(path: Path, word: str) -> str:
    """The text of a file. Raises ValueError, which begins with the word, if it is no text or larger than LARGEST."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(
                f"{word}: {path} is larger than {LARGEST // 2**20} MiB; a task in a .py file can make its rows"
            )
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{word}: {path} is not text in UTF-8") from None
    except OSError as error:
        raise ValueError(f"{word}: {path} cannot be read: {error.strerror}") from None


def check(sources: Mapping[str, str], load: Callable[[str, str], object]) -> None:
    """Calls `load(word, source)` on each, in a process of its own.

    Raises ValueError, in one line, where `load` raises anything, and where a file ends Python or does not come to an end.
    """
    loading = ""
    try:
        for word in apart.told(_loaded, dict(sources), load) if sources else ():
            loading = word
    except apart.NoVerdict as error:
        raise ValueError(f"{loading}: the file {error}; it must only define the class") from None


def _loaded(sources: dict[str, str], load: Callable[[str, str], object]) -> Iterator[str]:
    """Each word before it is loaded."""
    for word, source in sources.items():
        yield word
        try:
            load(word, source)
        except Exception as error:
            raise ValueError(in_one_line(word, error)) from error


def in_one_line(word: str, error: Exception) -> str:
    """An error of a user's file, with the name of the class."""
    message = str(error) if str(error).startswith(word) else f"{word}: {type(error).__name__}: {error}"
    return message.splitlines()[0]


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
