"""Phi-3 and Phi-MoE: LongRoPE, with one set of factors up to the trained length and another beyond."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.families.llama import same_kind
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.short_factors import SHORT_AT_ANY_LENGTH
from posenc.configs.spec import PositionSpec, Use


@family("phi3")
def phi3(keys: Keys) -> PositionSpec:
    """original_max_position_embeddings at the top level, 4096 by default, overrides the one in the rotary settings."""
    return decoder(keys, longrope(keys), kinds=window_kinds(keys))


@family("phimoe")
def phimoe(keys: Keys) -> PositionSpec:
    """The long factors are never used; beyond the trained length only the scale of cos and sin changes."""
    settings = keys.table("rope_scaling") or keys.table("rope_parameters")
    kind = settings.get("rope_type", settings.get("type", "default"))
    use = rope(keys, d_head=head_width(keys), also_read=("short_mscale", "long_mscale"))
    if kind == "default" or use is None or use.rotation is None:
        return decoder(keys, use, kinds=window_kinds(keys))
    if use.rotation.kind != "longrope":
        raise only_longrope(keys.where("rope_scaling"), kind, "Phimoe")
    inner = Keys(settings, "", keys.where("rope_scaling"))
    scales = tuple((name, inner.number(name)) for name in ("short_mscale", "long_mscale"))
    rotation = replace(use.rotation, kind=SHORT_AT_ANY_LENGTH, parameters=(*use.rotation.parameters, *scales))
    keys.warning(
        "rope_scaling.long_factor",
        say(
            "not used by transformers, which computes the frequencies of every length with short_factor: the model is not "
            "scaled beyond {length} positions; only long_mscale depends on the length",
            length=dict(use.rotation.parameters)["trained_length"],
        ),
    )
    use = replace(use, arguments=tuple((dict(use.arguments) | {"frequencies": rotation}).items()))
    return decoder(keys, use, kinds=window_kinds(keys))


def longrope(keys: Keys) -> Use | None:
    """LongRoPE from the rotary settings. "su" and "yarn" are old names of longrope.

    Other types are refused, as in the class.
    """
    keys.whole("original_max_position_embeddings", None)
    where = "rope_scaling" if keys.table("rope_scaling") else "rope_parameters"
    settings = keys.table(where)
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind == "yarn":
        keys.warning(f"{where}.rope_type", say("yarn is read as longrope, its old name here"))
        keys = keys.replaced({where: {**settings, "rope_type": "longrope", "type": None}})
    elif kind not in ("default", "longrope", "su"):
        raise only_longrope(f"{keys.where(where)}.rope_type", kind, keys.facts["class"])
    return rope(keys, d_head=head_width(keys), partial=True)


def only_longrope(where: str, kind: Any, of: str) -> ConfigError:
    """The error for another scaling, at the key `where` of the class `of`."""
    sentence = say(
        "{where}: expected longrope or default, got {kind!r}; {of} takes nothing else", where=where, kind=kind, of=of
    )
    return ConfigError(sentence)


def window_kinds(keys: Keys) -> list[str]:
    return same_kind(keys, "sliding_attention" if keys.whole("sliding_window", None) else "full_attention")
