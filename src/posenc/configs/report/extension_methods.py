"""The rotary settings of each method for a longer context.

factor = N / trained length. linear slows all pairs equally (Chen et al. 2023); ntk raises the base so that only the slowest
pair slows by the factor (bloc97 2023); yarn slows the pairs with less than a full turn and keeps the fast ones (Peng et
al. 2023); llama3 does so by wavelength (Llama 3); longrope has a factor for each pair (Ding et al. 2024), here yarn's.

A model that was trained with linear scaling keeps it under linear and ntk; the others cannot be combined with it. Nor can
they with proportional frequencies (Gemma 4), of which some are zero: there linear is `factor` and ntk a larger base.
"""

from __future__ import annotations

from typing import Any

from posenc.configs import ConfigError, Rotation
from posenc.configs.say import say
from posenc.configs.short_factors import SHORT_AT_ANY_LENGTH
from posenc.support.languages import Words


def remarks(rotation: Rotation, settings: dict[str, Any]) -> list[Words]:
    """What becomes of the scaling that the file has already."""
    parameters = dict(rotation.parameters)
    kind = "longrope" if rotation.kind == SHORT_AT_ANY_LENGTH else rotation.kind
    if kind == settings["rope_type"] == "yarn" and "attention_factor" in parameters:
        return [say("The file's attention_factor was for its own factor and is left out.")]
    if kind in ("yarn", "llama3", "longrope") and kind != settings["rope_type"]:
        return [say("Replaces the file's {kind}, with which the model was trained: fine-tune.", kind=kind)]
    return []


def _divided(rotation: Rotation, factor: float) -> dict[str, Any]:
    """The settings of the file's own kind, linear or proportional, with all frequencies divided by `factor` more."""
    parameters = dict(rotation.parameters)
    divided = factor * float(parameters.get("factor", 1.0)) if rotation.kind in ("linear", "proportional") else factor
    times = {} if divided == 1 else {"factor": divided}
    if rotation.kind == "proportional":
        return {"rope_type": "proportional", "partial_rotary_factor": parameters["fraction"]} | times
    return {"rope_type": "linear" if times else "default"} | times


def _linear(rotation: Rotation, trained: int, factor: float) -> tuple[dict[str, Any], Words]:
    return _divided(rotation, factor), (
        say("Position interpolation: distances between near tokens shrink too, so fine-tune.")
    )


def _ntk(rotation: Rotation, trained: int, factor: float) -> tuple[dict[str, Any], Words]:
    slowest = rotation.width // 2 - 1
    if rotation.kind == "proportional":
        slowest = int(dict(rotation.parameters)["fraction"] * rotation.width // 2) - 1
    if slowest < 1:
        raise ValueError("--method ntk: with one pair of channels there is no slower one to stretch")
    base = rotation.base * factor ** (rotation.width / (2 * slowest))
    return {**_divided(rotation, 1.0), "rope_theta": base}, (
        say("A larger base only, so every program can read it. Often used without fine-tuning, for factors up to about 4.")
    )


def _alone(rotation: Rotation, method: str) -> None:
    """Raises ConfigError where transformers would replace frequencies that the model was trained with."""
    if rotation.kind == "linear":
        raise ConfigError(
            say(
                "rope_type: the model was trained with linear scaling ×{factor:g}, which transformers cannot combine with "
                "{method}; use linear or ntk",
                factor=dict(rotation.parameters)["factor"],
                method=method,
            )
        )
    if rotation.kind == "proportional":
        raise ConfigError(
            say(
                "rope_type: of the model's proportional frequencies some are zero, and {method} would set those pairs "
                "turning; use linear or ntk",
                method=method,
            )
        )


def _yarn(rotation: Rotation, trained: int, factor: float) -> tuple[dict[str, Any], Words]:
    _alone(rotation, "yarn")
    return {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": trained}, (
        say("cos and sin are scaled by 0.1 ln(factor) + 1; programs that ignore this are wrong at every length.")
        if not any("mscale" in name for name in (*dict(rotation.parameters), *dict(rotation.maps)))
        else say(
            "mscale and mscale_all_dim are kept: they scale cos, sin and the softmax for the new factor; programs that "
            "ignore this are wrong at every length."
        )
    )


def _llama3(rotation: Rotation, trained: int, factor: float) -> tuple[dict[str, Any], Words]:
    _alone(rotation, "llama3")
    parameters = dict(rotation.parameters)
    low, high = parameters.get("low_freq_factor", 1.0), parameters.get("high_freq_factor", 4.0)
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": low,
        "high_freq_factor": high,
        "original_max_position_embeddings": trained,
    }, (
        say("The file's own constants; train with it.")
        if rotation.kind == "llama3"
        else say("Llama 3's constants 1 and 4; train with it.")
    )


def _longrope(rotation: Rotation, trained: int, factor: float) -> tuple[dict[str, Any], Words]:
    from posenc import frequencies

    _alone(rotation, "longrope")
    if rotation.kind == SHORT_AT_ANY_LENGTH:
        raise ConfigError(say("long_factor: this family's code never uses it"))
    plain = frequencies.rotary(rotation.width, rotation.base)
    slowed = frequencies.yarn(plain, factor=factor, trained_length=trained)
    longer = [round(a / b, 6) for a, b in zip(plain, slowed, strict=True)]
    return {
        "rope_type": "longrope",
        "short_factor": [1.0] * len(plain),
        "long_factor": longer,
        "factor": factor,
        "original_max_position_embeddings": trained,
    }, (
        say(
            "LongRoPE's factors are searched for each model; these are yarn's, as a start of the search. "
            "The set changes at the trained length: cached keys must be recomputed there."
        )
    )


SETTINGS = {"yarn": _yarn, "ntk": _ntk, "linear": _linear, "llama3": _llama3, "longrope": _longrope}
METHODS = tuple(SETTINGS)
