"""OPT, BioGPT, Nyströmformer and similar: a learned table with two unused rows before position 0, in one stack."""

from __future__ import annotations

from posenc.configs.families.bert import BERT_TABLE, learned_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec


@family("opt", "biogpt")
def opt(keys: Keys) -> PositionSpec:
    """position_ids count non-padding tokens; a padding token is at -1 and reads row 1."""
    rows = say("the table has two more rows than positions: position p reads row p + 2")
    keys.note("max_position_embeddings", rows)
    where = say("0, 1, 2, … over non-padding tokens: Positions.from_mask(attention_mask)")
    if keys.family == "biogpt":
        where = say("0, 1, 2, … along the sequence; over non-padding tokens if position_ids are given, as in generate()")
        keys.warning(
            "max_position_embeddings",
            say(
                "a forward pass without position_ids counts padding, generate() does not: left-padded "
                "rows get different positions"
            ),
        )
    use = learned_table(keys, "embed_positions.weight", row_offset=2, padding_row=1)
    return stack_of(keys, [Layer()] * keys.whole("num_hidden_layers"), embedding=[use], coordinates=where)


@family("nystromformer", "mra", "yoso")
def nystromformer(keys: Keys) -> PositionSpec:
    """Bidirectional; position_ids of a call are rows, two more than positions."""
    keys.note(
        "max_position_embeddings",
        say(
            "the table has two more rows than positions: position p reads row p + 2; position_ids "
            "of a call are rows, so 0 is two before the first token"
        ),
    )
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, embedding=[learned_table(keys, BERT_TABLE, row_offset=2)])
