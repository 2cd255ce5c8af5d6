"""Which model types have which encoding, by the configurations that `posenc.read_config` reads.

    python -m posenc.explorer.today    reads them in a few seconds, and writes today.json

    {"total": model types with positions of their own,
     "encodings": [{"name", "month": of the first paper, "models": [types]}]}

A type that only consists of others, such as a text and an image model, has no positions of its own. One can have several
encodings.
"""

from __future__ import annotations

import json
import re
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import posenc
from posenc import configs
from posenc.catalogue.lookup import BY_NAME
from posenc.explorer import recorded

FILE = Path(__file__).parent / "today.json"
DEFAULTS = Path(configs.__file__).parent / "defaults.json"
# Of the story, in the order of their papers; each with the classes that are of its kind.
KINDS = {
    "learned": ("learned.Learned", "bases.learned_grid.LearnedGrid"),
    "sinusoidal": ("sinusoidal.Sinusoidal",),
    "shaw": ("shaw.Shaw",),
    "transformer_xl": ("transformer_xl.TransformerXL",),
    "t5": ("t5.T5", "t5_axes.T5Axes"),
    "rope": ("rope.RoPE",),
    "alibi": ("alibi.ALiBi",),
}


def record() -> dict[str, Any]:
    """The record. Do not change it in place."""
    return recorded.document(FILE)


def model_types() -> list[str]:
    return sorted(json.loads(DEFAULTS.read_text("utf-8")))


def kinds(model_type: str) -> set[str] | None:
    """The kinds of a model type's encodings; None where it has no positions of its own, or its defaults are no model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            spec = posenc.read_config({"model_type": model_type})
        except ValueError:
            return None
    own = [part for _, part in spec.walk() if part.family == spec.family]  # an encoder and a decoder of the same type
    classes = {use.encoding for part in own for layer in part.layers for use in layer.uses}
    return {kind for kind, theirs in KINDS.items() if any(_is(one, theirs) for one in classes)} if classes else None


@cache
def _is(encoding: str, theirs: tuple[str, ...]) -> bool:
    """Whether a class, such as "encodings.rope.RoPE", is one of these or made from it."""
    module, _, name = f"posenc.{encoding}".rpartition(".")
    found = getattr(import_module(module), name)
    bases = {f"{base.__module__}.{base.__name__}" for base in getattr(found, "__mro__", ())}
    return any(f"posenc.encodings.{one}" in bases for one in theirs)


def month(name: str) -> str:
    """Of the first paper that the catalogue names: "2021-04" of arXiv 2104.09864."""
    found = re.search(r"arXiv (\d\d)(\d\d)\.", BY_NAME[name].page.source)
    assert found, name
    return f"20{found[1]}-{found[2]}"


def main() -> None:
    read = {one: found for one in model_types() if (found := kinds(one)) is not None}
    encodings = [
        {"name": kind, "month": month(kind), "models": [one for one, found in read.items() if kind in found]}
        for kind in KINDS
    ]
    encodings.sort(key=lambda one: str(one["month"]))
    FILE.write_text(json.dumps({"total": len(read), "encodings": encodings}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
