"""New rotary settings for a longer context, by each method, as a fragment of config.json that transformers reads.

factor = N / trained length. linear slows all pairs equally (Chen et al. 2023); ntk raises the base so that only the slowest
pair slows by the factor (bloc97 2023); yarn slows the pairs with less than a full turn and keeps the fast ones (Peng et
al. 2023); llama3 does so by wavelength (Llama 3); longrope has a factor for each pair (Ding et al. 2024), here yarn's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from posenc.bilingual import Words
from posenc.dialects import ConfigError, PositionSpec, Rotation, read_config
from posenc.frequencies import Frequencies

METHODS = ("yarn", "ntk", "linear", "llama3", "longrope")
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

WIDE = ("full_attention", "indexed_attention", "main", "global")  # names of the layers without a window, in nested settings


@dataclass(frozen=True)
class Extension:
    """One method for a longer context.

    fragment   keys that replace those of the file, in the file's own spelling; empty if the code does not support it
    before, after  the frequencies of the layers that it changes
    note       what to know about this method here
    """

    method: str
    length: int
    factor: float
    fragment: dict[str, Any]
    before: Frequencies
    after: Frequencies
    note: Words


def extensible(spec: PositionSpec) -> tuple[str, PositionSpec]:
    """The part whose context can be extended: the first with RoPE over text positions.

    Raises ValueError if nothing rotates.
    """
    for path, part in spec.walk():
        turns = any(use.rotation is not None for layer in part.layers for use in layer.uses)
        if turns and part.trained_length:
            return path, part
    raise ValueError(f"--extend-to: {spec.family} has no rotary frequencies with a trained length")


def extend(
    config: Mapping[str, Any], spec: PositionSpec, length: int, methods: tuple[str, ...] = METHODS, path: str = ""
) -> list[Extension]:
    """The extensions to `length` positions for the part of the model at `path` of the file.

    Raises ValueError for a model without one set of rotary frequencies to change, and for a length that is not longer.
    """
    rotation = rotation_to_change(spec)
    trained = pretrained_length(spec, rotation)
    if trained is None:
        raise ValueError("--extend-to: the file does not give the trained length")
    if length <= trained:
        raise ValueError(f"--extend-to: expected more than the trained {trained} positions, got {length}")
    section: Mapping[str, Any] = config
    inside = [key for key in path.split(".") if key]
    for key in inside:
        section = section.get(key) or {}
    made = []
    for method in methods:
        try:
            made.append(_extension(method, section, spec, rotation, trained, length / trained, length))
        except ConfigError as error:  # Phi-3's class reads "yarn" as "longrope"
            if len(methods) == 1:
                raise ValueError(f"--method {method}: {spec.family}'s code does not support it: {error}") from None
            now = rotation.frequencies().at_length(trained)
            made.append(
                Extension(
                    method,
                    length,
                    length / trained,
                    {},
                    now,
                    now,
                    Words(f"not for this family: {error}", f"不适用于该家族：{error}"),
                )
            )
    return [replace(one, fragment=_nested(inside, one.fragment) if one.fragment else {}) for one in made]


def _nested(path: list[str], fragment: dict[str, Any]) -> dict[str, Any]:
    for key in reversed(path):
        fragment = {key: fragment}
    return fragment


def rotation_to_change(spec: PositionSpec) -> Rotation:
    """The rotary settings of the full-attention layers; layers with a window never look further."""
    wide = [layer for layer in spec.layers if layer.reach is None] or list(spec.layers)
    found = {use.rotation for layer in wide for use in layer.uses if use.rotation is not None}
    if not found:
        rotates = any(use.rotation is not None for layer in spec.layers for use in layer.uses)
        said = "rotates only in layers with a window, which never look further" if rotates else "has no rotary frequencies"
        raise ValueError(f"--extend-to: {spec.family} {said}")
    if len(found) > 1:
        raise ValueError(
            f"--extend-to: {spec.family} has {len(found)} sets of rotary frequencies in its full layers; "
            "one method cannot set them all"
        )
    return found.pop()


def pretrained_length(spec: PositionSpec, rotation: Rotation) -> int | None:
    """The length before any scaling: the one that the file's scaling names, otherwise the file's length."""
    said = dict(rotation.parameters).get("original_length")
    return int(said) if said is not None else spec.trained_length


def _extension(
    method: str, config: Mapping[str, Any], spec: PositionSpec, rotation: Rotation, trained: int, factor: float, length: int
) -> Extension:
    settings, note = SETTINGS[method](rotation, trained, factor)
    fragment = new_settings(config, settings, length, trained, rotation.base)
    changed = read_config({**config, "model_type": spec.family, **fragment}, defaults=True)
    before, after = rotation.frequencies(), rotation_to_change(changed).frequencies()
    return Extension(method, length, factor, fragment, before.at_length(trained), after.at_length(length), note)


def _linear(rotation: Rotation, trained: int, factor: float) -> tuple[dict[str, Any], Words]:
    return {"rope_type": "linear", "factor": factor}, (
        Words(
            "Position interpolation: distances between near tokens shrink too, so fine-tune.",
            "位置插值：近处词元的距离也被压缩，需要微调。",
        )
    )


def _ntk(rotation: Rotation, trained: int, factor: float) -> tuple[dict[str, Any], Words]:
    d = rotation.width
    if d <= 2:
        raise ValueError("--method ntk: with one pair of channels there is no slower one to stretch")
    return {"rope_type": "default", "rope_theta": rotation.base * factor ** (d / (d - 2))}, (
        Words(
            "A larger base only, so every program can read it. Often used without fine-tuning, for factors up to about 4.",
            "只加大基数，任何程序都能读。倍数不超过 4 左右时常不经微调直接使用。",
        )
    )


def _yarn(rotation: Rotation, trained: int, factor: float) -> tuple[dict[str, Any], Words]:
    return {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": trained}, (
        Words(
            "cos and sin are scaled by 0.1 ln(factor) + 1; programs that ignore this are wrong at every length.",
            "cos 和 sin 乘以 0.1 ln(factor) + 1；忽略这一点的程序在任何长度都不对。",
        )
    )


def _llama3(rotation: Rotation, trained: int, factor: float) -> tuple[dict[str, Any], Words]:
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": trained,
    }, Words("Llama 3's constants 1 and 4; train with it.", "Llama 3 的常数 1 和 4；要用它训练。")


def _longrope(rotation: Rotation, trained: int, factor: float) -> tuple[dict[str, Any], Words]:
    from posenc import frequencies

    plain = frequencies.rotary(rotation.width, rotation.base)
    slowed = frequencies.yarn(plain, factor=factor, original_length=trained)
    longer = [round(a / b, 6) for a, b in zip(plain, slowed, strict=True)]
    return {
        "rope_type": "longrope",
        "short_factor": [1.0] * len(plain),
        "long_factor": longer,
        "factor": factor,
        "original_max_position_embeddings": trained,
    }, (
        Words(
            "LongRoPE's factors are searched for each model; these are yarn's, as a start of the search. "
            "The set changes at the trained length: cached keys must be recomputed there.",
            "LongRoPE 的系数要为每个模型搜索；这里取 yarn 的系数作为起点。"
            "到训练长度时换一组系数，缓存的键须在那里重新计算。",
        )
    )


SETTINGS = {"linear": _linear, "ntk": _ntk, "yarn": _yarn, "llama3": _llama3, "longrope": _longrope}


def new_settings(
    config: Mapping[str, Any], settings: dict[str, Any], length: int, trained: int, base: float
) -> dict[str, Any]:
    """The settings in the file's own spelling: rope_parameters if it has them, otherwise rope_theta and rope_scaling."""
    settings = {"rope_theta": base} | settings
    fragment: dict[str, Any] = {"max_position_embeddings": length}
    if config.get("original_max_position_embeddings") is not None:  # beside the settings it wins over the one inside
        fragment["original_max_position_embeddings"] = trained
    parameters = config.get("rope_parameters") or {}
    nested = {label: inner for label, inner in parameters.items() if isinstance(inner, Mapping) or inner is None}
    if nested:
        label = next(label for label in (*WIDE, *nested) if label in nested)
        return fragment | {"rope_parameters": {**parameters, label: _unscaled(parameters[label] or {}) | settings}}
    if parameters or "rope_theta" not in config:
        return fragment | {"rope_parameters": _unscaled(parameters) | settings}
    base = settings.pop("rope_theta")
    kept = _unscaled(config.get("rope_scaling") or {})
    plain = settings["rope_type"] == "default" and not kept
    return fragment | {"rope_theta": base, "rope_scaling": None if plain else kept | settings}


def _unscaled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The rotary settings without their scaling: mrope_section, partial_rotary_factor, …"""
    return {key: value for key, value in settings.items() if key not in SCALED and key not in ("type", "rope_type")}
