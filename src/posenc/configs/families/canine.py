"""CANINE: a learned position table over characters; downsampled characters keep the order by convolution."""

from __future__ import annotations

from posenc.configs.families.bert import learned_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec


@family("canine")
def canine(keys: Keys) -> PositionSpec:
    """Positions are added to characters only; downsampled characters keep the order by a strided convolution.

    The table has one row for each hash bucket, not one for each position.
    """
    rows, length = keys.whole("num_hash_buckets"), keys.whole("max_position_embeddings")
    keys.note(
        "num_hash_buckets",
        say("the number of rows of the position table: {rows}, of which {length} are read", rows=rows, length=length),
    )
    chunk, rate = keys.whole("local_transformer_stride"), keys.whole("downsampling_rate", 4)
    keys.note(
        "local_transformer_stride", say("the first layer attends within chunks of {chunk} characters only", chunk=chunk)
    )
    deep = Layer((), "molecules", causal=False)
    keys.note("downsampling_rate", say("downsampled by a convolution: one position for {rate} characters", rate=rate))
    first, last = Layer((), "chunked_attention", chunk, causal=False), Layer((), "full_attention", causal=False)
    layers = [first, *[deep] * keys.whole("num_hidden_layers"), last]
    weight = "char_embeddings.char_position_embeddings.weight"
    return stack_of(
        keys,
        layers,
        embedding=[learned_table(keys, weight, rows="num_hash_buckets")],
        coordinates=say("0, 1, 2, … over the characters"),
    )
