"""Writes src/posenc/catalogue/models.json: of each entry, the model types of `posenc inspect` whose defaults use it.

    python tools/model_words.py

A word that people type is often the name of a model. What a type does is read from its configuration without any key; types
that have no such defaults are named by hand in src/posenc/catalogue/words.toml.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from posenc.catalogue import lookup
from posenc.configs import read_config
from posenc.configs.errors import ConfigError
from posenc.configs.family import reader_paths
from posenc.configs.spec import PositionSpec, Rotation, Use

FILE = Path(__file__).parents[1] / "src/posenc/catalogue/models.json"
TEXT = ("text_config", "language_config", "llm_config", "decoder", "text_model")  # the part that a model is known for
PART = re.compile("([_-](text|vision|audio|image|encoder|decoder|model|thinker|talker|tokenizer))+$")
CONTAINERS = ("encoder-decoder", "vision-encoder-decoder", "speech-encoder-decoder", "vision-text-dual-encoder")
SCALINGS = ("linear", "dynamic", "yarn", "llama3", "longrope", "proportional")
MAPS = {"sections": "mrope", "interleaved_sections": "interleaved_mrope", "axial": "axial_rope"}
CLASSES = {"LearnedGrid": "vit", "LearnedAxes": "learned_2d", "WindowBias": "swin", "DecomposedBias": "decomposed"}
"""Classes that several entries build, and the one that is meant."""


def types_by_entry() -> dict[str, list[str]]:
    """The model types of each entry, in the order of the catalogue; each type once, for what most of its layers use."""
    found: dict[str, list[str]] = {}
    for model_type in sorted(reader_paths()):
        if name := entry_of(model_type):
            found.setdefault(name, []).append(model_type)
    return {entry.name: _whole(found[entry.name]) for entry in lookup.ENTRIES if entry.name in found}


def _whole(types: list[str]) -> list[str]:
    """Without those of a part, which nobody types: qwen3_vl_text beside qwen3_vl."""
    types = [one for one in types if one not in CONTAINERS]
    return [one for one in types if (whole := PART.sub("", one)) == one or whole not in reader_paths()]


def entry_of(model_type: str) -> str | None:
    """The entry that a type uses by its defaults; None where it has none, or where it is no entry of the catalogue."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec = read_config({"_class_name" if model_type[:1].isupper() else "model_type": model_type})
    except ConfigError:
        return None
    parts = sorted(_parts(spec), key=lambda part: part.part not in TEXT)
    return next((name for part in parts for name in _entries(part)), None)


def _parts(spec: PositionSpec) -> Iterator[PositionSpec]:
    for part in spec.parts:
        yield from _parts(part)
    if not spec.parts:
        yield spec


def _entries(spec: PositionSpec) -> list[str]:
    """Those of its layers, the first that acts first; one entry where layers differ in a way that has a name."""
    uses = [use for layer in spec.layers for use in layer.uses]
    rotations = {use.rotation for use in uses if use.rotation is not None}
    names = list(dict.fromkeys(name for use in uses if (name := _named(use))))
    if "decoupled_rope" in names:  # not what only chooses its keys
        return ["decoupled_rope"]
    if names == ["rope"] and len({rotation.base for rotation in rotations}) > 1:
        return ["gemma3"]
    if names == ["rope"] and not all(layer.uses for layer in spec.layers if layer.attends):
        return ["rnope_swa"]
    return names


def _named(use: Use) -> str | None:
    own = use.encoding.rpartition(".")[2]
    if own in CLASSES:
        return CLASSES[own]
    if own == "RoPE" and use.rotation is not None:
        arguments = dict(use.arguments)
        return "decoupled_rope" if arguments.get("trailing") else _of_rotation(use.rotation, arguments["d_head"])
    entry = lookup.METHODS.get(own)
    return entry and entry.name


def _of_rotation(rotation: Rotation, d_head: int) -> str | None:
    if rotation.maps:
        return MAPS.get(rotation.maps[-1][0])
    if rotation.kind in SCALINGS:
        return rotation.kind
    if rotation.kind != "rotary":
        return None
    return "partial" if rotation.width < d_head else "rope"


if __name__ == "__main__":
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(types)}" for name, types in types_by_entry().items())
    FILE.write_text(f"{{\n{rows}\n}}\n", "utf-8")
