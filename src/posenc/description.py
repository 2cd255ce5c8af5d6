"""What is known of an encoding: what its entry says, and what one built at usual sizes shows."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from posenc import catalogue
from posenc.bilingual import LANGUAGES, Words
from posenc.entry import Entry, Need

SIZES = {"d_model": 512, "n_heads": 8, "n_layers": 6, "max_positions": 2048}
TRAITS = {
    "shift_invariant": Words("relative", "相对"),
    "norm_preserving": Words("keeps norms", "保范数"),
    "causal_only": Words("causal only", "仅因果"),
    "local": Words("local", "逐词"),
}
NEEDS: dict[Need, Words] = {
    "parameters": Words("parameters", "参数"),
    "hidden_states": Words("hidden states", "隐藏状态"),
    "causal": Words("a causal mask", "因果掩码"),
    "wide_output": Words("a wider output projection", "更宽的输出投影"),
}
SEAMS = {
    "embed": Words("embedding", "词向量"),
    "rotate": Words("rotation", "旋转"),
    "bias": Words("bias", "偏置"),
    "context": Words("logits", "分数"),
    "value": Words("value", "值"),
    "weights": Words("in the softmax's place", "代替 softmax"),
}


def written(python: str, length: int) -> Any:
    """What an entry's `arguments` or `tokens` say, for about `length` tokens. Imports torch."""
    return eval(
        python,
        {"torch": importlib.import_module("torch"), "posenc": importlib.import_module("posenc")} | {"length": length},
    )


def describe(entry: Entry) -> dict[str, Any]:
    """As JSON. Seams, traits and parameters are those of one built at SIZES, of layer 0 where layers differ.

    Positions have none of these; their `sizes` are the arguments that they need, `options` those that may be left out.
    """
    parameters = inspect.signature(entry.maker()).parameters
    if entry.kind == "positions":
        needed = [name for name, about in parameters.items() if about.default is inspect.Parameter.empty]
        seams, traits, count = [], [], 0
    else:
        needed = [name for name in parameters if name in catalogue.SIZES]
        encoding = catalogue.create(entry.name, **SIZES)
        first = encoding if encoding.of_one_layer else encoding.at_layer(0)
        seams, traits = [site.name.lower() for site in first.sites if site.name], sorted(first.traits)
        count = sum(parameter.numel() for parameter in encoding.parameters())
    return {
        "name": entry.name,
        "class": entry.class_name,
        "title": entry.title._asdict(),
        "kind": entry.kind,
        "published": entry.published,
        "needs": list(entry.needs),
        "axes": entry.axes,
        "per_layer": entry.per_layer,
        "formula": entry.formula,
        "idea": entry.idea._asdict(),
        "seams": seams,
        "traits": traits,
        "parameters": count,
        "parameters_at": SIZES,
        "sizes": needed,
        "options": {name: about.default for name, about in parameters.items() if name not in needed},
        "also_called": list(entry.also_called),
        "used_by": {language: entry.users(language) for language in LANGUAGES},
        "source": entry.source,
        "example": entry.example,
    }
