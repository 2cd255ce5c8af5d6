"""Phi-4 Multimodal: Phi-3's LongRoPE, a learned grid for images, a distance bias for audio."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.families.phi3 import longrope, window_kinds
from posenc.configs.family import decoder, family, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import WITH_IMAGE, grid, side_of, tower
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("phi4_multimodal")
def phi4_multimodal(keys: Keys) -> PositionSpec:
    """Phi-3 with image and audio encoders, whose outputs replace tokens and count like them."""
    return decoder(keys, longrope(keys), kinds=window_kinds(keys), parts=parts(keys, "vision_config", "audio_config"))


@family("phi4_multimodal_vision")
def phi4_multimodal_vision(keys: Keys) -> PositionSpec:
    """The grid is stretched over every image: a patch reads the cell that holds its corner."""
    height, width, origin = side_of(keys)
    table = grid(keys, "embeddings.position_embedding.weight", height, width, origin, mode="bucket")
    keys.note(
        "image_size", say("cells are computed in fp32 fractions, which misses some by one; padding reads the first cell")
    )
    return tower(keys, [], embedding=[table], coordinates=WITH_IMAGE)


@family("phi4_multimodal_audio")
def phi4_multimodal_audio(keys: Keys) -> PositionSpec:
    """A learned number for each head and distance, clipped to -k … k-1, shared by all layers.

    Audio is cut every 500 frames.
    """
    far, heads = keys.whole("bias_max_distance"), keys.whole("num_attention_heads")
    if keys.flag("bias_symmetric", False):
        raise ConfigError(
            f"{keys.where('bias_symmetric')}: expected false; with it the code reads a row behind the last "
            f"for keys {far} before the query, and fails"
        )
    keys.warning(
        "chunk_size",
        say(
            "the mask is added as numbers, 1 for visible frames and 0 for hidden ones: padding stays "
            "visible, with scores lower by 1"
        ),
    )
    arguments = {"n_heads": heads, "max_distance": far, "right": far - 1}
    said_by = (("n_heads", keys.said_by("num_attention_heads")), ("max_distance", keys.said_by("bias_max_distance")))
    use = Use(
        "encodings.distance_table.DistanceTable",
        tuple(arguments.items()),
        said_by,
        (Weight("table", "relative_attention_bias_layer.bias_values.weight"),),
    )
    return stack_of(
        keys,
        [Layer((use,), causal=False)] * keys.whole("num_blocks", 24),
        length=500,
        coordinates=say("0, 1, 2, … over frames after time_reduction; again from 0 every 500 frames, processed separately"),
    )
