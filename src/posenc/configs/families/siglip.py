"""SigLIP and similar: a learned grid of patches, interpolated to the size of the image; a learned table for text."""

from __future__ import annotations

from posenc.configs.coordinates import OTHER_SIZES, SAME_FRAMES
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, WITH_SIZE, grid, in_blocks, square_side, square_side_of, tower
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import clauses

# Sides up to 99 for which fp32 misses a cell in images of up to 200 patches to a side: measured, torch 2.13 on x86.
ROUNDED = (
    19,
    23,
    25,
    27,
    37,
    38,
    40,
    41,
    43,
    46,
    47,
    49,
    50,
    52,
    54,
    55,
    56,
    58,
    59,
    60,
    61,
    62,
    67,
    68,
    69,
    71,
    72,
    73,
    74,
    75,
    76,
    77,
    79,
    80,
    82,
    83,
    84,
    86,
    87,
    88,
    92,
    93,
    94,
    95,
    96,
    98,
    99,
)


@family("siglip_vision_model", "granite_docling_vision")
def siglip_vision_model(keys: Keys) -> PositionSpec:
    """The grid is interpolated bicubically with interpolate_pos_encoding; otherwise images must have its size."""
    height, width, origin = square_side_of(keys)
    keys.note("image_size", say("images of another size only if the call sets interpolate_pos_encoding=True"))
    table = grid(keys, "embeddings.position_embedding.weight", height, width, origin, mode="bicubic")
    return tower(keys, [], embedding=[table], coordinates=clauses(RASTER, OTHER_SIZES))


@family("siglip2_vision_model")
def siglip2_vision_model(keys: Keys) -> PositionSpec:
    """The grid is interpolated to the size of each image, bilinearly with antialiasing."""
    height, width, origin = square_side(keys, "num_patches")
    table = grid(keys, "embeddings.position_embedding.weight", height, width, origin, mode="bilinear", antialias=True)
    where = say("(row, column, height, width) of the patch in its own image, row by row; padding as the first patch")
    return tower(keys, [], embedding=[table], coordinates=where)


@family("cosmos3_edge_vision")
def cosmos3_edge_vision(keys: Keys) -> PositionSpec:
    """SigLIP 2's table, patches in blocks."""
    height, width, origin = square_side(keys, "num_patches")
    table = grid(keys, "embeddings.position_embedding.weight", height, width, origin, mode="bilinear", antialias=True)
    return tower(keys, [], embedding=[table], coordinates=clauses(in_blocks(WITH_SIZE), SAME_FRAMES))


@family("glm_image_vision")
def glm_image_vision(keys: Keys) -> PositionSpec:
    """GLM-4V's table, interpolated bilinearly, without its rotation."""
    height, width, origin = square_side_of(keys)
    table = grid(keys, "embeddings.position_embedding.weight", height, width, origin, mode="bilinear")
    return tower(keys, [], embedding=[table], coordinates=clauses(in_blocks(WITH_SIZE), SAME_FRAMES))


@family("minicpmv4_6_vision", "minicpmv4_7_vision", "minicpm_ocr_vision")
def minicpmv4_6_vision(keys: Keys) -> PositionSpec:
    """Patch i of n reads cell ⌊i·side/n⌋.

    A merger between the layers combines four tokens into one, without positions.
    """
    height, width, origin = square_side_of(keys)
    if height in ROUNDED:
        keys.warning(
            "image_size",
            say(
                "{height} cells per side: the code divides in fp32, and for some image sizes (such as the same "
                "number of patches) patches on a border read the cell before",
                height=height,
            ),
        )
    table = grid(keys, "embeddings.position_embedding.weight", height, width, origin, mode="nearest")
    where = say("(row, column, height, width) of the patch in its own image, row by row")
    return tower(keys, [], embedding=[table], coordinates=where)


@family("aimv2_vision_model")
def aimv2_vision_model(keys: Keys) -> PositionSpec:
    """A learned table for one image size, or (is_native) sinusoids of column and row for any size."""
    if keys.flag("is_native", False):
        arguments = (("d_model", keys.whole("hidden_size")), ("layout", "sin_cos"), ("axes", 2), ("reads", (1, 0)))
        sources = (
            ("d_model", keys.said_by("hidden_size")),
            ("layout", "constant of the code"),
            ("base", "constant of the code"),
        )
        added = Use("encodings.sinusoidal.Sinusoidal", arguments, sources)
        keys.note("is_native", say("columns come first: [sin column | cos column | sin row | cos row]"))
        return tower(keys, [], embedding=[added], coordinates=RASTER)
    height, width, said_by = square_side_of(keys)
    table = grid(keys, "embeddings.position_embedding.weight", height, width, said_by)
    keys.note("image_size", say("images must have this size: the table is never interpolated"))
    return tower(keys, [], embedding=[table], coordinates=RASTER)


@family("siglip_text_model", "siglip2_text_model")
def siglip_text_model(keys: Keys) -> PositionSpec:
    """Bidirectional attention."""
    return _stack(keys, causal=False)


@family("aimv2_text_model")
def aimv2_text_model(keys: Keys) -> PositionSpec:
    """Causal like CLIP, if the call gives an attention mask."""
    keys.warning(
        "model_type",
        say(
            "later tokens are hidden only if the call gives attention_mask; without one the code makes "
            "no mask, and attention is bidirectional"
        ),
    )
    return _stack(keys, causal=True)


def _stack(keys: Keys, causal: bool) -> PositionSpec:
    rows, d_model = keys.whole("max_position_embeddings"), keys.whole("hidden_size")
    said_by = (("max_positions", keys.said_by("max_position_embeddings")), ("d_model", keys.said_by("hidden_size")))
    table = Use(
        "encodings.learned.Learned",
        (("d_model", d_model), ("max_positions", rows)),
        said_by,
        (Weight("table", "embeddings.position_embedding.weight"),),
    )
    return stack_of(keys, [Layer(causal=causal)] * keys.whole("num_hidden_layers"), embedding=[table])
