"""What `posenc choose` has to know of a trained model, asked of its reader: a row as in catalogue/choose/readings.json."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from posenc.catalogue.choose.reading import METHODS, READ, SCALED, Reading
from posenc.catalogue.entry import Kind
from posenc.catalogue.lookup import ENTRIES
from posenc.catalogue.lookup import METHODS as CLASS_ENTRIES
from posenc.configs.as_python import as_python, frequencies_as_python
from posenc.configs.families.diffusion_transformers import ROWS, positions_of
from posenc.configs.read import spec_of
from posenc.configs.report.extension import extend, extensible
from posenc.configs.report.limit import scaling
from posenc.configs.spec import BY_AXIS, PositionSpec, Rotation, Use

REPEATS = {"HunyuanVideoTransformer3DModel": 50, "CogVideoXTransformer3DModel": 20}
"""The latent frame at which longer videos begin to repeat, in the commands of RIFLEx's authors: N_k of their README.md."""
PARTS = {
    "text": r"(text|language|llm)_config$|(^|\.)(decoder|text_model)$",
    "image": "vision|image",
    "audio": "audio|speech|encoder",
}
"""The part of a model that has the tokens of a domain, by its name; without one, its first."""
TABLES = ("Learned", "LearnedGrid", "LearnedAxes")
SCALINGS = ("linear", "dynamic", "yarn", "llama3", "longrope", "proportional")
MAPS = {"sections": "mrope", "interleaved_sections": "interleaved_mrope", "axial": "axial_rope", "strided": "pixtral_rope"}
CLASSES = {
    "LearnedGrid": "vit",
    "LearnedAxes": "learned_2d",
    "WindowBias": "swin",
    "DecomposedBias": "decomposed",
    "LeRoPE": "lerope",
    "MixedRoPE": "rope_mixed",
}
"""Classes that several entries build, and the one that is meant."""
NO_ATTENTION = tuple(
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


def reading_of(name: str, config: Mapping[str, Any]) -> Reading:
    """Of a configuration in the file `name`. Raises ConfigError for one that cannot be read."""
    spec = spec_of(config)
    row = row_of(config, spec)
    methods = row.get("methods", METHODS)
    entry = next(iter(entries_of(part_for(spec, "text")[1])), "")
    more = {"methods": None if methods is None else tuple(methods), "file": name, "entry": entry}
    return Reading(spec.family, **{**row, **more})


def row_of(config: Mapping[str, Any], spec: PositionSpec) -> dict[str, Any]:
    """The fields of its `Reading` that differ from the usual; `spec` is what the configuration says."""
    row = dict[str, Any]()
    path, part = part_for(spec, "text")
    if found := {domain: of for domain in PARTS if (of := kind(part_for(spec, domain)[1])) in READ}:
        row["of"] = found if len(set(found.values())) > 1 or len(found) < len(PARTS) else next(iter(found.values()))
    if kind(part) == "rope":
        if (methods := methods_of(config, spec, part)) != list(METHODS):
            row["methods"] = methods
            if methods == []:
                row["of"] = (row.get("of") or {}) | {"text": "closed"}
        if (layer := rotating_layer(path, part)) != ".encoding(0)":
            row["layer"] = layer
        if (rotation := _rotation(part)) and rotation.kind in SCALED:
            row["scaled"] = rotation.kind
    return row | (_diffusion(spec, part) if spec.family in ROWS else {})


def _diffusion(spec: PositionSpec, part: PositionSpec) -> dict[str, Any]:
    """Of a class of diffusers: the call that builds its encoding, its positions, and the spectra of its axes."""
    at = positions_of(part)
    told: dict[str, Any] = {"methods": None} | ({"at": at} if at else {})
    if "frames" in at and "height" in at:
        told["video"] = True
    use = next((use for layer in part.layers for use in layer.uses), None)
    if use is None:
        return told
    told["call"], rotation = as_python(use), use.rotation
    if rotation and not rotation.maps and rotation.kind in ("rotary", BY_AXIS):
        parameters = dict(rotation.parameters)
        sizes = list(parameters.get("sizes", (rotation.width,)))
        by = parameters.get("ntk", [1.0] * len(sizes))
        told["axes"] = {
            "sizes": sizes,
            "bases": [rotation.base * factor ** (d / (d - 2)) for d, factor in zip(sizes, by, strict=True)],
            "frequencies": frequencies_as_python(rotation),
            "around": as_python(use, "FREQUENCIES"),
        } | ({"repeats": REPEATS[spec.family]} if spec.family in REPEATS else {})
    return told


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
    of = {"table" if name in TABLES else _single(_kinds(name)) for name in names}
    return "tables" if of in ({"table", "biased"}, {"table", "relative"}) else None


def attention_free(spec: PositionSpec) -> bool:
    """Whether its reader says that nothing in it has positions, and where order comes from."""
    return not spec.layers and not spec.parts and spec.coordinates.en.startswith(NO_ATTENTION)


def _kinds(class_name: str) -> set[Kind]:
    return {entry.kind for entry in ENTRIES if entry.class_name == class_name}


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
        use, rotation = turns[0], turns[0].rotation
        plain = layer.uses == (use,) and use.name == "RoPE" and rotation and not rotation.maps and part.d_head
        if not plain or dict(use.arguments).get("trailing") or (rotation and rotation.kind == BY_AXIS):
            return None
        return "".join(f'["{name}"]' for name in path.split(".") if name) + f".encoding({number})"
    return None


def _rotation(part: PositionSpec) -> Rotation | None:
    """That of its layers without a window, or of all."""
    layers = [layer for layer in part.layers if layer.attends and layer.reach is None] or list(part.layers)
    return next((use.rotation for layer in layers for use in layer.uses if use.rotation is not None), None)


def entries_of(spec: PositionSpec) -> list[str]:
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
    if own == "Sinusoidal" and dict(use.arguments).get("reads") in ((1, 0), (2, 1)):  # column, then row
        return "sinusoidal_2d"
    if own == "RoPE" and use.rotation is not None:
        arguments = dict(use.arguments)
        return "decoupled_rope" if arguments.get("trailing") else _of_rotation(use.rotation, arguments["d_head"])
    entry = CLASS_ENTRIES.get(own)
    return entry.name if entry else None


def _of_rotation(rotation: Rotation, d_head: int) -> str | None:
    if rotation.kind == BY_AXIS:
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
