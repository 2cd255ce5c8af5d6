"""What readers of findings call an encoding, and the task they look at first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from posenc import catalogue
from posenc.lab.arm import RANDOMIZED
from posenc.words import Words


def title(arm: str) -> Words:
    """RoPE; Transformer-XL; Mine, of mine.py:Mine; RoPE + random positions."""
    encoding = arm.removesuffix(RANDOMIZED)
    entry = catalogue.BY_NAME.get(encoding)
    name = encoding.rpartition(":")[2] if entry is None else entry.class_name.replace("TransformerXL", "Transformer-XL")
    return Words(f"{name} + random positions", f"{name}＋随机位置") if arm != encoding else Words(name, name)


def main_task(findings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model; without one the first task that reads left to right, or the first."""
    tasks: Sequence[Mapping[str, Any]] = findings["tasks"]
    preferred = [
        *(task for task in tasks if task["name"] == "language_model"), *(task for task in tasks if task["causal"]), *tasks,
    ]  # fmt: skip
    return preferred[0]
