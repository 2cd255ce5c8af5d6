"""LUKE: RoBERTa's position table for words; an entity gets the mean of the rows of its mention."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.families.layoutlm import embedded
from posenc.configs.families.roberta import TOKENS, padded_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("luke")
def luke(keys: Keys) -> PositionSpec:
    words = padded_table(keys, "embeddings.position_embeddings.weight")
    usable, rows = int(dict(words.arguments)["max_positions"]), keys.whole("max_position_embeddings")
    places = keys.whole("max_mention_length", 30)
    keys.note(
        "max_position_embeddings",
        say("mentions are counted from row 0 of their own table, words from row pad_token_id + 1 of theirs"),
    )
    mentions = Use(
        "encodings.of_families.mean_of_rows.MeanOfRows",
        (("d_model", keys.whole("hidden_size")), ("max_positions", rows), ("places", places)),
        (
            ("d_model", keys.said_by("hidden_size")),
            ("max_positions", keys.said_by("max_position_embeddings")),
            ("places", keys.said_by("max_mention_length")),
        ),
        (Weight("table", "entity_embeddings.position_embeddings.weight"),),
    )
    where = say("the positions where an entity is mentioned, up to {places}, filled up with -1", places=places)
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    spec = stack_of(keys, layers, embedding=[words], length=usable, coordinates=TOKENS)
    return replace(spec, parts=(embedded(keys, "entities", mentions, where),))
