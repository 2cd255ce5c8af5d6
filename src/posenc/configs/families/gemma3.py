"""Gemma 3, Gemma 3n, T5Gemma 2 and OLMo 3: RoPE with different settings in sliding and full layers, half pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family, head_width, parts
from posenc.configs.keys import Keys
from posenc.configs.rotary import is_nested, rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, SLIDING, sliding_where
from posenc.configs.spec import Layer, PositionSpec, Use

KINDS = (FULL, SLIDING)


@family("gemma3_text", "t5gemma2_decoder")
def gemma3_text(keys: Keys) -> PositionSpec:
    """Every sixth layer is full and has its own base. In bidirectional attention half of the window is on each side."""
    kinds = sliding_where(keys, sliding_pattern(keys, 6))
    spec = decoder(keys, None, kinds=kinds, by_kind=two_bases(keys, kinds, "rope_local_base_freq"))
    if "use_bidirectional_attention" not in keys.facts["defaults"] or not keys.flag("use_bidirectional_attention", False):
        return spec
    width = 2 * (keys.whole("sliding_window") // 2) + 1
    return bidirectional_within(spec, width)


@family("t5gemma2_text")
def t5gemma2_text(keys: Keys) -> PositionSpec:
    """As Gemma 3, bidirectional."""
    kinds = sliding_where(keys, sliding_pattern(keys, 6))
    spec = decoder(keys, None, kinds=kinds, by_kind=two_bases(keys, kinds, "rope_local_base_freq"))
    return bidirectional_within(spec, keys.whole("sliding_window"))


@family("gemma3n_text")
def gemma3n_text(keys: Keys) -> PositionSpec:
    """Every fifth layer is full. The last num_kv_shared_layers rotate queries only and use the rotated keys of an earlier
    layer of the same kind."""
    kinds = sliding_where(keys, lambda n: (n + 1) % 5 != 0)
    shared = keys.whole("num_kv_shared_layers", 0, least=0)
    spec = decoder(keys, None, kinds=kinds, by_kind=two_bases(keys, kinds, "rope_local_base_freq"))
    return shared_keys(spec, shared)


@family("olmo3")
def olmo3(keys: Keys) -> PositionSpec:
    """Every fourth layer is full, and only full layers are scaled.

    In the old spelling, sliding layers use the class's base,
    500 000, whatever rope_theta is."""
    kinds = sliding_where(keys, lambda n: (n + 1) % 4 != 0)
    return decoder(keys, None, kinds=kinds, by_kind=two_bases(keys, kinds, None))


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
            say(
                "{where}: expected an object for each kind ({known}); {of} reads nothing else",
                where=keys.where("rope_parameters"),
                known=", ".join(known),
                of=keys.facts["class"],
            )
        )
    if keys.table("rope_scaling"):
        raise ConfigError(f"{keys.where('rope_scaling')}: {keys.facts['class']} knows rope_parameters only; move it there")
    width = {kind: head_width(keys) for kind in known} if d_head is None else d_head
    return {kind: rope(keys, d_head=width[kind], label=kind, labels=known, **options) for kind in sorted(set(kinds))}


def two_bases(keys: Keys, kinds: Sequence[str], local: str | None) -> dict[str, Use | None]:
    """Rotations of full and sliding layers, in both spellings.

    New: rope_parameters has one object for each kind. Old: rope_theta and rope_scaling are for full layers, and the key
    `local` is the base of sliding layers; without that key, the class's default. As in the classes, rope_scaling changes
    full layers only, and is ignored if it says "type" instead of "rope_type".
    """
    scaling, parameters = keys.table("rope_scaling"), keys.table("rope_parameters")
    nested = is_nested(keys, KINDS)
    if parameters and not nested:
        keys.error("rope_parameters", say("has no object for each kind of layer, and is not read"))
    if any(kind in scaling for kind in KINDS):
        raise ConfigError(f"{keys.where('rope_scaling')}: objects for kinds of layers belong into rope_parameters")
    without = ("rope_scaling", "rope_parameters")
    inside = Keys(parameters, "", keys.where("rope_parameters"))
    here = {kind: inside.table(kind) or {"rope_type": "default"} for kind in KINDS} if nested else {}
    if nested and scaling:
        keys.warning("rope_scaling", say("merged into rope_parameters.{full}, key by key", full=FULL))
    if nested:
        sliding = keys.replaced({"rope_parameters": here}, without=without)
        full = keys.replaced({"rope_parameters": here | {FULL: here[FULL] | scaling}}, without=without)
    else:
        sliding = keys.replaced(without=without)
        full = sliding.replaced({"rope_scaling": {"rope_type": "default"} | scaling} if scaling else {})
    uses: dict[str, Use | None] = {}
    for kind in sorted(set(kinds)):
        base: float | None = None
        if kind == SLIDING and local is None and here.get(SLIDING, {}).get("rope_theta") is None:
            base = float(keys.facts["base"])
            if keys.number("rope_theta", base) != base:
                keys.error(
                    "rope_theta",
                    say("transformers reads it for full layers only; sliding layers use the base {base:g}", base=base),
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


def sliding_pattern(keys: Keys, otherwise: int) -> Any:
    """The layer numbers that slide: all but every sliding_window_pattern-th."""
    every = keys.whole("sliding_window_pattern", None) or keys.whole("_sliding_window_pattern", otherwise)
    return lambda number: (number + 1) % every != 0


def bidirectional_within(spec: PositionSpec, width: int | None) -> PositionSpec:
    """The same spec with bidirectional attention.

    Sliding layers see `width` tokens, (width-1)//2 of them before the query.
    """
    layers = [
        Layer(layer.uses, layer.kind, width if layer.kind == SLIDING else None, causal=False) for layer in spec.layers
    ]
    return replace(spec, layers=tuple(layers))


def shared_keys(spec: PositionSpec, shared: int) -> PositionSpec:
    """Marks the last `shared` layers, which use the keys of an earlier layer of the same kind."""
    first = len(spec.layers) - shared
    layers = [
        replace(layer, uses=tuple(replace(use, note=SHARED_KEYS) for use in layer.uses)) if number >= first else layer
        for number, layer in enumerate(spec.layers)
    ]
    return replace(spec, layers=tuple(layers))


SHARED_KEYS = say("only queries are rotated here; rotated keys come from the last layer of this kind that computes keys")


@family("gemma3")
def gemma3(keys: Keys) -> PositionSpec:
    keys.note("text_config", say("attention among the tokens of one image is bidirectional"))
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=LIKE_TEXT)
