"""How a file spells its rotary settings, and how transformers 5 holds them once it has read the file.

v4       rope_theta, rope_scaling, partial_rotary_factor, beside each other
v5       rope_parameters, with all of them inside
by kind  rope_parameters with one such object for each kind of layer (Gemma 3, ModernBERT, OLMo 3)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from posenc.configs import ConfigError, PositionSpec, Rotation, spec_of

SCALED = (
    "factor",
    "short_factor",
    "long_factor",
    "low_freq_factor",
    "high_freq_factor",
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "truncate",
    "original_max_position_embeddings",
    "alpha",
)

CONSTANTS = ("beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate")  # of YaRN, whatever the factor
WIDE = ("full_attention", "indexed_attention", "main", "global")  # names of the layers without a window, in nested settings
OUTSIDE = ("partial_rotary_factor", "rotary_pct", "rope_theta", "rope_scaling")  # what v5 moves into rope_parameters


def spellings(
    config: Mapping[str, Any], spec: PositionSpec, settings: dict[str, Any], length: int, trained: int, base: float
) -> Iterator[dict[str, Any]]:
    """The settings as keys that replace those of the file: first in the file's own spelling, then in others."""
    settings = {"rope_theta": base} | settings
    always: dict[str, Any] = {"max_position_embeddings": length}
    if config.get("original_max_position_embeddings") is not None:  # beside the settings it wins over the one inside
        always["original_max_position_embeddings"] = trained
    old = config.get("rope_scaling") or {}
    parameters = config.get("rope_parameters") or {}
    if parameters and old:  # of both, rope_scaling is read
        always["rope_scaling"] = None
    nested = {label: inner for label, inner in parameters.items() if isinstance(inner, Mapping) or inner is None}
    if nested:
        label = next(label for label in (*WIDE, *nested) if label in nested)
        yield always | {"rope_parameters": {**parameters, label: _unscaled(parameters[label] or {}, settings) | settings}}
        return
    of_kinds = {layer.kind: use.rotation for layer in spec.layers for use in layer.uses if use.rotation is not None}
    if not parameters and (old or "rope_theta" in config):
        kept = _unscaled(old, settings)
        inner = {key: value for key, value in settings.items() if key != "rope_theta"}
        plain = settings["rope_type"] == "default" and not kept
        yield always | {"rope_theta": settings["rope_theta"], "rope_scaling": None if plain else kept | inner}
    elif parameters or len(set(of_kinds.values())) < 2:
        yield always | {"rope_parameters": _unscaled(parameters or old, settings) | settings}
    if any(label in of_kinds for label in WIDE):
        gone = {"rope_scaling": None} if old else {}
        yield always | gone | {"rope_parameters": _by_kind(_unscaled(old, settings) | settings, spec)}


def standard(config: Mapping[str, Any], fragment: dict[str, Any], changed: PositionSpec) -> dict[str, Any]:
    """The fragment as keys of a configuration that transformers 5 has read: all rotary settings in `rope_parameters`.

    A program that changes the configuration after reading it replaces them as a whole, and reads rope_theta and
    partial_rotary_factor there alone. {} where no such keys give the frequencies of `changed`.
    """
    always = {key: value for key, value in fragment.items() if key not in ("rope_theta", "rope_scaling", "rope_parameters")}
    settings = dict(fragment.get("rope_parameters") or fragment.get("rope_scaling") or {"rope_type": "default"})
    if "rope_theta" in fragment:
        settings["rope_theta"] = fragment["rope_theta"]
    rest = {key: value for key, value in config.items() if key not in (*OUTSIDE, *fragment)}
    for parameters in (settings | _fraction(config, changed), _by_kind(settings, changed)):
        config_tried = {**rest, **always, "model_type": changed.family, "rope_parameters": parameters}
        try:
            if _rotations(spec_of(config_tried, defaults=True)) == _rotations(changed):
                return always | {"rope_parameters": parameters}
        except ConfigError:
            continue
    return {}


def _rotations(spec: PositionSpec) -> list[Rotation | None]:
    return [use.rotation for layer in spec.layers for use in layer.uses]


def _fraction(config: Mapping[str, Any], changed: PositionSpec) -> dict[str, float]:
    """partial_rotary_factor where the family's code reads it; settings by kind of layer have it inside."""
    if any(isinstance(value, Mapping) for value in (config.get("rope_parameters") or {}).values()):
        return {}
    for use in (use for layer in changed.layers for use in layer.uses):
        if use.rotation is None:
            continue
        width, d_head = use.rotation.width, dict(use.arguments).get("d_head")
        said_by = dict(use.said_by).get("rotary_dim", "")
        if d_head and width != d_head and said_by.endswith(("partial_rotary_factor", "rotary_pct", "Config", "code")):
            fractions = [config.get(key) for key in OUTSIDE if config.get(key) is not None]
            fits = [
                share for share in (*fractions, width / d_head) if isinstance(share, float) and int(d_head * share) == width
            ]
            return {"partial_rotary_factor": fits[0]} if fits else {}
    return {}


def _by_kind(settings: dict[str, Any], changed: PositionSpec) -> dict[str, Any]:
    """`settings` for the layers without a window, plain frequencies for the others."""
    kinds = {layer.kind: use.rotation for layer in changed.layers for use in layer.uses if use.rotation is not None}
    wide = next((label for label in WIDE if label in kinds), "")
    return {
        kind: settings if kind == wide else {"rope_type": "default", "rope_theta": rotation.base}
        for kind, rotation in kinds.items()
    }


def _unscaled(settings: Mapping[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The rotary settings without their scaling: mrope_section, … YaRN on YaRN keeps its constants."""
    kind = settings.get("rope_type", settings.get("type"))
    scaled = set(SCALED) - (set(CONSTANTS) if kind == new["rope_type"] == "yarn" else set())
    return {key: value for key, value in settings.items() if key not in scaled and key not in ("type", "rope_type")}
