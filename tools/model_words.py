"""Writes three files of src/posenc/catalogue.

models.json    of each entry, the model types of `posenc inspect` whose defaults use it; under no name, those without
               attention
diffusion.json of each entry, the image, video and audio models of diffusion_transformers.toml that use it
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
from posenc.catalogue.index import fold
from posenc.configs import read_config, spec_of
from posenc.configs.errors import ConfigError
from posenc.configs.families.diffusion_transformers import MODELS, ROWS
from posenc.configs.family import reader_paths
from posenc.configs.reading import attention_free, entries_of
from posenc.configs.spec import PositionSpec

FILE = Path(__file__).parents[1] / "src/posenc/catalogue/models.json"
DIFFUSION_FILE = FILE.with_name("diffusion.json")
CLASSES_FILE = FILE.with_name("classes.json")
TEXT = ("text_config", "language_config", "llm_config", "decoder", "text_model")  # the part that a model is known for
PART = re.compile("([_-](text|vision|audio|image|encoder|decoder|model|thinker|talker|tokenizer))+$")
CONTAINERS = ("encoder-decoder", "vision-encoder-decoder", "speech-encoder-decoder", "vision-text-dual-encoder")
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


def diffusion_models() -> dict[str, list[str]]:
    """The names of models of each entry, in the catalogue's order; of how tokens are numbered where no entry turns them."""
    found: dict[str, list[str]] = {}
    for model, config in MODELS.items():
        parts = list(_parts(spec_of(config)))
        names = [name for part in parts for name in entries_of(part)]
        if not any(layer.uses for part in parts for layer in part.layers):
            names = ["nope"]
        names += re.findall(r'positions_by\("(\w+)"', ROWS[config["_class_name"]].get("at", ""))
        for name in names[:1]:
            found.setdefault(name, []).append(model)
    return {entry.name: found[entry.name] for entry in lookup.ENTRIES if entry.name in found}


def _whole(types: list[str]) -> list[str]:
    """Without those of a part, which nobody types: qwen3_vl_text beside qwen3_vl."""
    types = [one for one in types if one not in CONTAINERS]
    return [one for one in types if (whole := PART.sub("", one)) == one or whole not in reader_paths()]


def entry_of(model_type: str) -> str | None:
    """The entry that a type uses by its defaults; None where it has none, or where it is no entry of the catalogue."""
    spec = _defaults(model_type)
    parts = sorted(_parts(spec), key=_known_for)
    return next((name for part in parts for name in entries_of(part)), None)


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
        model = fold(name[: turning.start()])
        types = [one for one in reader_paths() if fold(one) in (model, model + "model", model + "config")]
        turned = (entry for one in types for part in _parts(_defaults(one)) for entry in entries_of(part))
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


if __name__ == "__main__":
    made = ((FILE, types_by_entry()), (DIFFUSION_FILE, diffusion_models()), (CLASSES_FILE, classes_by_entry()))
    for file, table in made:
        rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(words, ensure_ascii=False)}" for name, words in table.items())
        file.write_text(f"{{\n{rows}\n}}\n", "utf-8")
