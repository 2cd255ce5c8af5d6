"""Mellum, Laguna, MiMo v2 and Zaya: RoPE with one set of parameters for each kind of layer, half pairs."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.assumed import with_assumed
from posenc.configs.errors import ConfigError
from posenc.configs.families.gemma3 import per_kind
from posenc.configs.family import decoder, family
from posenc.configs.keys import Keys
from posenc.configs.rotary import within_settings
from posenc.configs.say import say
from posenc.configs.schedule import sliding_where
from posenc.configs.spec import PositionSpec, Use


@family("laguna")
def laguna(keys: Keys) -> PositionSpec:
    """All layers are full unless layer_types is set; full layers rotate half of the head."""
    keys = with_assumed(keys)
    kinds = sliding_where(keys, lambda n: False)
    return decoder(keys, None, kinds=kinds, by_kind=per_kind(keys, kinds, partial=True))


@family("mellum")
def mellum(keys: Keys) -> PositionSpec:
    keys = with_assumed(within_settings(keys))
    kinds = sliding_where(keys, lambda n: False)
    return decoder(keys, None, kinds=kinds, by_kind=per_kind(keys, kinds, partial=True))


@family("mimo_v2_flash")
def mimo_v2_flash(keys: Keys) -> PositionSpec:
    """The first layer and every sixth are full.

    sliding_window_size counts the tokens before the query, without the query.
    """
    keys = with_assumed(keys)
    kinds = sliding_where(keys, lambda n: n != 0 and (n + 1) % 6 != 0)
    before = keys.whole("sliding_window_size", None)
    uses: dict[str, Use | None] = {}
    for kind in sorted(set(kinds)):  # a third of the head where the file is silent, but all of it where that kind is scaled
        settings = Keys(keys.table("rope_parameters"), "", keys.where("rope_parameters")).table(kind)
        plain = settings.get("rope_type", settings.get("type", "default")) == "default"
        uses |= per_kind(keys, [kind], partial=True, partial_default=0.334 if plain else 1.0)
    spec = decoder(keys, None, kinds=kinds, by_kind=uses)
    if before is None:
        return spec
    if keys.has("sliding_window") and keys.whole("sliding_window") != before + 1:
        keys.warning(
            "sliding_window",
            say("sliding_window_size={before} overrides it: a window of {window}", before=before, window=before + 1),
        )
    return replace(spec, layers=tuple(replace(layer, window=before + 1 if layer.window else None) for layer in spec.layers))


@family("zaya")
def zaya(keys: Keys) -> PositionSpec:
    """Kinds are called hybrid and hybrid_sliding; half of a head rotates.

    Short convolutions over queries and keys come first
    and depend on order too."""
    kinds = sliding_where(keys, lambda n: False, ("hybrid", "hybrid_sliding"))
    keys = with_assumed(keys)
    keys.note("cca_time0", say("queries, keys and values pass short causal convolutions before the rotation"))
    uses = per_kind(keys, kinds, known=("hybrid", "hybrid_sliding"), partial=True)
    spec = decoder(keys, None, kinds=kinds, by_kind=uses)
    window = keys.whole("sliding_window", None)
    if window is None and "hybrid_sliding" in kinds:
        raise ConfigError(f"{keys.where('sliding_window')}: missing, and layer_types has hybrid_sliding layers")
    return replace(
        spec,
        layers=tuple(replace(layer, window=window if layer.kind == "hybrid_sliding" else None) for layer in spec.layers),
    )
