"""Pix2Struct and Kosmos-2.5: patches with learned row and column vectors; T5's bias in the text model."""

from __future__ import annotations

from posenc.configs.families.t5 import bucketed
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.patches import tower
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

CARRIED = say("(row, column) of the patch, from 1, stored in its first two channels; padding at (0, 0)")


@family("pix2struct_vision_model", "kosmos_2_5_vision_model")
def pix2struct_vision_model(keys: Keys) -> PositionSpec:
    """Both tables have as many rows as an image may have patches."""
    key, assumed = ("seq_len", 4096) if keys.family == "pix2struct_vision_model" else ("max_num_patches", 4096)
    rows, d_model = keys.whole(key, assumed), keys.whole("hidden_size")
    origin = keys.said_by(key) if keys.has(key) else f"default of {keys.facts['class']}"
    width = keys.whole("d_kv" if key == "seq_len" else "head_dim")
    use = Use(
        "encodings.bases.learned_axes.LearnedAxes",
        (("d_model", d_model), ("max_positions", (rows, rows))),
        (("d_model", keys.said_by("hidden_size")), ("max_positions", origin)),
        (
            Weight("axis_tables.0", "embeddings.row_embedder.weight"),
            Weight("axis_tables.1", "embeddings.column_embedder.weight"),
        ),
    )
    keys.note(
        key,
        say(
            "an image is scaled to at most this many patches, so the same row or column is a different place in "
            "another image"
        ),
    )
    return tower(keys, [], embedding=[use], coordinates=CARRIED, d_head=width)


@family("pix2struct_text_model")
def pix2struct_text_model(keys: Keys) -> PositionSpec:
    """T5's bias with causal buckets, one table for all layers, even if is_decoder is false."""
    use = bucketed(keys, "layer.0.self_attention.attention.relative_attention_bias.weight", both_ways=False)
    causal = bool(keys.flag("is_decoder"))
    if not causal:
        keys.warning("is_decoder", say("false: later tokens are visible, and all share the bucket of distance 0"))
    keys.note("relative_attention_num_buckets", say("cross-attention to image patches has no bias"))
    layers = (Layer((use,), causal=causal),) * keys.whole("num_layers")
    return PositionSpec(
        keys.family,
        layers=layers,
        d_model=keys.whole("hidden_size"),
        d_head=keys.whole("d_kv"),
        n_heads=keys.whole("num_heads"),
    )
