"""Towers that single families keep to themselves: Phi 4's for images and sound, RADIO, the one of Idefics."""

from __future__ import annotations

from posenc.dialects.errors import ConfigError
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.patches import RASTER, grid, pair, side_of, tower
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight


@family("phi4_multimodal_vision")
def _(keys: Keys) -> PositionSpec:
    """Every image is spread over the whole grid: a patch reads the cell that holds its corner."""
    height, width, said = side_of(keys)
    table = grid(keys, "embeddings.position_embedding.weight", height, width, said, mode="bucket")
    keys.find(
        "note", "image_size", "cells are found in fp32 fractions, which misses some by one; padding reads the first cell"
    )
    return tower(keys, [], embedding=[table], coordinates=f"{RASTER}; with (height, width) of the image itself")


@family("phi4_multimodal_audio")
def _(keys: Keys) -> PositionSpec:
    """A number for every head and distance, clipped to -k … k-1, in every layer alike; more than 500 frames are cut."""
    far, heads = keys.whole("bias_max_distance"), keys.whole("num_attention_heads")
    if keys.flag("bias_symmetric", False):
        raise ConfigError(
            f"{keys.where('bias_symmetric')}: expected false; with it the code reads a row behind the last "
            f"for keys {far} before the query, and fails"
        )
    keys.find(
        "warning",
        "chunk_size",
        "the mask is added as numbers, 1 for a frame that may be seen and 0 for one that "
        "may not: padding stays in sight, its scores 1 lower",
    )
    arguments = {"n_heads": heads, "max_distance": far, "right": far - 1}
    said = (("n_heads", keys.said_by("num_attention_heads")), ("max_distance", keys.said_by("bias_max_distance")))
    use = Use(
        "encodings.distance_table.DistanceTable",
        tuple(arguments.items()),
        said,
        (Weight("table", "relative_attention_bias_layer.bias_values.weight"),),
    )
    return stack_of(
        keys,
        [Layer((use,), causal=False)] * keys.whole("num_blocks", 24),
        length=500,
        coordinates="0, 1, 2, … over frames, after time_reduction; again from 0 every 500, alone",
    )


@family("radio")
def _(keys: Keys) -> PositionSpec:
    """The grid is read as for a square as long as the longer side, of which the image takes the upper left."""
    side = keys.whole("max_img_size", 2048) // keys.whole("patch_size")
    said = f"{keys.said_by('max_img_size')} / {keys.said_by('patch_size')}"
    table = grid(keys, "embeddings.position_embedding", side, side, said, mode="bilinear", reshape=True)
    return tower(
        keys,
        [],
        embedding=[table],
        coordinates=f"{RASTER}; with (longer side, longer side) of the image; class "
        "and register tokens stand first, at (-1, -1), and get nothing",
    )


@family("idefics_vision")
def _(keys: Keys) -> PositionSpec:
    """One row for the class token and one for each patch, at one size of image unless a call asks to interpolate."""
    high, wide = pair(keys, "image_size")
    patch, _ = pair(keys, "patch_size")
    if high != wide:
        raise ConfigError(
            f"{keys.where('image_size')}: expected a square, got {high} × {wide}; the family's code has no other"
        )
    said = f"{keys.said_by('image_size')} / {keys.said_by('patch_size')}"
    table = grid(
        keys,
        "embeddings.position_embedding.weight",
        high // patch,
        high // patch,
        said,
        d_model="hidden_size",
        mode="bicubic",
        prefix=1,
        surplus=0.1,
    )
    keys.find("note", "image_size", "other sizes only where a call says interpolate_pos_encoding")
    places = f"{RASTER}, and at other sizes than image_size (row, column, height, width); the class token first"
    return tower(keys, [], embedding=[table], coordinates=places)
