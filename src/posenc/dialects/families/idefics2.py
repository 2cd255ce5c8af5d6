"""The vision encoders of Idefics 2, Idefics 3 and SmolVLM: a learned square grid for images of any shape.

A patch reads the cell that holds its relative position in the image."""

from __future__ import annotations

from posenc.dialects.families.clip import square_table
from posenc.dialects.family import family
from posenc.dialects.keys import Keys
from posenc.dialects.patches import RASTER, tower
from posenc.dialects.spec import PositionSpec


@family("idefics2_vision", "idefics3_vision", "smolvlm_vision")
def idefics2_vision(keys: Keys) -> PositionSpec:
    """The image is what patch_attention_mask keeps; its height and width are counted along the first column and row."""
    table = square_table(keys, "embeddings.position_embedding.weight", prefix=0, mode="bucket")
    keys.note("image_size", "cells are found in fp32 fractions, which misses some by one; padding reads the first cell")
    return tower(keys, [], embedding=[table], coordinates=f"{RASTER}; with (height, width) of the image itself")


@family("idefics2_perceiver")
def idefics2_perceiver(keys: Keys) -> PositionSpec:
    """Learned vectors ask the image features, which have positions already; nothing is added here."""
    keys.note(
        "resampler_n_latents",
        f"{keys.whole('resampler_n_latents')} queries, which only their own learned vectors tell apart",
    )
    return PositionSpec(keys.family, coordinates="none: learned vectors ask image features, which have positions already")
