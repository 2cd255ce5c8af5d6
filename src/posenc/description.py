"""What is known of an encoding: what its entry says, and what one built at usual sizes shows."""

from __future__ import annotations

import inspect
from typing import Any

from posenc import catalogue
from posenc.bilingual import LANGUAGES, Words
from posenc.entry import Entry

SIZES = {"d_model": 512, "n_heads": 8, "n_layers": 6, "max_positions": 2048}
TRAITS = {
    "shift_invariant": Words("relative", "相对"),
    "norm_preserving": Words("keeps norms", "保范数"),
    "causal_only": Words("causal only", "仅因果"),
    "local": Words("local", "逐词"),
}
SEAMS = {
    "embed": Words("embedding", "词向量"),
    "rotate": Words("rotation", "旋转"),
    "bias": Words("bias", "偏置"),
    "context": Words("logits", "分数"),
    "value": Words("value", "值"),
}


def describe(entry: Entry) -> dict[str, Any]:
    """As JSON. Seams, traits and parameters are those of one built at SIZES."""
    encoding = catalogue.create(entry.name, **SIZES)
    parameters = inspect.signature(entry.load()).parameters
    return {
        "name": entry.name,
        "class": entry.class_name,
        "title": entry.title._asdict(),
        "kind": entry.kind,
        "published": entry.published,
        "needs": list(entry.needs),
        "per_layer": entry.per_layer,
        "formula": entry.formula,
        "idea": entry.idea._asdict(),
        "seams": [site.name.lower() for site in encoding.sites if site.name],
        "traits": sorted(encoding.traits),
        "parameters": sum(parameter.numel() for parameter in encoding.parameters()),
        "parameters_at": SIZES,
        "sizes": [name for name in parameters if name in catalogue.SIZES],
        "options": {name: about.default for name, about in parameters.items() if name not in catalogue.SIZES},
        "also_called": list(entry.also_called),
        "used_by": {language: entry.users(language) for language in LANGUAGES},
        "source": entry.source,
        "example": entry.example,
    }
