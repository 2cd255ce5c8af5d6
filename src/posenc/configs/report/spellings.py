"""How a file spells its rotary settings, and how transformers 5 holds them once it has read the file.

v4       rope_theta, rope_scaling, partial_rotary_factor, beside each other
v5       rope_parameters, with all of them inside
by kind  rope_parameters with one such object for each kind of layer (Gemma 3, ModernBERT, OLMo 3)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from posenc.configs import ConfigError, PositionSpec, Rotation, Use, spec_of

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
FRACTION = "partial_rotary_factor"
OUTSIDE = (FRACTION, "rotary_pct", "rotary_dim", "rope_theta", "rotary_emb_base", "rope_scaling")  # v5: in rope_parameters


def spellings(
    config: Mapping[str, Any], spec: PositionSpec, settings: dict[str, Any], length: int, trained: int, base: float
) -> Iterator[dict[str, Any]]:
    """The settings as keys that replace those of the file: first in the file's own spelling, then in others."""
    always: dict[str, Any] = {"max_position_embeddings": length}
    if config.get("original_max_position_embeddings") is not None:  # beside the settings it wins over the one inside
        always["original_max_position_embeddings"] = trained
    old = config.get("rope_scaling") or {}
    parameters = config.get("rope_parameters") or {}
    if parameters and old:  # of both, rope_scaling is read
        always["rope_scaling"] = None
    uses = _of_kinds(spec)
    nested = {label: inner for label, inner in parameters.items() if isinstance(inner, Mapping) or inner is None}
    label = next((label for label in (*WIDE, *nested) if label in nested), "")
    fraction = uses[_wide(uses)].fraction
    given = [inner.get(FRACTION) for inner in (config, old, parameters, parameters.get(label) or {})]
    if fraction is not None and any(value not in (None, fraction) for value in given):  # one that the code does not read
        settings = {FRACTION: fraction} | settings
        always |= {FRACTION: fraction} if FRACTION in config else {}
    settings = {"rope_theta": base} | settings
    if nested:
        yield always | {"rope_parameters": {**parameters, label: _unscaled(parameters[label] or {}, settings) | settings}}
        return
    if not parameters and (old or "rope_theta" in config):
        kept = _unscaled(old, settings)
        inner = {key: value for key, value in settings.items() if key != "rope_theta"}
        plain = settings["rope_type"] == "default" and not kept
        yield always | {"rope_theta": settings["rope_theta"], "rope_scaling": None if plain else kept | inner}
    gone = {"rope_scaling": None} if old else {}
    if len({use.rotation for use in uses.values()}) < 2:
        yield always | gone | {"rope_parameters": _unscaled(parameters or old, settings) | settings}
    if any(label in uses for label in WIDE):
        yield always | gone | {"rope_parameters": _by_kind(_unscaled(old, settings) | settings, uses, [_wide(uses)])}


def standard(config: Mapping[str, Any], fragment: dict[str, Any], changed: PositionSpec) -> dict[str, Any]:
    """The fragment as keys of a configuration that transformers 5 has read: all rotary settings in `rope_parameters`.

    A program that changes the configuration after reading it replaces them as a whole, and reads rope_theta and
    partial_rotary_factor there alone. {} where no such keys give the frequencies of `changed`.
    """
    moved = (*OUTSIDE, "rope_parameters")
    always = {key: value for key, value in fragment.items() if key not in moved}
    settings = dict(fragment.get("rope_parameters") or fragment.get("rope_scaling") or {"rope_type": "default"})
    rest = {key: value for key, value in config.items() if key not in (*moved, *fragment)}
    uses = _of_kinds(changed)
    if any(isinstance(inner, Mapping) for inner in settings.values()):
        tried = [
            {kind: inner | _fraction(uses[kind]) if inner and kind in uses else inner for kind, inner in settings.items()}
        ]
    else:
        settings |= {key: fragment[key] for key in ("rope_theta", FRACTION) if key in fragment}
        alike = [kind for kind, use in uses.items() if use.rotation == uses[_wide(uses)].rotation]
        # Where settings for each kind of layer are read, those for all are not.
        tried = [_by_kind(settings, uses, alike), settings | _fraction(uses[_wide(uses)])]
    for parameters in tried:
        config_tried = {**rest, **always, "model_type": changed.family, "rope_parameters": parameters}
        try:
            read = spec_of(config_tried, defaults=True)
            if _rotations(read) == _rotations(changed) and complaints(read) <= complaints(changed):
                return always | {"rope_parameters": parameters}
        except ConfigError:
            continue
    return {}


def complaints(spec: PositionSpec) -> set[str]:
    """The rotary keys of this part in which the reader found an error."""
    keys = {remark.key for remark in spec.remarks if remark.grade == "error"}
    return {key for key in keys if key.startswith(("rope_", "head_dim"))}


def _rotations(spec: PositionSpec) -> list[Rotation | None]:
    return [use.rotation for layer in spec.layers for use in layer.uses]


def _of_kinds(spec: PositionSpec) -> dict[str, Use]:
    """The rotary encoding of each kind of layer."""
    return {layer.kind: use for layer in spec.layers for use in layer.uses if use.rotation is not None}


def _wide(uses: Mapping[str, Use]) -> str:
    """The kind without a window, or the only one."""
    return next(label for label in (*WIDE, *uses) if label in uses)


def _fraction(use: Use) -> dict[str, float]:
    return {} if use.fraction is None else {FRACTION: use.fraction}


def _by_kind(settings: dict[str, Any], uses: Mapping[str, Use], kinds: Sequence[str]) -> dict[str, Any]:
    """`settings` for these kinds of layers, plain frequencies for the others."""
    return {
        kind: (settings if kind in kinds else {"rope_type": "default", "rope_theta": use.rotation.base}) | _fraction(use)
        for kind, use in uses.items()
        if use.rotation is not None
    }


def _unscaled(settings: Mapping[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The rotary settings without their scaling: mrope_section, … YaRN on YaRN keeps its constants."""
    kind = settings.get("rope_type", settings.get("type"))
    scaled = set(SCALED) - (set(CONSTANTS) if kind == new["rope_type"] == "yarn" else set())
    return {key: value for key, value in settings.items() if key not in scaled and key not in ("type", "rope_type")}
