"""Each kind of layer has a rotation of its own: rope_parameters holds one object for each kind, halves are paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from posenc.dialects.assumed import with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.families.sliding import FULL, SLIDING, kinds_of
from posenc.dialects.family import decoder, family, head_width
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import is_nested, rope
from posenc.dialects.spec import Layer, PositionSpec, Use

KINDS = (FULL, SLIDING)


@family("gemma3_text", "t5gemma2_decoder")
def _(keys: Keys) -> PositionSpec:
    """Every sixth layer is full, with a base of its own. Looking both ways, a window counts half on each side."""
    kinds = kinds_of(keys, sliding_but_every(keys, 6))
    spec = decoder(keys, None, kinds=kinds, by_kind=two_bases(keys, kinds, "rope_local_base_freq"))
    if "use_bidirectional_attention" not in keys.facts["defaults"] or not keys.flag("use_bidirectional_attention", False):
        return spec
    width = 2 * (keys.whole("sliding_window") // 2) + 1
    return both_ways(spec, width)


@family("t5gemma2_text")
def _(keys: Keys) -> PositionSpec:
    """As Gemma 3, looking both ways."""
    kinds = kinds_of(keys, sliding_but_every(keys, 6))
    spec = decoder(keys, None, kinds=kinds, by_kind=two_bases(keys, kinds, "rope_local_base_freq"))
    return both_ways(spec, keys.whole("sliding_window"))


@family("gemma3n_text")
def _(keys: Keys) -> PositionSpec:
    """Every fifth layer is full. The last num_kv_shared_layers turn queries only and take the keys, turned, of an earlier
    layer of their kind."""
    kinds = kinds_of(keys, lambda n: (n + 1) % 5 != 0)
    shared = keys.whole("num_kv_shared_layers", 0, least=0)
    spec = decoder(keys, None, kinds=kinds, by_kind=two_bases(keys, kinds, "rope_local_base_freq"))
    return borrowing(spec, shared)


@family("olmo3")
def _(keys: Keys) -> PositionSpec:
    """Every fourth layer is full, and only those are scaled. In the older spelling, sliding layers take the base of the
    class, 500 000, whatever rope_theta says."""
    kinds = kinds_of(keys, lambda n: (n + 1) % 4 != 0)
    return decoder(keys, None, kinds=kinds, by_kind=two_bases(keys, kinds, None))


@family("laguna")
def _(keys: Keys) -> PositionSpec:
    """All layers are full unless layer_types says otherwise; full ones turn half of the head."""
    keys = with_assumed(keys, {FULL: _plain(500000.0, 0.5), SLIDING: _plain(10000.0, 1.0)})
    kinds = kinds_of(keys, lambda n: False)
    return decoder(keys, None, kinds=kinds, by_kind=per_kind(keys, kinds, partial=True))


@family("mellum")
def _(keys: Keys) -> PositionSpec:
    keys = with_assumed(keys, {FULL: _plain(500000.0), SLIDING: _plain(10000.0)})
    kinds = kinds_of(keys, lambda n: False)
    return decoder(keys, None, kinds=kinds, by_kind=per_kind(keys, kinds, partial=True))


@family("mimo_v2_flash")
def _(keys: Keys) -> PositionSpec:
    """Full are the first layer and every sixth. sliding_window_size counts the tokens before the query, without it."""
    keys = with_assumed(keys, {FULL: _plain(5000000.0, 0.334), SLIDING: _plain(10000.0, 0.334)})
    kinds = kinds_of(keys, lambda n: n != 0 and (n + 1) % 6 != 0)
    before = keys.whole("sliding_window_size", None)
    uses: dict[str, Use | None] = {}
    for kind in sorted(set(kinds)):  # a third of the head where the file is silent, but all of it where that kind is scaled
        said = Keys(keys.table("rope_parameters"), "", keys.where("rope_parameters")).table(kind)
        plain = said.get("rope_type", said.get("type", "default")) == "default"
        uses |= per_kind(keys, [kind], partial=True, partial_default=0.334 if plain else 1.0)
    spec = decoder(keys, None, kinds=kinds, by_kind=uses)
    if before is None:
        return spec
    if keys.has("sliding_window") and keys.whole("sliding_window") != before + 1:
        keys.find("warning", "sliding_window", f"sliding_window_size={before} wins: a window of {before + 1}")
    return replace(spec, layers=tuple(replace(layer, window=before + 1 if layer.window else None) for layer in spec.layers))


@family("zaya")
def _(keys: Keys) -> PositionSpec:
    """Kinds are called hybrid and hybrid_sliding; half of a head turns. Queries and keys pass short convolutions first,
    which see order as well."""
    kinds = kinds_of(keys, lambda n: False, ("hybrid", "hybrid_sliding"))
    keys = with_assumed(keys, {"hybrid": _plain(5000000.0, 0.5), "hybrid_sliding": _plain(10000.0, 0.5)})
    keys.find("note", "cca_time0", "queries, keys and values pass short causal convolutions before they turn")
    uses = per_kind(keys, kinds, known=("hybrid", "hybrid_sliding"), partial=True)
    spec = decoder(keys, None, kinds=kinds, by_kind=uses)
    window = keys.whole("sliding_window", None)
    if window is None and "hybrid_sliding" in kinds:
        raise ConfigError(f"{keys.where('sliding_window')}: missing, and layer_types has hybrid_sliding layers")
    return replace(
        spec,
        layers=tuple(replace(layer, window=window if layer.kind == "hybrid_sliding" else None) for layer in spec.layers),
    )


def per_kind(
    keys: Keys,
    kinds: Sequence[str],
    *,
    known: tuple[str, ...] = KINDS,
    d_head: Mapping[str, int] | None = None,
    **options: Any,
) -> dict[str, Use | None]:
    """The rotation of each kind that occurs. Raises ConfigError unless rope_parameters has one object for each."""
    if not is_nested(keys, known):
        raise ConfigError(
            f"{keys.where('rope_parameters')}: expected an object for each kind ({', '.join(known)}); "
            f"{keys.facts['class']} reads nothing else"
        )
    if keys.table("rope_scaling"):
        raise ConfigError(f"{keys.where('rope_scaling')}: {keys.facts['class']} knows rope_parameters only; move it there")
    width = {kind: head_width(keys) for kind in known} if d_head is None else d_head
    return {kind: rope(keys, d_head=width[kind], label=kind, labels=known, **options) for kind in sorted(set(kinds))}


def two_bases(keys: Keys, kinds: Sequence[str], local: str | None) -> dict[str, Use | None]:
    """Full and sliding layers, in both spellings: rope_parameters nested, or rope_theta and rope_scaling for full layers
    and the key `local` for the base of sliding ones; without that key, the default of the class.

    As the classes do, rope_scaling changes full layers only, and is dropped where it says "type" and not "rope_type".
    """
    scaling, parameters = keys.table("rope_scaling"), keys.table("rope_parameters")
    nested = is_nested(keys, KINDS)
    if parameters and not nested:
        keys.find("error", "rope_parameters", "has no objects for kinds of layers: nothing reads it")
    if any(kind in scaling for kind in KINDS):
        raise ConfigError(f"{keys.where('rope_scaling')}: objects for kinds of layers belong into rope_parameters")
    full, sliding = copy(keys), copy(keys)  # reads and findings are those of the caller
    without = {key: value for key, value in keys.data.items() if key not in ("rope_scaling", "rope_parameters")}
    inside = Keys(parameters, "", keys.where("rope_parameters"))
    here = {kind: inside.table(kind) or {"rope_type": "default"} for kind in KINDS} if nested else {}
    if nested and scaling:
        keys.find("warning", "rope_scaling", f"laid over rope_parameters.{FULL}, key by key")
    if nested:
        sliding.data = without | {"rope_parameters": here}
        full.data = without | {"rope_parameters": here | {FULL: here[FULL] | scaling}}
    else:
        sliding.data = without
        full.data = without | ({"rope_scaling": {"rope_type": "default"} | scaling} if scaling else {})
    uses: dict[str, Use | None] = {}
    for kind in sorted(set(kinds)):
        base: float | None = None
        if kind == SLIDING and local is None and here.get(SLIDING, {}).get("rope_theta") is None:
            base = float(keys.facts["base"])
            if keys.number("rope_theta", base) != base:
                keys.find(
                    "error", "rope_theta", f"transformers reads it for full layers only and turns sliding ones at {base:g}"
                )
        uses[kind] = rope(
            full if kind == FULL else sliding,
            d_head=head_width(keys),
            label=kind,
            labels=KINDS,
            base=base,
            base_key="rope_theta" if kind == FULL or local is None else local,
        )
    return uses


def sliding_but_every(keys: Keys, otherwise: int) -> Any:
    """Layer numbers that slide: all but every sliding_window_pattern-th."""
    every = keys.whole("sliding_window_pattern", None) or keys.whole("_sliding_window_pattern", otherwise)
    return lambda number: (number + 1) % every != 0


def both_ways(spec: PositionSpec, width: int | None) -> PositionSpec:
    """Layers that look ahead as well; sliding ones see `width` tokens, (width-1)//2 of them before the query."""
    layers = [
        Layer(layer.uses, layer.kind, width if layer.kind == SLIDING else None, causal=False) for layer in spec.layers
    ]
    return replace(spec, layers=tuple(layers))


def borrowing(spec: PositionSpec, shared: int) -> PositionSpec:
    """The last `shared` layers, which take keys from an earlier layer of their kind."""
    own = len(spec.layers) - shared
    layers = [
        replace(layer, uses=tuple(replace(use, note=BORROWED) for use in layer.uses)) if number >= own else layer
        for number, layer in enumerate(spec.layers)
    ]
    return replace(spec, layers=tuple(layers))


BORROWED = "queries turn here; keys come, already turned alike, from the last layer of this kind that makes its own"


def _plain(base: float, fraction: float | None = None) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": base} | ({} if fraction is None else {"partial_rotary_factor": fraction})
