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
    "bypass": Words("beside the attention weights", "绕过注意力权重"),
}

TOKENS = {
    1: "posenc.Positions.arange(batch, length)",
    2: "posenc.Positions.grid(4, 4)",
    3: "posenc.Positions.mrope(torch.arange(length).expand(3, 1, length))",
}
"""Positions of 16 tokens with so many coordinates: words, an image, words of a multimodal model."""
ARGUMENTS = {"batch": "batch", "length": "length", "lengths": "[7, 9]", "height": "14", "width": "14", "text": "4"}
"""What positions are shown with: an argument that they need, and its value."""


def written(python: str, length: int) -> Any:
    """What an entry's `arguments` or `tokens` say, for about `length` tokens. Imports torch."""
    return eval(
        python,
        {"torch": importlib.import_module("torch"), "posenc": importlib.import_module("posenc")} | {"length": length},
    )


def requested(name: str, length: int | str) -> str:
    """What programs put after `posenc.create(name, …)`: the length of the request, where the encoding depends on it."""
    return f".at_length({length})" if catalogue.BY_NAME[name].by_length else ""


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


def program(row: dict[str, Any]) -> str:
    """A whole program with an encoding that `describe` described: embedding, attention, or positions and their use."""
    start = ["import torch", "import posenc", "", "batch, length, d_model, n_heads = 2, 16, 512, 8"]
    if row["kind"] == "positions":
        given = ARGUMENTS | catalogue.BY_NAME[row["name"]].arguments
        arguments = ", ".join(f"{name}={given[name]}" for name in row["sizes"])
        lines = [*start, f'at = posenc.positions_by("{row["name"]}", {arguments})', "print(at.coords[0, :6])"]
        return "\n".join(lines) + "\n"
    sizes = ", d_model=d_model" if row["kind"] == "added" else ", d_model=d_model, n_heads=n_heads"
    sizes += ", n_layers=4" if "n_layers" in row["sizes"] else ""
    created = f'"{row["name"]}"{sizes if row["sizes"] else ""}'
    lines = [*start, f"encoding = posenc.create({created}){requested(row['name'], 'length')}"]
    if tokens := catalogue.BY_NAME[row["name"]].tokens:
        lines += [f"at = {tokens}", "at = encoding.prepare(at)"]
    else:
        lines += [f"at = encoding.prepare({TOKENS[row['axes']]})"]
    if "hidden_states" in row["needs"]:
        lines += [
            "words = torch.randn(batch, length, d_model)",
            "attention = posenc.Attention(d_model, n_heads, encoding)",
            "out = attention(words, at)",
        ]
        return "\n".join(lines) + "\n"
    if "embed" in row["seams"]:
        lines += ["words = torch.randn(batch, length, d_model)", "x = encoding.embed(words, at)"]
    if row["seams"] != ["embed"]:
        lines += [
            "q, k, v = (torch.randn(batch, n_heads, length, d_model // n_heads) for _ in range(3))",
            f"out = posenc.attend(q, k, v, encoding{'.at_layer(0)' if row['kind'] == 'preset' else ''}, at)",
        ]
    return "\n".join(lines) + "\n"
