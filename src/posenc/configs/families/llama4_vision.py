"""Llama 4's and Step 3's vision encoders: axial RoPE, columns before rows, with a learned table."""

from __future__ import annotations

from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.patches import Maps, axial, even_head, grid, side_of, square_side_of, tower
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Use, Weight
from posenc.support.languages import clauses

UNUSED = "max_position_embeddings"  # such towers have it, and only note it

COLUMNS_ROWS: Maps = (("axial", (("order", (1, 0)),)),)

FROM_ONE = say("(row, column) of the patch, from 1, row by row")


@family("llama4_vision_model")
def llama4_vision_model(keys: Keys) -> PositionSpec:
    """Interleaved pairs; a learned vector for each patch and, last, for the class token; one image size."""
    high, wide, origin = square_side_of(keys)
    tokens = high * wide + 1
    table = Use(
        "encodings.learned.Learned",
        (("d_model", keys.whole("hidden_size")), ("max_positions", tokens)),
        (("d_model", keys.said_by("hidden_size")), ("max_positions", origin)),
        (Weight("table", "positional_embedding_vlm"),),
    )
    where = clauses(
        say("rotation: {from_one}, the class token last, at (0, 0)", from_one=FROM_ONE),
        say("learned table: 0, 1, 2, … over all tokens"),
    )
    use = axial(keys, even_head(keys), maps=COLUMNS_ROWS, layout="interleaved")
    return tower(keys, [use], embedding=[table], coordinates=where)


@family("step3p5_vision")
def step3p5_vision(keys: Keys) -> PositionSpec:
    """Half pairs; the learned grid is interpolated bilinearly."""
    keys.get(UNUSED, None)
    high, wide, origin = side_of(keys)
    table = grid(keys, "position_embedding.weight", high, wide, origin, mode="bilinear")
    where = say("(row, column) of the patch, from 0, row by row; the learned grid reads (row, column, height, width)")
    use = axial(keys, even_head(keys), maps=COLUMNS_ROWS)
    return tower(keys, [use], embedding=[table], coordinates=where)
