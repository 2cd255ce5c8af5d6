"""TAPAS: positions counted anew in every cell of a table; row and column numbers are token types."""

from __future__ import annotations

from posenc.dialects.families.learned import BERT, table
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec


@family("tapas")
def _(keys: Keys) -> PositionSpec:
    anew = keys.flag("reset_position_index_per_cell", True)
    use = table(keys, BERT, clamp=True) if anew else table(keys, BERT)
    keys.find(
        "note", "type_vocab_sizes", "column, row and ranks of a token's cell enter as token types, tables of their own"
    )
    where = "0, 1, 2, … along the sequence"
    if anew:
        where = (
            "0, 1, 2, … in every cell, the question being cell (0, 0): Positions.within(column + 256·row) of "
            "token_type_ids 1 and 2"
        )
    causal = bool(keys.flag("is_decoder", False))
    return stack_of(keys, [Layer(causal=causal)] * keys.whole("num_hidden_layers"), embedding=[use], coordinates=where)
