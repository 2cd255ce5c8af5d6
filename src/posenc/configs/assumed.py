"""Defaults of configuration classes for keys that a file lacks, and settings with which a class fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Use


def with_assumed(keys: Keys, parameters: Mapping[str, Any] | None = None) -> Keys:
    """The same keys, with the rope_parameters that the class makes if the file has neither these nor rope_scaling.

    If the defaults have a base, rope_theta is ignored, as in the class. Raises ConfigError unless the caller allows
    defaults.
    """
    if keys.has("rope_parameters") or keys.has("rope_scaling"):
        return keys
    owner = keys.facts["class"]
    parameters = parameters or keys.facts.get("rope") or keys.facts["defaults"]["rope_parameters"]
    assumptions = ", ".join(f"{key}={value}" for key, value in parameters.items())
    if not keys.base_may_be_default:
        raise ConfigError(
            f"{keys.where('rope_parameters')}: missing; {owner} would assume {assumptions}. Add it to the file, or "
            "read without defaults=False"
        )
    keys.note("rope_parameters", say("missing: {owner} assumes {assumed}", owner=owner, assumed=assumptions))
    fixed = "rope_theta" in parameters or any(isinstance(value, Mapping) for value in parameters.values())
    if fixed and keys.has("rope_theta"):
        keys.error("rope_theta", say("{owner} does not read it if rope_parameters is missing", owner=owner))
    gone = ("rope_theta", "rope_parameters") if fixed else ("rope_parameters",)
    defaults = keys.facts["defaults"] | {"rope_parameters": dict(parameters)}
    return keys.replaced(without=gone, facts={"defaults": defaults})


def scaled_without_width(keys: Keys, use: Use | None) -> None:
    """Remarks that head_dim is missing where neither class nor file has it and the scaling needs it: transformers fails."""
    kind = use.rotation.kind if use is not None and use.rotation is not None else "rotary"
    if keys.whole("head_dim", None) is None and kind in ("yarn", "dynamic", "longrope", "ntk_alpha"):
        keys.error(
            "head_dim", say("missing: transformers 5.23 fails with {kind} scaling in this family; add it", kind=kind)
        )


def settings_by_kind(keys: Keys, labels: tuple[str, ...], *names: str) -> None:
    """Remarks that the class fails with these settings of the file unless they have an entry for each kind of layer."""
    for name in names or ("rope_parameters", "rope_scaling"):
        if name in keys.data and not (keys.has(name) and any(label in keys.table(name) for label in labels)):
            keys.error(name, say("the code requires one entry for each kind of layer, and fails"))


def longrope_of_layers(keys: Keys, spec: PositionSpec) -> None:
    """Remarks that longrope fails where layers have sizes of their own: transformers asks for one head_dim."""
    if any(use.rotation is not None and use.rotation.kind == "longrope" for layer in spec.layers for use in layer.uses):
        keys.error("rope_parameters", say("transformers 5.23 fails with longrope where layers have sizes of their own"))


def unscaled_only(keys: Keys, use: Use | None) -> Use | None:
    """The same use; remarks that the class fails with scaled frequencies."""
    if use is not None and use.rotation is not None and use.rotation.kind != "rotary":
        keys.error("rope_parameters.rope_type", say("the class accepts 'default' alone, and fails"))
    return use
