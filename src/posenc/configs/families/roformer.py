"""RoFormer: RoPE with interleaved pairs; values rotate too if rotary_value is set."""

from __future__ import annotations

from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import even_head
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Rotation, Use, Weight

VALUES_ROTATE = say("values are rotated too and outputs are not rotated back: absolute positions reach the output")


def rotary_sides(
    d_head: int, rotary_dim: int, layout: str, values: bool, origins: dict[str, str], weights: tuple[Weight, ...] = ()
) -> Use:
    sides = ("query", "key", "value") if values else ("query", "key")
    arguments = {"d_head": d_head, "layout": layout, "frequencies": Rotation(rotary_dim, 10000.0), "sides": sides}
    said_by = {"base": "constant of the code", "layout": "constant of the code"} | origins
    return Use("encodings.rope.RoPE", tuple(arguments.items()), tuple(said_by.items()), weights)


@family("roformer")
def roformer(keys: Keys) -> PositionSpec:
    """Interleaved pairs, base 10 000, from a table that is exact to one rounding; values too if rotary_value is set."""
    d_head = even_head(keys, multiple=2)
    values = keys.flag("rotary_value", False)
    if values:
        keys.note("rotary_value", VALUES_ROTATE)
    keys.note("max_position_embeddings", say("the code reads a table with this many rows; positions beyond it fail"))
    use = rotary_sides(d_head, d_head, "interleaved", bool(values), {"sides": keys.said_by("rotary_value")})
    causal = bool(keys.flag("is_decoder", False))
    layers = [Layer((use,), causal=causal)] * keys.whole("num_hidden_layers")
    return stack_of(
        keys, layers, coordinates=say("0, 1, 2, … along the sequence, including padding; position_ids are not supported")
    )
