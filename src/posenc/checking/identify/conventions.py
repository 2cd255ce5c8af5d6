"""Conventions of the field with a name: which models rotate how."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Convention:
    """A rotary convention: layout, base, share of the channels that turn, and the models that have it."""

    layout: str
    base: float
    share: float
    models: str


ROTARY = (
    Convention("half", 10_000, 1.0, "Llama 1 and 2"),
    Convention("interleaved", 10_000, 1.0, "RoFormer, and Llama as first published"),
    Convention("half", 500_000, 1.0, "Llama 3"),
    Convention("interleaved", 500_000, 1.0, "Llama 3 as first published"),
    Convention("half", 1_000_000, 1.0, "Qwen 2.5, Mixtral, Mistral from 0.2 on"),
    Convention("half", 5_000_000, 1.0, "Yi"),
    Convention("half", 150_000, 1.0, "gpt-oss"),
    Convention("half", 10_000, 0.25, "GPT-NeoX, Pythia, StableLM"),
    Convention("half", 10_000, 0.5, "Phi-1, Persimmon"),
    Convention("half", 10_000, 0.4, "Phi-2"),
    Convention("interleaved", 10_000, 0.25, "GPT-J"),
    Convention("interleaved", 10_000, 0.5, "GLM-4, ChatGLM2"),
    Convention("half", 100, 1.0, "DINOv3, and other vision models"),
)


def exact(facts: Mapping[str, Any]) -> Convention | None:
    """The convention with these properties, where magnitude 1 and no scaling are among them."""
    if facts.get("scaling") or facts.get("sign") != "positive" or facts.get("magnitude") != 1.0:
        return None
    share = facts["rotary_dim"] / facts["d_head"]
    for one in ROTARY:
        if one.layout == facts.get("layout") and one.base == facts.get("base") and abs(one.share - share) < 0.02:
            return one
    return None


def nearest(facts: Mapping[str, Any]) -> Convention | None:
    """The convention whose layout, share and base differ least."""
    base = facts.get("base")
    if not base or not facts.get("layout"):
        return None
    share = float(facts["rotary_dim"] / facts["d_head"])

    def distance(one: Convention) -> float:
        apart = abs(math.log(one.base) - math.log(float(base)))
        total: float = 10 * (one.layout != facts["layout"]) + 10 * abs(one.share - share) + apart
        return total

    return min(ROTARY, key=distance)
