"""Writes src/posenc/catalogue/choose/readings.json: what `posenc choose` has to know of a trained model beside its name.

    python tools/model_readings.py

Each row is what the reader of `posenc inspect` finds in a configuration: keys of a published file in read_as.json beside
this file, else the defaults of a model type. reading.py beside readings.json says what a row means; a type without a row
has nothing that differs from the usual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model_words import attention_free

from posenc.catalogue import lookup
from posenc.catalogue.choose.reading import METHODS, READ, SCALED
from posenc.catalogue.entry import Kind
from posenc.catalogue.index import fold
from posenc.configs import ConfigError, PositionSpec, spec_of
from posenc.configs.family import reader_paths
from posenc.configs.report.extension import extend, extensible
from posenc.configs.report.limit import scaling

FILE = Path(__file__).parents[1] / "src/posenc/catalogue/choose/readings.json"
READ_AS: dict[str, Any] = json.loads(Path(__file__).with_name("read_as.json").read_text("utf-8"))
VIDEO = "3DModel"  # how diffusers calls its models of videos
REPEATS = {"HunyuanVideoTransformer3DModel": 50, "CogVideoXTransformer3DModel": 20}
"""The latent frame at which longer videos begin to repeat, in the commands of RIFLEx's authors: N_k of their README.md."""
PARTS = {
    "text": r"(text|language|llm)_config$|(^|\.)(decoder|text_model)$",
    "image": "vision|image",
    "audio": "audio|speech|encoder",
}
"""The part of a model that has the tokens of a domain, by its name; without one, its first."""
KINDS: dict[str, set[Kind]] = {}
for _entry in lookup.ENTRIES:
    KINDS.setdefault(_entry.class_name, set()).add(_entry.kind)
TABLES = ("Learned", "LearnedGrid", "LearnedAxes")


def configuration(model: str) -> dict[str, Any] | None:
    """A configuration by which `posenc inspect` reads a model of this name; None for what it does not read."""
    known = READ_AS.get(model) or next((one for one in reader_paths() if fold(one) == fold(model)), None)
    if not isinstance(known, str):
        return known
    return {"_class_name" if known.endswith("DModel") else "model_type": known}


def readings() -> dict[str, dict[str, Any]]:
    """Every name of read_as.json, and every type whose row is not empty."""
    rows = {name: row for name in (*READ_AS, *sorted(reader_paths())) if (row := reading(name)) is not None}
    return {name: row for name, row in rows.items() if row or name in READ_AS}


def reading(name: str) -> dict[str, Any] | None:
    """The row of a model; None where its configuration needs keys that are not known."""
    config = configuration(name)
    try:
        spec = spec_of(config or {})
    except ConfigError:
        return None
    row: dict[str, Any] = {}
    path, part = part_for(spec, "text")
    if found := {domain: of for domain in PARTS if (of := kind(part_for(spec, domain)[1])) in READ}:
        row["of"] = found if len(set(found.values())) > 1 or len(found) < len(PARTS) else next(iter(found.values()))
    if kind(part) == "rope":
        if (methods := methods_of(config or {}, spec, part)) != list(METHODS):
            row["methods"] = methods
            if methods == []:
                row["of"] = (row.get("of") or {}) | {"text": "closed"}
        if (layer := rotating_layer(path, part)) != ".encoding(0)":
            row["layer"] = layer
        if (rotation := _rotation(part)) and rotation.kind in SCALED:
            row["scaled"] = rotation.kind
    if spec.family.endswith(VIDEO):
        rotation = _rotation(part)
        axes = dict(rotation.parameters).get("sizes") if rotation and kind(part) == "rope" else None
        row["video"] = {"sizes": list(axes), "base": rotation.base} if axes and rotation else {}
        if axes and spec.family in REPEATS:
            row["video"]["repeats"] = REPEATS[spec.family]
    return row


def part_for(spec: PositionSpec, domain: str) -> tuple[str, PositionSpec]:
    parts = [(path, part) for path, part in spec.walk() if part.layers] or [("", spec)]
    return next((one for one in parts if re.search(PARTS[domain], one[0])), parts[0])


def kind(part: PositionSpec) -> str | None:
    """What its attention has: one of READ, or rope; None for all else, which the entry of its name says."""
    layers = [layer for layer in part.layers if layer.attends]
    names = {use.name for layer in layers for use in layer.uses if "emperature" not in use.name}
    if not part.layers:
        return "nothing" if attention_free(part) else None
    if not layers:
        return None
    if not names:
        return None if len(layers) == len(part.layers) else "hybrid"
    if names == {"WideRoPE"}:
        return "seconds"
    if names == {"RoPE"}:
        turning = [layer for layer in layers if any(use.rotation for use in layer.uses)]
        if all(layer.chunk for layer in turning):
            return "chunks"
        return "windows" if all(layer.reach for layer in turning) else "rope"
    of = {"table" if name in TABLES else _single(KINDS.get(name, set())) for name in names}
    return "tables" if of in ({"table", "biased"}, {"table", "relative"}) else None


def _single(kinds: set[Kind]) -> str:
    return next(iter(kinds)) if len(kinds) == 1 else ""


def methods_of(config: Mapping[str, Any], spec: PositionSpec, part: PositionSpec) -> list[str] | None:
    """The methods of posenc inspect --extend-to that the model's code takes, at eight times its length; None where its
    positions are no tokens in a row. A part whose section the configuration leaves out is read by itself."""
    if not part.trained_length:
        return None
    length = 8 * max(part.trained_length, scaling(part)[1] or 0)
    for whole in (config, {"model_type": part.family}):
        try:
            path, inside = extensible(spec_of(whole))
            return [one.method for one in extend(whole, inside, length, path=path) if one.fragment]
        except ValueError:
            continue
    return []


def rotating_layer(path: str, part: PositionSpec) -> str | None:
    """Python that follows `posenc.read_config(…)`: the encoding of its first layer that turns and sees everything, where
    that is one RoPE of one axis, in front of the channels; None elsewhere."""
    for number, layer in enumerate(part.layers):
        turns = [use for use in layer.uses if use.rotation is not None]
        if layer.reach is not None or not turns:
            continue
        use = turns[0]
        plain = layer.uses == (use,) and use.name == "RoPE" and use.rotation and not use.rotation.maps and part.d_head
        if not plain or dict(use.arguments).get("trailing"):
            return None
        return "".join(f'["{name}"]' for name in path.split(".") if name) + f".encoding({number})"
    return None


def _rotation(part: PositionSpec) -> Any:
    """That of its layers without a window, or of all."""
    layers = [layer for layer in part.layers if layer.attends and layer.reach is None] or list(part.layers)
    return next((use.rotation for layer in layers for use in layer.uses if use.rotation is not None), None)


if __name__ == "__main__":
    rows = ",\n".join(f" {json.dumps(name, ensure_ascii=False)}: {json.dumps(row)}" for name, row in readings().items())
    FILE.write_text(f"{{\n{rows}\n}}\n", "utf-8")
