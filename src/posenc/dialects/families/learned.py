"""A learned vector for each position, counted from 0, added to the embeddings."""

from __future__ import annotations

from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight


@family("gpt2")
def _(keys: Keys) -> PositionSpec:
    rows, d_model = keys.whole("n_positions"), keys.whole("n_embd")
    said_by = (("max_positions", keys.said_by("n_positions")), ("d_model", keys.said_by("n_embd")))
    table = Use("encodings.learned.Learned", (("d_model", d_model), ("max_positions", rows)), said_by,
                weights=(Weight("table", "wpe.weight"),))  # fmt: skip
    return stack_of(keys, [Layer()] * keys.whole("n_layer"), embedding=[table], width="n_embd", heads="n_head",
                    length="n_positions")  # fmt: skip
