"""Rotary settings in every spelling: from a section of a configuration to one Use of RoPE.

    v4   rope_theta, partial_rotary_factor, rope_scaling: {"type" or "rope_type": …, "factor": …}
    v5   rope_parameters: {"rope_type": …, "rope_theta": …, …}, or one such object for each kind of layer

If both are given, transformers' own rules decide (modeling_rope_utils.py, 5.23), and which keys each type takes.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.keys import MISSING, Keys
from posenc.configs.say import say
from posenc.configs.spec import Rotation, Use
from posenc.support.languages import Words

YARN = {
    "factor": "factor",
    "original_max_position_embeddings": "trained_length",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "truncate": "truncate",
    "attention_factor": "attention_factor",
    "mscale": "mscale",
    "mscale_all_dim": "mscale_all_dim",
}
TYPES: dict[str, tuple[str, dict[str, str]]] = {  # rope_type -> our function, its key -> our argument
    "default": ("rotary", {}),
    "axial": ("rotary", {}),
    "mrope": ("rotary", {}),
    "linear": ("linear", {"factor": "factor"}),
    "dynamic": ("dynamic", {"factor": "factor", "alpha": "alpha"}),
    "yarn": ("yarn", YARN),
    "longrope": (
        "longrope",
        {
            "short_factor": "short_factor",
            "long_factor": "long_factor",
            "factor": "factor",
            "original_max_position_embeddings": "trained_length",
            "attention_factor": "attention_factor",
        },
    ),
    "llama3": (
        "llama3",
        {
            "factor": "factor",
            "low_freq_factor": "low_freq_factor",
            "high_freq_factor": "high_freq_factor",
            "original_max_position_embeddings": "trained_length",
        },
    ),
    "proportional": ("proportional", {"factor": "factor"}),
}
ALIASES = {"su": "longrope", "ntk_alpha": "dynamic", "xdrope": "dynamic"}
NEEDED = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}
# What published files carry that no code reads: the Yarn-Llama-2 and Yarn-Mistral files, HunYuan's.
CARRIED = {"yarn": ("finetuned",), "dynamic": ("beta_fast", "beta_slow", "mscale", "mscale_all_dim")}
ANYWHERE = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}


def rope(
    keys: Keys,
    *,
    d_head: int,
    layout: str = "half",
    label: str | None = None,
    labels: tuple[str, ...] = (),
    rotary_dim: int | None = None,
    partial: bool = False,
    partial_default: float = 1.0,
    base: float | None = None,
    base_key: str = "rope_theta",
    also_read: tuple[str, ...] = (),
    maps: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = (),
    note: Words | None = None,
    **options: Any,
) -> Use | None:
    """RoPE from the rotary settings, or None if the file has null for these layers.

    label, labels    which entry of a nested rope_parameters, and all entries that the family supports
    rotary_dim       rotated channels, if the family fixes them (qk_rope_head_dim)
    partial          whether the family's code reads partial_rotary_factor without scaling; `partial_default` is its default
    base             a constant of the family's code; otherwise `base_key` is required
    also_read        further keys of the rotary settings that the family's code reads itself (mrope_section, …)
    options          further arguments of posenc's RoPE: trailing, reverse, returns, sides
    Raises ConfigError for a missing base or number, an unknown type, contradictions.
    """
    settings, where = _settings(keys, label, labels)
    if settings is None:
        return None
    kind = _kind(keys, settings, where)
    name, takes = TYPES[kind]
    said_by: dict[str, str] = {}

    fraction, written = _fraction(keys, settings, where, kind, partial, partial_default, said_by, rotary_dim)
    if rotary_dim is None:
        rotary_dim = int(d_head * fraction)
    if rotary_dim < 1 or 2 * ((rotary_dim + 1) // 2) > d_head:
        names = ("head_dim",) if keys.has("head_dim") else ("hidden_size", "num_attention_heads")
        sizes = ", ".join(keys.spelt(name) for name in names)
        raise ConfigError(
            f"{sizes}: {rotary_dim} of {d_head} channels would rotate, in pairs; expected an even number, at least 2"
        )
    number = base if base is not None else _base(keys, settings, where, base_key, label)
    said_by["base"] = keys.origins["base"] if base is None else "constant of the code"

    parameters = {ours: _frozen(settings[key]) for key, ours in takes.items() if settings.get(key) is not None}
    _check_parameters(keys, settings, where, kind, takes, also_read)
    if kind == "yarn" and not (parameters.get("mscale") and parameters.get("mscale_all_dim")):
        mscales = parameters.pop("mscale", None), parameters.pop("mscale_all_dim", None)
        if any(mscales) and "mscale_all_dim" not in also_read:
            keys.note(
                where.removeprefix(keys.path).strip("."),
                say(
                    "mscale and mscale_all_dim affect cos and sin only together; here cos and sin are scaled "
                    "by 1 + 0.1·ln factor{too}",
                    too="",
                ),
            )
    nested = label is not None and where.endswith(f".{label}")
    if nested and parameters.pop("truncate", True) is False:
        keys.warning(
            f"{where.removeprefix(keys.path).strip('.')}.truncate",
            say("transformers reads it at the top of rope_parameters, not here, and rounds the range"),
        )
    _set_trained_length(keys, settings, where, kind, parameters, nested)
    if kind == "dynamic":
        name, parameters = _dynamic(keys, parameters)
    if kind == "proportional":
        parameters["fraction"], rotary_dim = fraction, d_head
    said_by |= {ours: f"{where}.{key}".strip(".") for key, ours in takes.items() if ours in parameters and key in settings}

    rotation = Rotation(rotary_dim, number, name, tuple(sorted(parameters.items())), maps)
    arguments: dict[str, Any] = {"d_head": d_head, "layout": layout, "frequencies": rotation} | options
    return Use("encodings.rope.RoPE", tuple(arguments.items()), tuple(said_by.items()), note=note, fraction=written)


def is_nested(keys: Keys, labels: tuple[str, ...]) -> bool:
    return any(label in keys.table("rope_parameters") for label in labels)


def _settings(keys: Keys, label: str | None, labels: tuple[str, ...]) -> tuple[dict[str, Any] | None, str]:
    """The rotary settings for these layers, and their key. transformers prefers rope_scaling."""
    parameters, scaling = keys.table("rope_parameters"), keys.table("rope_scaling")
    if keys.has("rope_parameters") and scaling:
        keys.remark(
            "error" if parameters != scaling else "warning",
            "rope_scaling",
            say("the file also has rope_parameters; transformers uses rope_scaling and ignores the other"),
        )
    chosen, name = (scaling, "rope_scaling") if scaling else (parameters, "rope_parameters")
    if label is not None and any(known in chosen for known in labels or (label,)):
        for extra in [key for key in chosen if key not in labels]:
            keys.warning(f"{name}.{extra}", say("is beside the entries for kinds of layers, where it is not read"))
        if label not in chosen:
            raise ConfigError(f"{keys.where(name)}: has no entry for {label!r} layers, only {', '.join(chosen)}")
        inner = chosen[label]
        if inner is not None and not isinstance(inner, Mapping):
            raise ConfigError(f"{keys.where(name)}.{label}: expected an object or null, got {inner!r}")
        return (None if inner is None else dict(inner)), keys.where(f"{name}.{label}")
    silent = chosen and not keys.has(name)
    return chosen, f"default of {keys.facts['class']}, {name}" if silent else keys.where(name)


def _kind(keys: Keys, settings: dict[str, Any], where: str) -> str:
    types = {key: settings[key] for key in ("rope_type", "type") if settings.get(key) is not None}
    kinds = {ALIASES.get(str(value), str(value)) for value in types.values()}
    if kinds == {"default", "mrope"}:
        kinds = {"mrope"}
    if len(kinds) > 1:
        keys.error(
            f"{where.removeprefix(keys.path).strip('.')}.rope_type",
            say(
                "{where} has rope_type={rope_type!r} and type={type!r}; transformers uses rope_type",
                where=where,
                rope_type=types["rope_type"],
                type=types["type"],
            ),
        )
    value = types.get("rope_type", types.get("type", "default"))
    kind = ALIASES.get(str(value), value)
    if not isinstance(kind, str) or kind not in TYPES:
        raise ConfigError(f"{where}.rope_type: expected one of {', '.join(sorted({*TYPES, *ALIASES}))}, got {value!r}")
    return kind


def _base(keys: Keys, settings: dict[str, Any], where: str, base_key: str, label: str | None) -> float:
    """rope_theta: from the settings, from the top level, or, if the caller allows it, the class's default."""
    if settings.get("rope_theta") is not None:
        inner = Keys(settings, "", where)
        keys.origins["base"] = f"{where}.rope_theta"
        base = inner.number("rope_theta")
        if keys.has(base_key) and keys.number(base_key) != base:
            keys.warning(
                base_key,
                say(
                    "{where}.rope_theta={base:g} overrides {base_key}={overridden:g}",
                    where=where,
                    base=base,
                    base_key=base_key,
                    overridden=keys.number(base_key),
                ),
            )
        return float(base)
    base = keys.number(base_key, None)
    if base is not None:
        keys.origins["base"] = keys.said_by(base_key)
        return float(base)
    assumed = keys.facts["base"]
    if isinstance(assumed, Mapping):
        assumed = assumed.get({"sliding_attention": "local", "full_attention": "global"}.get(label or "", "global"))
    if not isinstance(assumed, (int, float)):
        raise ConfigError(f"{keys.where(base_key)}: missing, and {keys.facts['class'] or keys.family} has no default")
    if not keys.base_may_be_default:
        owner = keys.facts.get("base_of", keys.facts["class"])
        raise ConfigError(
            f"{keys.where(base_key)}: missing; {owner} would assume {assumed:g}, others "
            "something else. Add it to the file, or read without defaults=False"
        )
    owner, within = keys.facts["class"], where.removeprefix(keys.path).strip(".")
    null = [f"{within}.rope_theta"] * ("rope_theta" in settings) + [
        key for key in keys.spellings(base_key) if key in keys.data
    ]
    if null and not keys.remote:
        fails = say(
            "null, with which {owner} fails; without the key it assumes {assumed:.10g}", owner=owner, assumed=assumed
        )
        keys.error(null[0], fails)
    else:
        keys.note(base_key, say("missing: {owner} assumes {assumed:.10g}", owner=owner, assumed=assumed))
    keys.origins["base"] = f"default of {keys.facts['class']}"
    return float(assumed)


