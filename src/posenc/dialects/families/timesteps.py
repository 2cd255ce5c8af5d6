"""Decision Transformer: a learned vector for every step of an episode, shared by return, state and action of the step."""

from __future__ import annotations

from posenc.dialects.families.learned import table
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec


@family("decision_transformer")
def _(keys: Keys) -> PositionSpec:
    """GPT-2's own table is there, read at row 0 by every token: a constant, no position."""
    use = table(keys, "embed_timestep.weight", rows="max_ep_len")
    keys.find("warning", "n_positions", "GPT-2's table wpe adds its row 0 to every token; the other rows are not read")
    keys.whole("n_positions")
    return stack_of(
        keys,
        [Layer()] * keys.whole("n_layer"),
        embedding=[use],
        heads="n_head",
        length="max_ep_len",
        coordinates="timesteps as a call gives them, each for three tokens: return, state, action",
    )
