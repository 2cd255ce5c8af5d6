"""The vision encoders of Idefics 2, Idefics 3 and SmolVLM: a learned square grid for images of any shape.

A patch reads the cell that holds its relative position in the image."""

from __future__ import annotations

from posenc.configs.families.clip import square_table
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.patches import WITH_IMAGE, tower
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec


@family("idefics2_vision", "idefics3_vision", "smolvlm_vision")
def idefics2_vision(keys: Keys) -> PositionSpec:
    """The image size is read from the first column and row of patch_attention_mask."""
    table = square_table(keys, "embeddings.position_embedding.weight", prefix=0, mode="bucket")
    keys.note(
        "image_size", say("cells are computed in fp32 fractions, which misses some by one; padding reads the first cell")
    )
    return tower(keys, [], embedding=[table], coordinates=WITH_IMAGE)


@family("idefics2_perceiver")
def idefics2_perceiver(keys: Keys) -> PositionSpec:
    """Learned queries attend to image features, which already have positions; nothing is added here."""
    keys.note(
        "resampler_n_latents", say("{queries} learned queries without positions", queries=keys.whole("resampler_n_latents"))
    )
    return PositionSpec(
        keys.family, coordinates=say("none: learned queries attend to image features, which already have positions")
    )
