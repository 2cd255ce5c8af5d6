"""BART and models with its learned position tables in encoder and decoder.

Most tables have two unused rows before position 0: position p reads row p + 2."""

from __future__ import annotations

from posenc.configs.coordinates import SEQUENCE
from posenc.configs.families.bert import learned_table
from posenc.configs.families.marian import fairseq
from posenc.configs.families.roberta import TOKENS
from posenc.configs.family import family, stack_of, two_stacks
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec


@family("pp_formulanet_text")
def pp_formulanet_text(keys: Keys) -> PositionSpec:
    """BART's decoder alone: position p reads row p + 2."""
    keys.note("max_position_embeddings", say("the table has two more rows than positions: position p reads row p + 2"))
    use = learned_table(keys, "embed_positions.weight", width="d_model", row_offset=2)
    return stack_of(
        keys, [Layer()] * keys.whole("decoder_layers"), embedding=[use], width="d_model", heads="decoder_attention_heads"
    )


@family("bart", "mbart", "plbart")
def bart(keys: Keys) -> PositionSpec:
    """Position p reads row p + 2; the first two rows are unused, as in fairseq."""
    sides = [
        learned_table(keys, f"{side}.embed_positions.weight", width="d_model", row_offset=2)
        for side in ("encoder", "decoder")
    ]
    keys.note("max_position_embeddings", say("the tables have two more rows than positions: position p reads row p + 2"))
    return two_stacks(keys, *sides)


@family("blenderbot", "blenderbot-small")
def blenderbot(keys: Keys) -> PositionSpec:
    sides = [learned_table(keys, f"{side}.embed_positions.weight", width="d_model") for side in ("encoder", "decoder")]
    return two_stacks(keys, *sides)


@family("mvp")
def mvp(keys: Keys) -> PositionSpec:
    """Position p reads row p + 2, in encoder and decoder."""
    both = ("encoder", "decoder")
    sides = [learned_table(keys, f"{side}.embed_positions.weight", width="d_model", row_offset=2) for side in both]
    keys.note("max_position_embeddings", say("the tables have two more rows than positions: position p reads row p + 2"))
    if keys.flag("use_prompt", False):
        keys.note("use_prompt", say("learned prompt keys precede the text's keys in every layer and have no positions"))
    return two_stacks(keys, *sides)


ROWS = say("the table has two more rows than positions: position p reads row p + 2")


@family("trocr")
def trocr(keys: Keys) -> PositionSpec:
    """A decoder alone, with BART's table or fairseq's sinusoids."""
    where = SEQUENCE
    if keys.flag("use_learned_position_embeddings", True):
        use = learned_table(keys, "embed_positions.weight", width="d_model", row_offset=2)
        keys.note("max_position_embeddings", ROWS)
    else:
        use, where = fairseq(keys), TOKENS
    layers = [Layer()] * keys.whole("decoder_layers")
    return stack_of(keys, layers, embedding=[use], width="d_model", heads="decoder_attention_heads", coordinates=where)
