"""Llama 4 and Beam: RoPE in some layers; the others scale queries by position (temperature)."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.assumed import settings_by_kind, with_assumed
from posenc.configs.errors import ConfigError
from posenc.configs.families.smollm3 import rope_layers, rope_where
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import is_nested, rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, SLIDING, schedule
from posenc.configs.spec import Layer, PositionSpec, Use

CHUNKED = "chunked_attention"


@family("beam")
def beam(keys: Keys) -> PositionSpec:
    """Rotary settings for each kind of layer; null means no rotation, and queries scaled by position instead."""
    labels = (SLIDING, FULL)
    keys = with_assumed(keys)
    kinds = schedule(keys, lambda n: SLIDING if (n + 1) % 6 and n + 1 < keys.whole("num_hidden_layers") else FULL)
    settings_by_kind(keys, labels)
    for kind in set(kinds) & set(labels):
        if kind not in keys.table("rope_parameters") and is_nested(keys, labels):
            raise ConfigError(f"{keys.where('rope_parameters')}: has no entry for {kind!r} layers; null means no rotation")
    sharper = Use(
        "encodings.bases.temperature.PowerTemperature",
        (("exponent", 0.1), ("trained_length", 2048)),
        (("exponent", "constant of the code"), ("trained_length", "constant of the code")),
        note=say("a comment in the code says p, but it computes p + 1"),
    )
    by_kind = {kind: rope(keys, d_head=head_width(keys), label=kind, labels=labels) or sharper for kind in set(kinds)}
    return decoder(keys, None, kinds=kinds, by_kind=by_kind)


@family("llama4_text")
def llama4_text(keys: Keys) -> PositionSpec:
    """Interleaved pairs. Layers with RoPE attend within their chunk; the others scale queries by the number of tokens."""
    d_head = head_width(keys)
    turning, chunk = rope_layers(keys), keys.whole("attention_chunk_size", None)
    kinds = schedule(keys, lambda n: CHUNKED if turning[n] else FULL, (FULL, CHUNKED))
    if keys.has("layer_types") and any(turns != (kind == CHUNKED) for turns, kind in zip(turning, kinds, strict=True)):
        keys.warning("layer_types", say("chunked layers and layers with RoPE are not the same here"))
    if CHUNKED in kinds:
        keys.note(
            "attention_chunk_size",
            say(
                "in chunked layers a query attends to earlier tokens of its own chunk of {chunk} only: the first "
                "token of a chunk attends to itself alone",
                chunk=chunk,
            ),
        )
    if keys.flag("use_qk_norm", False):
        keys.note("use_qk_norm", say("in layers with RoPE, queries and keys are normalised after the rotation"))
    use = rope(keys, d_head=d_head, layout="interleaved")
    tempered: list[Use] = []
    if keys.flag("attn_temperature_tuning", True):
        length = keys.whole("floor_scale")
        arguments = (("scale", keys.number("attn_scale")), ("trained_length", length), ("offset", 1))
        tempered.append(
            Use(
                "encodings.bases.temperature.FloorLogTemperature",
                arguments,
                (
                    ("scale", keys.said_by("attn_scale")),
                    ("trained_length", keys.said_by("floor_scale")),
                    ("offset", "constant of the code"),
                ),
            )
        )
        keys.note(
            "attn_temperature_tuning",
            say(
                "counts cached tokens, not position_ids: with left padding, a row gets the temperature of a later position"
            ),
        )
    spec = rope_where(decoder(keys, use, kinds=kinds, d_head=d_head), turning, tempered)
    return replace(spec, layers=tuple(_chunk(layer, chunk) for layer in spec.layers))


def _chunk(layer: Layer, chunk: int | None) -> Layer:
    """A chunk limits less than a window: how far a query sees depends on its position in the chunk."""
    if layer.kind != CHUNKED:
        return layer
    return replace(layer, chunk=chunk)
