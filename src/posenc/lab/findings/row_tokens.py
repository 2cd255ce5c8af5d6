"""The tokens of a task's rows, and the distance up to which T5 tells them apart.

A row of copy with 8 symbols has 18 tokens, and a row of text has as many as its length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.catalogue import lookup
from posenc.lab import tasks


def row_tokens(task: Mapping[str, Any], length: int) -> int:
    """The largest number of tokens in a row of that length, for a task of the findings."""
    if tasks.is_from_file(task["name"]):  # findings do not hold the file
        count: int = task["tokens"][str(length)]
        return count
    return tasks.load(task["name"]).model_construct(length=task["length"]).tokens(length)


def longest_bucket(task: Mapping[str, Any]) -> int:
    """The distance from which on all share T5's last bucket, with the settings of the task."""
    t5 = lookup.create("t5", n_heads=1, **task["settings"].get("t5", {}))
    return int(t5.configuration["max_distance"])
