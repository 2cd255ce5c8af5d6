"""Titles of encodings and of changes to RoPE, and the main task of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from posenc import catalogue
from posenc.bilingual import Words
from posenc.lab.experiment.arm import DROPPED, RANDOMIZED

CHANGES = {
    "": Words("unchanged", "不改"),
    "interpolation": Words("interpolation", "位置插值"),
    "ntk": Words("NTK", "NTK"),
    "yarn": Words("YaRN", "YaRN"),
    "self_extend": Words("Self-Extend", "Self-Extend"),
}
"""Changes of RoPE's frequencies after training."""


def title(arm: str) -> Words:
    """RoPE; Transformer-XL; Mine, of mine.py:Mine; RoPE + random positions; RoPE, dropped."""
    encoding = arm.removesuffix(RANDOMIZED).removesuffix(DROPPED)
    entry = catalogue.BY_NAME.get(encoding)
    name = encoding.rpartition(":")[2] if entry is None else entry.title.en
    if arm.endswith(DROPPED):
        return Words(f"{name}, dropped", f"{name}，后期去掉")
    return Words(f"{name} + random positions", f"{name}＋随机位置") if arm != encoding else Words(name, name)


def main_task(findings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model; without one the first task that reads left to right, or the first."""
    tasks: Sequence[Mapping[str, Any]] = findings["tasks"]
    preferred = [
        *(task for task in tasks if task["name"] == "language_model"),
        *(task for task in tasks if task["causal"]),
        *tasks,
    ]
    return preferred[0]
