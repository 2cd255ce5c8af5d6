"""MPNet: RoBERTa's table and T5's bias at once; one table of buckets for all layers."""

from __future__ import annotations

from dataclasses import replace

from posenc.dialects.errors import ConfigError
from posenc.dialects.families.learned import BERT
from posenc.dialects.families.padded import COUNTED
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight

PADDING, BUCKETS = 1, 32  # whatever the configuration says


@family("mpnet")
def _(keys: Keys) -> PositionSpec:
    rows, said_rows = keys.whole("max_position_embeddings"), keys.said_by("max_position_embeddings")
    usable, buckets = rows - PADDING - 1, keys.whole("relative_attention_num_buckets")
    if usable < 1:
        raise ConfigError(f"{keys.where('max_position_embeddings')}: {rows} rows leave no position after row {PADDING}")
    if buckets != BUCKETS:
        keys.find(
            "error",
            "relative_attention_num_buckets",
            f"the table has {buckets} rows, and the code always counts {BUCKETS} buckets",
        )
    if keys.whole("pad_token_id", PADDING, least=0) != PADDING:
        keys.find("error", "pad_token_id", f"not read: positions count what is not token {PADDING}")
    keys.find("note", "max_position_embeddings", f"{rows} rows are {usable} positions: two rows come before position 0")
    constant = "constant of the code"
    table = Use(
        "encodings.learned.Learned",
        (
            ("d_model", keys.whole("hidden_size")),
            ("max_positions", usable),
            ("row_offset", PADDING + 1),
            ("padding_row", PADDING),
        ),
        (
            ("d_model", keys.said_by("hidden_size")),
            ("max_positions", said_rows),
            ("row_offset", constant),
            ("padding_row", constant),
        ),
        (Weight("table", BERT),),
    )
    bias = Use(
        "encodings.t5.T5",
        (
            ("n_heads", keys.whole("num_attention_heads")),
            ("n_buckets", BUCKETS),
            ("max_distance", 128),
            ("bidirectional", True),
        ),
        (
            ("n_heads", keys.said_by("num_attention_heads")),
            ("n_buckets", constant),
            ("max_distance", constant),
            ("bidirectional", constant),
        ),
        (Weight("table", "encoder.relative_attention_bias.weight"),),
        note="counts slots; over one piece of text without holes that is the same",
    )
    layers = [Layer((bias,), causal=False)] * keys.whole("num_hidden_layers")
    spec = stack_of(keys, layers, embedding=[table], length=usable)
    return replace(spec, coordinates=COUNTED)
