"""Bark: a learned position table in each of its three models."""

from __future__ import annotations

from posenc.configs.family import family, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("semantic", "coarse_acoustics", "fine_acoustics")
def semantic(keys: Keys) -> PositionSpec:
    """Bark's three models: a table of block_size rows. The third has bidirectional attention."""
    rows = keys.whole("block_size", 1024)
    arguments = (("d_model", keys.whole("hidden_size", 768)), ("max_positions", rows))
    said_by = (("d_model", keys.said_by("hidden_size")), ("max_positions", keys.said_by("block_size")))
    use = Use("encodings.learned.Learned", arguments, said_by, (Weight("table", "position_embeds_layer.weight"),))
    heads = "num_heads" if "num_heads" in keys.data else "num_attention_heads"
    count = "num_layers" if "num_layers" in keys.data else "num_hidden_layers"
    keys.whole(heads, 12)
    layers = [Layer(causal=keys.family != "fine_acoustics")] * keys.whole(count, 12)
    return stack_of(keys, layers, embedding=[use], heads=heads, length=rows)


@family("bark")
def bark(keys: Keys) -> PositionSpec:
    keys.note("semantic_config", say("the first 256 positions of the semantic model hold the sum of text and history"))
    return PositionSpec(
        keys.family,
        parts=parts(
            keys,
            semantic_config="semantic",
            coarse_acoustics_config="coarse_acoustics",
            fine_acoustics_config="fine_acoustics",
            codec_config="encodec",
        ),
    )
