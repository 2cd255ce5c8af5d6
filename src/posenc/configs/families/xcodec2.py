"""X-Codec 2 and NeuCodec: all tokens of a head are rotated by the same angle, which cancels in the scores."""

from __future__ import annotations

from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec


@family("xcodec2", "neucodec")
def xcodec2(keys: Keys) -> PositionSpec:
    """The rotation gets 0 … num_attention_heads - 1 as positions, one for each head."""
    d_head = keys.whole("head_dim", keys.whole("hidden_size") // keys.whole("num_attention_heads"))
    rope(keys, d_head=d_head)  # read and checked, for the file that says it
    keys.warning(
        "rope_parameters",
        say(
            "all tokens of head n are rotated as if at position n: the rotation cancels in every score, "
            "so attention has no positions"
        ),
    )
    layers = (Layer((), causal=False),) * keys.whole("num_hidden_layers")
    decoder = PositionSpec(
        keys.family,
        part="decoder",
        layers=layers,
        d_model=keys.whole("hidden_size"),
        d_head=d_head,
        n_heads=keys.whole("num_attention_heads"),
        coordinates=say("none: order comes from convolutions"),
        trained_length=keys.whole("max_position_embeddings", None),
    )
    return PositionSpec(keys.family, parts=(*parts(keys, "semantic_model_config"), decoder))
