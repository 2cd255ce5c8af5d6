"""Writes two files of src/posenc/catalogue.

models.json    of each entry, the model types of `posenc inspect` whose defaults use it; under no name, those without
               attention
classes.json   of each entry, the classes of the installed transformers that compute it

    python tools/model_words.py

A word that people type is often the name of a model, or of a class that they have in front of them. What a type does is
read from its configuration without any key; types that have no such defaults are named by hand in words.toml beside it.
A class is told by the end of its name, LearnedPositionalEmbedding; one that rotates, by what its model's reader says.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from posenc.catalogue import lookup
from posenc.configs import read_config
from posenc.configs.errors import ConfigError
from posenc.configs.family import reader_paths
from posenc.configs.spec import PositionSpec, Rotation, Use

FILE = Path(__file__).parents[1] / "src/posenc/catalogue/models.json"
CLASSES_FILE = FILE.with_name("classes.json")
TEXT = ("text_config", "language_config", "llm_config", "decoder", "text_model")  # the part that a model is known for
PART = re.compile("([_-](text|vision|audio|image|encoder|decoder|model|thinker|talker|tokenizer))+$")
CONTAINERS = ("encoder-decoder", "vision-encoder-decoder", "speech-encoder-decoder", "vision-text-dual-encoder")
SCALINGS = ("linear", "dynamic", "yarn", "llama3", "longrope", "proportional")
MAPS = {"sections": "mrope", "interleaved_sections": "interleaved_mrope", "axial": "axial_rope", "strided": "pixtral_rope"}
CLASSES = {
    "LearnedGrid": "vit",
    "LearnedAxes": "learned_2d",
    "WindowBias": "swin",
    "DecomposedBias": "decomposed",
    "LeRoPE": "lerope",
}
"""Classes that several entries build, and the one that is meant."""
NONE = tuple(
    f"none: {order}"
    for order in (
        "convolutions",
        "a state space model",
        "time mixing",
        "gated matrix memories",
        "linear layers",
        "each token",
    )
)
"""What readers of models without attention say of their coordinates."""
TOWERS = ("posenc.configs.families.clip:", "posenc.configs.families.siglip:")
"""Readers of two towers, one of them of text; such a model is known for that of images."""
TURNING = re.compile("(Rotary(Position|Positional)?|Rope(Position)?)Embedding$")
ENDS = {
    "sinusoidal": "Sinusoid(al|s)Position(al)?Embedding",
    "learned": "Learned(Position|Positional)Embedding",
    "convolutional": "PositionalConvEmbedding",
    "detr": "SinePositionEmbedding",
    "transformer_xl": "(Conformer|Encoder|Bert)RelPositional(Embedding|Encoding)",
    "random_fourier": "(Sam|Sam2|Sam3Tracker|SamHQ|EdgeTam)(Video)?PositionalEmbedding",
}
"""What the names of classes that do not rotate end with."""
ROWS_AND_COLUMNS = re.compile("(Detr|Dino|TableTransformer)LearnedPositionEmbedding$")  # DETR's: learned, of an image


def types_by_entry() -> dict[str, list[str]]:
    """The model types of each entry, in the order of the catalogue; each type once, for what most of its layers use."""
    found: dict[str, list[str]] = {}
    for model_type in sorted(reader_paths()):
        if name := entry_of(model_type):
            found.setdefault(name, []).append(model_type)
    none = [model_type for model_type in sorted(reader_paths()) if attention_free(_defaults(model_type))]
    return {entry.name: _whole(found[entry.name]) for entry in lookup.ENTRIES if entry.name in found} | {"": _whole(none)}


def attention_free(spec: PositionSpec) -> bool:
    """Whether its reader says that nothing in it has positions, and where order comes from."""
    return not spec.layers and not spec.parts and spec.coordinates.en.startswith(NONE)


def _whole(types: list[str]) -> list[str]:
    """Without those of a part, which nobody types: qwen3_vl_text beside qwen3_vl."""
    types = [one for one in types if one not in CONTAINERS]
    return [one for one in types if (whole := PART.sub("", one)) == one or whole not in reader_paths()]


def entry_of(model_type: str) -> str | None:
    """The entry that a type uses by its defaults; None where it has none, or where it is no entry of the catalogue."""
    spec = _defaults(model_type)
    parts = sorted(_parts(spec), key=_known_for)
    return next((name for part in parts for name in _entries(part)), None)


def _known_for(part: PositionSpec) -> int:
    """The less, the more a model is known for this part."""
    if part.part not in TEXT:
        return 1
    return 2 if reader_paths().get(part.family, "").startswith(TOWERS) else 0


def classes_by_entry() -> dict[str, list[str]]:
    """The classes of transformers whose names say that they compute positions, under what they compute."""
    found: dict[str, list[str]] = {}
    for name in classes():
        if entry := entry_of_class(name):
            found.setdefault(entry, []).append(name)
    return {entry.name: found[entry.name] for entry in lookup.ENTRIES if entry.name in found}


def classes() -> list[str]:
    """Every class of the models of the installed transformers, from its files."""
    import transformers

    files = sorted(Path(transformers.__file__).parent.glob("models/*/modeling_*.py"))
    return sorted({name for file in files for name in re.findall(r"^class (\w+)", file.read_text("utf-8"), re.MULTILINE)})


def entry_of_class(name: str) -> str | None:
    """What a class computes: of a rotation, the entry of its model that turns; None where that is none, or not known."""
    if turning := TURNING.search(name):
        model = lookup.fold(name[: turning.start()])
        types = [one for one in reader_paths() if lookup.fold(one) in (model, model + "model", model + "config")]
        turned = (entry for one in types for part in _parts(_defaults(one)) for entry in _entries(part))
        kinds = ("rotated", "scaled", "preset")
        return next((entry for entry in turned if lookup.BY_NAME[entry].kind in kinds), None)
    if ROWS_AND_COLUMNS.search(name):
        return "learned_2d"
    return next((entry for entry, end in ENDS.items() if re.search(f"{end}$", name)), None)


@cache
def _defaults(model_type: str) -> PositionSpec:
    """What is read from a configuration without any key; nothing where it has no such defaults."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read_config({"_class_name" if model_type[:1].isupper() else "model_type": model_type})
    except ConfigError:
        return PositionSpec(model_type)


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
    if rotation.kind == "configs.by_axis.by_axis":
        return "axial_rope"
    if "in_turns" in dict(rotation.maps):
        return "dinov3_rope"
    if rotation.maps:
        return MAPS.get(rotation.maps[-1][0])
    if rotation.kind in SCALINGS:
        return rotation.kind
    if rotation.kind != "rotary":
        return None
    return "partial" if rotation.width < d_head else "rope"


if __name__ == "__main__":
    for file, table in ((FILE, types_by_entry()), (CLASSES_FILE, classes_by_entry())):
        rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(words)}" for name, words in table.items())
        file.write_text(f"{{\n{rows}\n}}\n", "utf-8")