def _fraction(
    keys: Keys,
    settings: dict[str, Any],
    where: str,
    kind: str,
    partial: bool,
    default: float,
    said_by: dict[str, str],
    rotary_dim: int | None,
) -> tuple[float, float | None]:
    """The fraction of the head that rotates, and the one that new settings have to give.

    Every family reads it for scaled types, some also without scaling. A factor of the file that is not read is 1 in new
    settings: other programs read it, and so do scaled types.
    """
    key = "partial_rotary_factor"
    if settings.get(key) is not None:
        value, origin = Keys(settings, "", where).number(key), f"{where}.{key}"
    else:
        value = keys.number(key, None)
        origin = keys.said_by(key) if value is not None else "default of the family's code"
    if value is None:
        value = default
    reads = partial or kind not in ("default", "axial", "mrope")
    if rotary_dim is not None or not reads:
        given = value != 1.0 and origin != "default of the family's code"
        if given and rotary_dim is None:
            keys.warning(key, say("this family's code does not read it: all channels rotate"))
        elif given and reads and not keys.remote:  # transformers' scaled types take it of these channels
            keys.error(key, too_few(value, int(rotary_dim or 0), int(rotary_dim or 0)))
        elif given:
            keys.warning(key, say("this family's code does not read it: the number of rotated channels has its own key"))
        return 1.0, 1.0 if given else None
    if not 0 < value <= 1:
        raise ConfigError(f"{origin}: expected a fraction above 0 and up to 1, got {value:g}")
    said_by["rotary_dim"] = origin
    return float(value), float(value) if partial or value != 1.0 else None


