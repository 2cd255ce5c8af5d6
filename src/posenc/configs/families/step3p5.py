"""Step 3.5 and 3.7: each kind of layer has its own base and its own rotated part of the head, half pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope, within_settings
from posenc.configs.say import say
from posenc.configs.schedule import FULL, SLIDING, schedule
from posenc.configs.spec import PositionSpec

LABELS = (FULL, SLIDING)


@family("step3p5")
def step3p5(keys: Keys) -> PositionSpec:
    """Layers are full unless layer_types is set; published files list a base and a fraction for every layer."""
    count = keys.whole("num_hidden_layers")
    extra = keys.whole("num_nextn_predict_layers", 0, least=0)
    keys = _cut(keys, count, count + extra)
    kinds = schedule(keys, lambda n: FULL)
    keys = _by_kind(keys, kinds)
    d_head = keys.whole("head_dim")
    by_kind = {kind: rope(keys, d_head=d_head, label=kind, labels=LABELS, partial=True) for kind in dict.fromkeys(kinds)}
    spec = decoder(keys, None, kinds=kinds, by_kind=by_kind, d_head=d_head)
    if SLIDING in kinds and keys.whole("sliding_window", None) is None:
        raise ConfigError(
            f"{keys.where('sliding_window')}: missing; there are sliding layers, and the code fails without it"
        )
    if not keys.flag("use_bidirectional_attention", False):
        return spec
    layers = [replace(layer, causal=False, window=2 * layer.window - 1 if layer.window else None) for layer in spec.layers]
    return replace(spec, layers=tuple(layers))


def _cut(keys: Keys, count: int, padded: int) -> Keys:
    """The lists without the entries of the layers that predict further tokens."""
    long = [
        name
        for name in ("layer_types", "rope_theta", "partial_rotary_factors")
        if isinstance(keys.data.get(name), list) and len(keys.data[name]) == padded > count
    ]
    return keys.replaced({name: keys.data[name][:count] for name in long})


def _by_kind(keys: Keys, kinds: Sequence[str]) -> Keys:
    """The same keys with rope_parameters for each kind.

    Of a list, the first layer of a kind counts; rope_scaling is for full layers only; rope_parameters that lack a kind are
    not read.
    """
    there = set(kinds)
    by_kind = keys.table("rope_parameters")
    if all(isinstance(by_kind.get(kind), Mapping) for kind in there):
        for name in ("rope_scaling", "rope_theta", "partial_rotary_factors"):
            if keys.has(name):
                keys.warning(name, say("not read: rope_parameters has an entry for each kind of layer"))
            keys.get(name, None)
        return _with_parameters(keys, {kind: by_kind[kind] for kind in there})
    if by_kind:
        keys.error(
            "rope_parameters", say("has no entry for each of {kinds}, and is not read", kinds=", ".join(sorted(there)))
        )
    keys = within_settings(keys)
    bases, parts = _listed(keys, "rope_theta", kinds), _listed(keys, "partial_rotary_factors", kinds)
    if bases is None and not keys.base_may_be_default:
        raise ConfigError(
            f"{keys.where('rope_theta')}: missing; {keys.facts['class']} would assume 10000, others "
            "something else. Add it to the file, or read without defaults=False"
        )
    if bases is None:
        keys.note("rope_theta", say("missing: {owner} assumes 10000", owner=keys.facts["class"]))
    settings: dict[str, Any] = {}
    for kind in there:
        first = list(kinds).index(kind)
        settings[kind] = {"rope_type": "default", "rope_theta": bases[first] if bases else 10000.0}
        if parts:
            settings[kind]["partial_rotary_factor"] = parts[first]
    if FULL in settings:
        settings[FULL] |= keys.table("rope_scaling")
        if isinstance(settings[FULL].get("type"), str) and "rope_type" not in keys.table("rope_scaling"):
            keys.error("rope_scaling.type", say("the class reads rope_type only: nothing is scaled"))
            settings[FULL].pop("type")
    return _with_parameters(keys, settings)


def _listed(keys: Keys, name: str, kinds: Sequence[str]) -> tuple[float, ...] | None:
    """A number for each layer; a single number applies to all. Remarks on layers of one kind that differ."""
    if not isinstance(keys.data.get(name), list):
        number = keys.number(name, None)
        return None if number is None else (number,) * len(kinds)
    numbers: tuple[float, ...] = keys.numbers(name, length=len(kinds))
    for kind in dict.fromkeys(kinds):
        if len({number for number, layer_kind in zip(numbers, kinds, strict=True) if layer_kind == kind}) > 1:
            keys.error(name, say("differs among {kind} layers: the class uses the first one's for all of them", kind=kind))
    return numbers


def _with_parameters(keys: Keys, settings: Mapping[str, Any]) -> Keys:
    dropped = ("rope_theta", "rope_scaling", "partial_rotary_factors")
    return keys.replaced({"rope_parameters": dict(settings)}, without=dropped)
