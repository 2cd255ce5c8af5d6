"""Layers with and without rotation in one stack: which of them turn is what these families differ in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from posenc.dialects.assumed import with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.family import decoder, family, head_width
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import is_nested, rope
from posenc.dialects.schedule import FULL, SLIDING, schedule
from posenc.dialects.spec import Layer, PositionSpec, Use

CHUNKED = "chunked_attention"


@family("smollm3")
def _(keys: Keys) -> PositionSpec:
    """Layers that turn are a list of 1 and 0; every fourth one does not. A window, where in use, is theirs alone."""
    turning = turning_layers(keys)
    window = keys.whole("sliding_window", None) if keys.flag("use_sliding_window", False) else None
    kinds = schedule(keys, lambda n: SLIDING if window and not turning[n] else FULL)
    if SLIDING in kinds and not window:
        keys.find(
            "warning",
            "layer_types",
            "layers are called sliding while use_sliding_window is off: their mask has the "
            "window, but kernels that make their own mask are told of none",
        )
    return turning_where(decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds), turning)


def turning_layers(keys: Keys) -> tuple[bool, ...]:
    """no_rope_layers, where 1 means that a layer does turn; else all but every no_rope_layer_interval-th one."""
    count = keys.whole("num_hidden_layers")
    said = keys.numbers("no_rope_layers", None)
    keys.get("no_rope_layer_interval", None)  # counts where there is no list
    if said:
        if len(said) != count or not set(said) <= {0, 1}:
            raise ConfigError(
                f"{keys.where('no_rope_layers')}: expected {count} of 1 (turns) and 0 (does not), got {list(said)}"
            )
        keys.find("note", "no_rope_layers", "1 stands for a layer that turns, 0 for one that does not")
        return tuple(bool(one) for one in said)
    every = keys.whole("no_rope_layer_interval")
    return tuple((n + 1) % every != 0 for n in range(count))


def turning_where(spec: PositionSpec, turning: Sequence[bool], other: Sequence[Use] = ()) -> PositionSpec:
    """The spec with the rotation taken from the layers that do not turn, which get `other` instead."""
    layers = [
        layer if turns else replace(layer, uses=tuple(other)) for layer, turns in zip(spec.layers, turning, strict=True)
    ]
    return replace(spec, layers=tuple(layers))


@family("exaone4", "exaone_moe")
def _(keys: Keys) -> PositionSpec:
    """Layers with a window turn, full ones do not; without any window all of them are full and turn."""
    window, pattern = keys.whole("sliding_window", None), keys.get("sliding_window_pattern", None)
    if window is None and keys.family == "exaone_moe":
        raise ConfigError(f"{keys.where('sliding_window')}: null, which its class refuses; it asks for a number of tokens")
    if not keys.has("layer_types") and (window is None or not isinstance(pattern, int) or isinstance(pattern, bool)):
        keys.find(
            "error",
            "layer_types",
            f"missing: the class divides by sliding_window_pattern={pattern!r}"
            f"{', taken as 0 since there is no window,' if window is None else ''} and fails",
        )
        if window is not None:
            raise ConfigError(
                f"{keys.where('sliding_window_pattern')}: expected a whole number, got {pattern!r}; the "
                "class fails with it unless layer_types says which layers slide"
            )
        pattern = 0
    kinds = schedule(keys, lambda n: SLIDING if pattern and (n + 1) % pattern else FULL)
    return _where_sliding(keys, kinds, window)


@family("kolibri1")
def _(keys: Keys) -> PositionSpec:
    """As EXAONE 4: layers with a window turn; every fifth layer is full and does not."""
    window = keys.whole("sliding_window", None)
    if window is None:
        raise ConfigError(
            f"{keys.where('sliding_window')}: null; the code makes a mask with it whatever the layers are, and fails"
        )
    return _where_sliding(keys, schedule(keys, lambda n: SLIDING if (n + 1) % 5 else FULL), window)


def _where_sliding(keys: Keys, kinds: Sequence[str], window: int | None) -> PositionSpec:
    spec = decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds)
    return spec if window is None else turning_where(spec, [kind == SLIDING for kind in kinds])


@family("muse_glimmer_text", "muse_spark_text")
def _(keys: Keys) -> PositionSpec:
    """layer_rope_theta is 0 where a layer does not turn; any other number there turns by rope_theta, whatever it says."""
    if keys.family == "muse_spark_text":
        keys = with_assumed(keys, {"rope_type": "default", "rope_theta": 500000.0})
    last = keys.whole("num_hidden_layers") - 1
    kinds = schedule(keys, lambda n: SLIDING if (last - n) % 4 else FULL)
    use = rope(keys, d_head=head_width(keys))
    said = keys.numbers("layer_rope_theta", None)
    if said is not None and len(said) <= last:
        raise ConfigError(
            f"{keys.where('layer_rope_theta')}: expected a number for each of {last + 1} layers, got {len(said)}"
        )
    bases = said[: last + 1] if said is not None else [(last - n) % 4 for n in range(last + 1)]
    base = use.rotation.base if use and use.rotation else None
    if said and any(one not in (0, base) for one in said):
        keys.find("error", "layer_rope_theta", f"only whether it is 0 counts: all other layers turn at base {base:g}")
    spec = decoder(keys, use, kinds=kinds)
    return turning_where(spec, [bool(one) for one in bases])


@family("beam")
def _(keys: Keys) -> PositionSpec:
    """Rotary settings for each kind of layer; null: no rotation, and queries that sharpen with their position instead."""
    labels = (SLIDING, FULL)
    keys = with_assumed(keys, {SLIDING: {"rope_type": "default", "rope_theta": 10000.0}, FULL: None})
    kinds = schedule(keys, lambda n: SLIDING if (n + 1) % 6 and n + 1 < keys.whole("num_hidden_layers") else FULL)
    if keys.has("rope_scaling") or not is_nested(keys, labels):
        keys.find("error", "rope_parameters", "the code knows one entry for each kind of layer, and nothing else: it fails")
    for kind in set(kinds) & set(labels):
        if kind not in keys.table("rope_parameters") and is_nested(keys, labels):
            raise ConfigError(f"{keys.where('rope_parameters')}: has no entry for {kind!r} layers; null means no rotation")
    sharper = Use(
        "encodings.temperature.PowerTemperature",
        (("exponent", 0.1), ("length", 2048)),
        (("exponent", "constant of the code"), ("length", "constant of the code")),
        note="the code's own comment has p where it computes p + 1",
    )
    by_kind = {kind: rope(keys, d_head=head_width(keys), label=kind, labels=labels) or sharper for kind in set(kinds)}
    return decoder(keys, None, kinds=kinds, by_kind=by_kind)


@family("llama4_text")
def _(keys: Keys) -> PositionSpec:
    """Neighbours are paired. Layers that turn see their own chunk only; the others sharpen with the number of tokens."""
    d_head = head_width(keys)
    turning, chunk = turning_layers(keys), keys.whole("attention_chunk_size", None)
    kinds = schedule(keys, lambda n: CHUNKED if turning[n] else FULL, (FULL, CHUNKED))
    if keys.has("layer_types") and any(turns != (kind == CHUNKED) for turns, kind in zip(turning, kinds, strict=True)):
        keys.find("warning", "layer_types", "chunked layers and layers that turn are not the same ones here")
    if CHUNKED in kinds:
        keys.find(
            "note",
            "attention_chunk_size",
            f"a query of a chunked layer sees earlier tokens of its own chunk of "
            f"{chunk} only: the first token of a chunk sees itself alone",
        )
    if keys.flag("use_qk_norm", False):
        keys.find("note", "use_qk_norm", "queries and keys of layers that turn are normalised after it")
    use = rope(keys, d_head=d_head, layout="interleaved")
    tempered: list[Use] = []
    if keys.flag("attn_temperature_tuning", True):
        length = keys.whole("floor_scale")
        given = (("scale", keys.number("attn_scale")), ("length", length), ("offset", 1))
        tempered.append(
            Use(
                "encodings.temperature.FloorLogTemperature",
                given,
                (
                    ("scale", keys.said_by("attn_scale")),
                    ("length", keys.said_by("floor_scale")),
                    ("offset", "constant of the code"),
                ),
            )
        )
        keys.find(
            "note",
            "attn_temperature_tuning",
            "counts the tokens of the cache, not position_ids: with left padding "
            "a row's temperature is that of a later position",
        )
    spec = turning_where(decoder(keys, use, kinds=kinds, d_head=d_head), turning, tempered)
    return replace(spec, layers=tuple(_chunk(layer, chunk) for layer in spec.layers))


def _chunk(layer: Layer, chunk: int | None) -> Layer:
    """A chunk says less than a window: how far a query sees depends on where in its chunk it stands."""
    if layer.kind != CHUNKED:
        return layer
    return replace(layer, chunk=chunk)