def within_settings(keys: Keys) -> Keys:
    """Without a partial_rotary_factor beside the settings, for classes that read the one within them alone."""
    name = "partial_rotary_factor"
    if not keys.has(name):
        return keys
    keys.number(name)
    keys.warning(name, say("{owner}'s code does not read it", owner=keys.facts["class"]))
    return keys.replaced(without=(name,))


def too_few(factor: float, width: int, rotary_dim: int) -> Words:
    """Why a model whose number of rotated channels is fixed fails with this partial_rotary_factor."""
    return say(
        "{factor:g} of {width} gives frequencies for {channels} channels, but {rotary_dim} rotate: the model fails",
        factor=factor,
        width=width,
        channels=int(width * factor),
        rotary_dim=rotary_dim,
    )


def _check_parameters(
    keys: Keys, settings: dict[str, Any], where: str, kind: str, takes: dict[str, str], also_read: tuple[str, ...]
) -> None:
    for key in NEEDED.get(kind, ()):
        if settings.get(key) is None and not (
            kind in ("yarn", "dynamic") and settings.get("alpha", MISSING) is not MISSING
        ):
            needed = ", ".join(NEEDED[kind])
            near = difflib.get_close_matches(key, settings.keys() - takes.keys(), 1, 0.8)
            misspelt = say(" (the file has {near})", near=near[0]) if near else Words("")
            wrong = say("{where}.{key}: missing{misspelt}; {kind} needs {needed}")
            raise ConfigError(wrong.filled(where=where, key=key, misspelt=misspelt, kind=kind, needed=needed))
    for key, value in settings.items():
        if key in takes and key not in ("short_factor", "long_factor", "truncate") and value is not None:
            unset = key in ("mscale", "mscale_all_dim", "beta_fast", "beta_slow") and value == 0  # 0 counts as missing
            Keys(settings, "", where).number(key, positive=not unset)
        if key in ("short_factor", "long_factor") and kind == "longrope":
            Keys(settings, "", where).numbers(key)
        if key == "factor" and isinstance(value, (int, float)) and 0 < value < 1:
            keys.warning(
                f"{where.removeprefix(keys.path).strip('.')}.factor",
                say(
                    "{value:g} shortens the context: {kind} multiplies the trained length by it; expected 1 or more",
                    value=value,
                    kind=kind,
                ),
            )
        if key == "truncate":
            Keys(settings, "", where).flag(key)
        if key not in takes and key not in ANYWHERE and key not in also_read:
            keys.remark(
                "note" if key in CARRIED.get(kind, ()) else "error",
                f"{where.removeprefix(keys.path).strip('.')}.{key}",
                say(
                    "not a key of {kind}, which takes {keys}: it is not read",
                    kind=kind,
                    keys=", ".join(takes) or say("none"),
                ),
            )


