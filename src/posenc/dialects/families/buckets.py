"""Idefics 2 and 3 and SmolVLM: images of any shape read a square grid, every patch the cell that holds its corner."""

from __future__ import annotations

from posenc.dialects.families.clip_towers import square
from posenc.dialects.family import family
from posenc.dialects.keys import Keys
from posenc.dialects.patches import RASTER, tower
from posenc.dialects.spec import PositionSpec


@family("idefics2_vision", "idefics3_vision", "smolvlm_vision")
def _(keys: Keys) -> PositionSpec:
    """The image is what patch_attention_mask keeps; its height and width are counted along the first column and row."""
    table = square(keys, "embeddings.position_embedding.weight", prefix=0, mode="bucket")
    keys.find(
        "note", "image_size", "cells are found in fp32 fractions, which misses some by one; padding reads the first cell"
    )
    return tower(keys, [], embedding=[table], coordinates=f"{RASTER}; with (height, width) of the image itself")


@family("idefics2_perceiver")
def _(keys: Keys) -> PositionSpec:
    """Learned vectors ask the image features, which have positions already; nothing is added here."""
    keys.find(
        "note",
        "resampler_n_latents",
        f"{keys.whole('resampler_n_latents')} queries, which only their own learned vectors tell apart",
    )
    return PositionSpec(keys.family, coordinates="none: learned vectors ask image features, which have positions already")
