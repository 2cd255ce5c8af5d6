"""Tables of data in TOML, beside the module that reads them: bugs.toml beside bugs.py.

sentences = ["title"]         # under these keys every string is a sentence, which has a translation

[autocast]
title = "autocast turns the product of positions and frequencies into 16 bits"
threads = ["huggingface/transformers/pull/29285"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def beside(module: str, say: Callable[[str], object] = str) -> dict[str, Any]:
    """The table of a module, by its `__file__`, in the order of the file; `say` makes Words of the sentences."""
    return read(Path(module).with_suffix(".toml"), say)


def read(path: Path, say: Callable[[str], object] = str) -> dict[str, Any]:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    keys = set(table.pop("sentences", ()))

    def spoken(value: Any, sentences: bool) -> Any:
        if isinstance(value, dict):
            return {key: spoken(item, sentences or key in keys) for key, item in value.items()}
        if isinstance(value, list):
            return [spoken(item, sentences) for item in value]
        return say(value) if sentences and isinstance(value, str) else value

    result: dict[str, Any] = spoken(table, False)
    return result
