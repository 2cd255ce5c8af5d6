"""A researcher's own encoding: a class in a file, named `my_encoding.py:MyEncoding` (`posenc.lab.user_file`)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from posenc.encoding import PositionalEncoding
from posenc.lab import user_file

REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def load(word: str, source: str) -> type[PositionalEncoding]:
    """The class that `word` names in `source`.

    Raises ValueError where there is no such class, or where it is not a positional encoding. What the file raises is
    passed on.
    """
    return user_file.class_in(word, source, PositionalEncoding, "posenc.PositionalEncoding")


def check(sources: Mapping[str, str]) -> None:
    """Loads each class, by word and source, in a process of its own. Raises ValueError, in one line."""
    user_file.check(sources, load)


def create(word: str, source: str, sizes: dict[str, int]) -> PositionalEncoding:
    """One built from those of the sizes that its constructor asks for by name: d_model, n_heads, d_head, n_layers,
    max_positions. Raises ValueError where it needs anything else.
    """
    arguments = {**sizes, "d_head": sizes["d_model"] // sizes["n_heads"]}
    parameters = inspect.signature(cls := load(word, source)).parameters
    required = {name for name, about in parameters.items() if about.default is about.empty and about.kind not in REST}
    if unknown := sorted(required - arguments.keys()):
        raise ValueError(f"{word}: its constructor needs {', '.join(unknown)}; the lab knows {', '.join(arguments)}")
    return cls(**{name: size for name, size in arguments.items() if name in parameters})
