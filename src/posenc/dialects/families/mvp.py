"""MVP: BART's tables; the prompts that it can put before the keys of every layer have no positions."""

from __future__ import annotations

from posenc.dialects.families.bart import two_stacks
from posenc.dialects.families.learned import table
from posenc.dialects.family import family
from posenc.dialects.keys import Keys
from posenc.dialects.spec import PositionSpec


@family("mvp")
def _(keys: Keys) -> PositionSpec:
    """Row p + 2, in encoder and decoder."""
    both = ("encoder", "decoder")
    sides = [table(keys, f"{side}.embed_positions.weight", width="d_model", row_offset=2) for side in both]
    keys.find("note", "max_position_embeddings", "the tables have two rows more than positions: position p reads row p + 2")
    if keys.flag("use_prompt", False):
        keys.find("note", "use_prompt", "learned keys stand before those of the text in every layer, without positions")
    return two_stacks(keys, *sides)
