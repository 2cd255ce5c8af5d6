"""ESM: RoPE (ESM-2) or a learned position table (ESM-1)."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import NOT_PADDING
from posenc.configs.errors import ConfigError
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("esm")
def esm(keys: Keys) -> PositionSpec:
    """position_embedding_type: "rotary" (ESM-2) is RoPE, "absolute" (ESM-1) a table that counts like RoBERTa's."""
    layers = [Layer(causal=keys.flag("is_decoder", False))] * keys.whole("num_hidden_layers")
    kind = keys.text("position_embedding_type", "absolute")
    if kind == "rotary":
        plain = keys.replaced(without=("rope_parameters", "rope_scaling"))  # the code reads the base only
        use = rope(plain, d_head=keys.whole("hidden_size") // keys.whole("num_attention_heads"))
        return stack_of(keys, [replace(layer, uses=(use,) if use else ()) for layer in layers])
    if kind != "absolute":
        keys.warning("position_embedding_type", say("{kind!r} is neither 'absolute' nor 'rotary': no positions", kind=kind))
        return stack_of(keys, layers, coordinates=say("none: attention has no positions"))
    padding, rows = keys.whole("pad_token_id", None, least=0), keys.whole("max_position_embeddings")
    if padding is None:
        raise ConfigError(f"{keys.where('pad_token_id')}: missing; positions start at the row after it")
    if rows < padding + 2:
        raise ConfigError(f"{keys.where('max_position_embeddings')}: {rows} rows leave none after padding row {padding}")
    arguments = (
        ("d_model", keys.whole("hidden_size")),
        ("max_positions", rows - padding - 1),
        ("row_offset", padding + 1),
        ("padding_row", padding),
    )
    said_by = (
        ("d_model", keys.said_by("hidden_size")),
        ("max_positions", keys.said_by("max_position_embeddings")),
        ("row_offset", keys.said_by("pad_token_id")),
        ("padding_row", keys.said_by("pad_token_id")),
    )
    table = Use(
        "encodings.learned.Learned", arguments, said_by, weights=(Weight("table", "embeddings.position_embeddings.weight"),)
    )
    keys.note(
        "max_position_embeddings",
        say(
            "rows of the table: at most {rows} tokens; position_ids of a call are rows, from {padding}",
            rows=rows - padding - 1,
            padding=padding + 1,
        ),
    )
    return stack_of(keys, layers, embedding=[table], length=rows - padding - 1, coordinates=NOT_PADDING)
