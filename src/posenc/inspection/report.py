"""The report of posenc inspect as plain data: one dict, from which the page is drawn."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import torch

from posenc.dialects import Layer, PositionSpec, Remark, Rotation, Use
from posenc.dialects.spec import GRADES
from posenc.frequencies import Frequencies
from posenc.inspection.meaning import leaving, meaning
from posenc.inspection.remarks import remarks


def report(spec: PositionSpec, length: int | None = None) -> dict[str, Any]:
    """The report on the model and every part with attention layers; with `length`, also what happens there."""
    walked = [(path, part) for path, part in spec.walk() if part.layers]
    found = [asdict(remark) for remark in all_remarks(spec)]
    return {
        "family": spec.family,
        "config_class": spec.config_class,
        "parts": [described(path, part, length) for path, part in walked],
        "without_attention": [
            {"part": path, "family": part.family, "coordinates": part.coordinates}
            for path, part in spec.walk()
            if not part.layers and not part.parts
        ],
        "remarks": found,
        "findings": found,  # the old name, until 0.3
    }


def all_remarks(spec: PositionSpec) -> list[Remark]:
    """Remarks on the file's keys and on the encodings, errors first, without duplicates."""
    found: list[Remark] = []
    for path, part in spec.walk():
        found += part.remarks
        found += [replace(one, key=f"{path}.{one.key}".strip(".")) for one in remarks(part)]
    once = list(dict.fromkeys(found))
    return sorted(once, key=lambda remark: GRADES.index(remark.grade))


def described(path: str, spec: PositionSpec, length: int | None) -> dict[str, Any]:
    return {
        "part": path,
        "family": spec.family,
        "n_layers": len(spec.layers),
        "n_heads": spec.n_heads,
        "d_head": spec.d_head,
        "d_model": spec.d_model,
        "trained_length": spec.trained_length,
        "coordinates": spec.coordinates,
        "input": [_use(use, spec, spec.layers[0], length) for use in at_input(spec)],
        "groups": [
            {
                "layers": numbers,
                "kind": layer.kind,
                "window": layer.window,
                "chunk": layer.chunk,
                "causal": layer.causal,
                "encodings": [_use(use, spec, layer, length) for use in layer.uses],
            }
            for layer, numbers in grouped(inside(spec))
        ],
    }


def at_input(spec: PositionSpec) -> list[Use]:
    """The encodings added to the embeddings, before the first layer."""
    return [use for use in spec.layers[0].uses if acts(use)[0] == ("embed",)]


def inside(spec: PositionSpec) -> tuple[Layer, ...]:
    """The layers without what is added to the embeddings."""
    added = at_input(spec)
    first = replace(spec.layers[0], uses=tuple(use for use in spec.layers[0].uses if use not in added))
    return (first, *spec.layers[1:])


@functools.lru_cache(maxsize=1024)
def acts(use: Use) -> tuple[tuple[str, ...], str]:
    """The sites where it acts ("embed", "rotate", "bias", "context", "value"), and the first sentence of its docstring."""
    with torch.device("meta"):  # sizes of a file cost nothing here
        made = use.build()
    idea = " ".join((type(made).__doc__ or "").split("\n\n")[0].split())
    return tuple(site.name.lower() for site in made.sites if site.name), idea


def grouped(layers: tuple[Layer, ...]) -> list[tuple[Layer, list[int]]]:
    """Equal layers grouped together, in order of first appearance."""
    groups: dict[Layer, list[int]] = {}
    for number, layer in enumerate(layers):
        groups.setdefault(layer, []).append(number)
    return list(groups.items())


def _use(use: Use, spec: PositionSpec, layer: Layer, length: int | None) -> dict[str, Any]:
    seams, idea = acts(use)
    about: dict[str, Any] = {
        "encoding": use.name,
        "idea": idea,
        "seams": list(seams),
        "arguments": {name: _plain(value) for name, value in use.arguments if not isinstance(value, Rotation)},
        "said_by": dict(use.said_by),
        "note": use.note,
    }
    if use.rotation is not None and "d_head" in dict(use.arguments):
        made = use.rotation.frequencies().at_length(spec.trained_length or 1)
        about["rotation"] = _rotation(use.rotation, made)
        if spec.trained_length:
            about["meaning"] = _finite(asdict(meaning(made, spec.trained_length)))
            if length is not None:
                there = use.rotation.frequencies().at_length(length)
                pairs = leaving(there, spec.trained_length, length, layer.reach)
                about["beyond"] = {
                    "length": length,
                    "pairs": list(pairs),
                    "of": len(there),
                    "meaning": _finite(asdict(meaning(there, length))),
                }
    elif length is not None:
        about["beyond"] = {"length": length, "text": _beyond(use, length)}
    return about


def _beyond(use: Use, length: int) -> str:
    arguments = dict(use.arguments)
    rows = arguments.get("max_positions")
    if isinstance(rows, int):
        return f"the table ends at {rows}: position {rows} and later are errors" if length > rows else "within the table"
    if "max_distance" in arguments:
        return f"distances from {arguments['max_distance']} on share one bucket"
    return "defined for any length"


def _rotation(rotation: Rotation, made: Frequencies) -> dict[str, Any]:
    return {
        "kind": rotation.kind,
        "base": rotation.base,
        "width": rotation.width,
        "parameters": {name: _plain(value) for name, value in rotation.parameters},
        "frequencies": list(made),
        "axes": list(made.axes),
        "values_from": made.values_from,
        "cos_sin_scale": made.cos_sin_scale,
        "cos_sin_scale_from": made.cos_sin_scale_from,
        "softmax_scale": made.softmax_scale,
        "softmax_scale_from": made.softmax_scale_from,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _finite(numbers: dict[str, Any]) -> dict[str, Any]:
    """Replaces infinities by None, since JSON has none: the wavelength of a pair that never rotates is null."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in numbers.items()}
