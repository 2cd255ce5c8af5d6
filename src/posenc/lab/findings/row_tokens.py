"""The tokens of a task's rows: a row of copy with 8 symbols has 18, and a row of text has as many as its length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.lab import tasks


def row_tokens(task: Mapping[str, Any], length: int) -> int:
    """The largest number of tokens in a row of that length, for a task of the findings."""
    return tasks.load(task["name"]).model_construct(length=task["length"]).tokens(length)