def _set_trained_length(
    keys: Keys, settings: dict[str, Any], where: str, kind: str, parameters: dict[str, Any], nested: bool
) -> None:
    """The trained length of yarn, longrope and llama3; a top-level key overrides one in the settings, unless nested."""
    if kind not in ("yarn", "longrope", "llama3"):
        return
    key = "original_max_position_embeddings"
    outer = None if nested else keys.whole(key, None)
    if outer is not None:
        if parameters.get("trained_length", outer) != outer:
            keys.error(
                key,
                say(
                    "{outer} here and {trained_length} in {where}; transformers uses {outer}",
                    outer=outer,
                    trained_length=parameters["trained_length"],
                    where=where,
                ),
            )
        parameters["trained_length"] = outer
    elif "trained_length" not in parameters:
        parameters["trained_length"] = keys.whole("max_position_embeddings")
        keys.warning(
            f"{where.removeprefix(keys.path).strip('.')}.{key}",
            say(
                "missing: transformers uses max_position_embeddings={trained_length}, as if the model had been "
                "trained at the extended length",
                trained_length=parameters["trained_length"],
            ),
        )
    longest = keys.whole("max_position_embeddings", None)
    if longest is not None and parameters["trained_length"] > longest:
        keys.warning(
            f"{where.removeprefix(keys.path).strip('.')}.{key}" if outer is None else key,
            say(
                "{original} is longer than max_position_embeddings={longest}; they may be swapped",
                original=parameters["trained_length"],
                longest=longest,
            ),
        )
    if kind == "longrope" and "factor" not in parameters:
        parameters["factor"] = keys.whole("max_position_embeddings") / parameters["trained_length"]


def _dynamic(keys: Keys, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Dynamic NTK, or HunYuan's fixed base if alpha is given."""
    if parameters.get("alpha"):
        return "ntk_alpha", {"alpha": parameters["alpha"]}
    parameters.pop("alpha", None)
    return "dynamic", parameters | {"trained_length": keys.whole("max_position_embeddings")}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
