"""What is known of an encoding: what its entry says, and what one built at usual sizes shows."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from posenc.catalogue import lookup
from posenc.catalogue.built import SIZES as SIZES
from posenc.catalogue.built import facts
from posenc.catalogue.entry import Entry, Need
from posenc.catalogue.say import say
from posenc.support.languages import LANGUAGES, Words

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding
    from posenc.positions import Positions

TRAITS = {
    "shift_invariant": say("relative"),
    "norm_preserving": say("keeps norms"),
    "causal_only": say("causal only"),
    "local": say("local"),
}
NEEDS: dict[Need, Words] = {
    "parameters": say("parameters"),
    "hidden_states": say("hidden states"),
    "causal": say("a causal mask"),
    "wide_output": say("a wider output projection"),
}
SEAMS = {"embed": say("embedding"), "rotate": say("rotation"), "bias": say("bias"), "finish": say("weights and output")}

ARGUMENTS = {"batch": "batch", "length": "length", "lengths": "[7, 9]", "height": "14", "width": "14", "text": "4"}
"""What positions are shown with: an argument that they need, and its value."""


def written(python: str, **given: Any) -> Any:
    """What an entry's `arguments` or `positions` say at these sizes: length; batch, height and width. Imports torch."""
    modules = {name: importlib.import_module(name) for name in ("torch", "posenc")}
    return eval(python, modules | given)


def positions_of(entry: Entry, length: int, image: tuple[int, int], encoding: PositionalEncoding) -> Positions:
    """The positions that its encoding reads: of about `length` tokens, or of the patches of an image (height, width)."""
    sizes = {"batch": 1, "length": length, "height": image[0], "width": image[1]}
    positions: Positions = written(entry.positions, **sizes, encoding=encoding)
    return positions


def requested(name: str, length: int | str) -> str:
    """What programs put after `posenc.create(name, …)`: the length of the request, where the encoding depends on it."""
    return f".at_length({length})" if lookup.BY_NAME[name].by_length else ""


def built(entry: Entry) -> dict[str, Any]:
    """What needs no page: the entry itself, and what one of it shows when it is built, read without torch."""
    shown = facts(entry)
    method = lookup.setting_of(entry)
    return {
        "name": entry.name,
        "setting_of": method and method.name,
        "class": entry.class_name,
        "kind": entry.kind,
        "published": entry.published,
        "needs": list(entry.needs),
        "axes": entry.axes,
        "per_layer": entry.per_layer,
        "formula": entry.formula,
        "seams": shown["seams"],
        "traits": shown["traits"],
        "parameters": shown["parameters"],
        "parameters_at": SIZES,
        "sizes": shown["sizes"],
        "options": shown["options"],
        "drawing": shown.get("drawing", ""),
        "also_called": list(entry.also_called),
    }


def describe(entry: Entry) -> dict[str, Any]:
    """As JSON: what `built` finds, and what its page says."""
    page = entry.page
    return built(entry) | {
        "title": page.title.as_dict(),
        "coordinates": page.coordinates and page.coordinates.as_dict(),
        "idea": page.idea.as_dict(),
        "used_by": {language: entry.users(language) for language in LANGUAGES},
        "source": page.source,
        "example": page.example,
    }


def program(row: dict[str, Any]) -> str:
    """A whole program with an encoding that `built` found: embedding, attention, or positions and their use."""
    entry = lookup.BY_NAME[row["name"]]
    count = (
        "height, width, d_model, n_heads = 2, 4, 6, 512, 8"
        if entry.of_image
        else "length, d_model, n_heads = 2, 16, 512, 8"
    )
    start = ["import torch", "import posenc", "", f"batch, {count}"]
    if row["kind"] == "positions":
        values = ARGUMENTS | entry.arguments
        arguments = ", ".join(f"{name}={values[name]}" for name in row["sizes"])
        lines = [*start, f'at = posenc.positions_by("{row["name"]}", {arguments})', "print(at.coords[0, :6])"]
        return "\n".join(lines) + "\n"
    sizes = ", d_model=d_model" if row["kind"] == "added" else ", d_model=d_model, n_heads=n_heads"
    sizes += ", n_layers=4" if "n_layers" in row["sizes"] else ""
    sizes = sizes if row["sizes"] else ""
    sizes += ", height=height, width=width" if {"height", "width"} <= set(row["options"]) else ""
    lines = [*start, f'encoding = posenc.create("{row["name"]}"{sizes}){requested(row["name"], "length")}']
    if row["axes"] == 1:
        tokens, lines = "length", [*lines, f"at = encoding.prepare({entry.positions})"]
    else:
        tokens, lines = "at.length", [*lines, f"at = {entry.positions}", "at = encoding.prepare(at)"]
    both_ways = ", causal=False" if entry.both_ways else ""
    if "hidden_states" in row["needs"]:
        lines += [
            f"words = torch.randn(batch, {tokens}, d_model)",
            "attention = posenc.Attention(d_model, n_heads, encoding)",
            f"out = attention(words, at{both_ways})",
        ]
        return "\n".join(lines) + "\n"
    if "embed" in row["seams"]:
        lines += [f"words = torch.randn(batch, {tokens}, d_model)", "x = encoding.embed(words, at)"]
    if row["seams"] != ["embed"]:
        lines += [
            f"q, k, v = (torch.randn(batch, n_heads, {tokens}, d_model // n_heads) for _ in range(3))",
            f"out = posenc.attend(q, k, v, encoding{'.at_layer(0)' if row['kind'] == 'preset' else ''}, at{both_ways})",
        ]
    return "\n".join(lines) + "\n"
