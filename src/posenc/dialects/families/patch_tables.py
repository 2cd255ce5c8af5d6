"""Vision towers that add something to every patch before the first layer, and nothing after: SigLIP and its kin."""

from __future__ import annotations

from posenc.dialects.errors import ConfigError
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.patches import BLOCKS, RASTER, grid, pair, side_of, square_side, tower
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight

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
OWN_SIZE = "; (row, column, height, width) for images of another size"


@family("siglip_vision_model", "granite_docling_vision")
def _(keys: Keys) -> PositionSpec:
    """The grid is read bicubically where a call says interpolate_pos_encoding; otherwise images must have its size."""
    height, width, said = _square(keys)
    keys.find("note", "image_size", "images of another size only where a call says interpolate_pos_encoding=True")
    table = grid(keys, "embeddings.position_embedding.weight", height, width, said, mode="bicubic")
    return tower(keys, [], embedding=[table], coordinates=RASTER + OWN_SIZE)


@family("siglip2_vision_model")
def _(keys: Keys) -> PositionSpec:
    """Every image has a size of its own, for which the grid is read bilinearly with antialiasing."""
    height, width, said = square_side(keys, "num_patches")
    table = grid(keys, "embeddings.position_embedding.weight", height, width, said, mode="bilinear", antialias=True)
    where = "(row, column, height, width) of the patch in its own image, row by row; padding as the first patch"
    return tower(keys, [], embedding=[table], coordinates=where)


@family("cosmos3_edge_vision")
def _(keys: Keys) -> PositionSpec:
    """SigLIP 2's table, patches in blocks."""
    height, width, said = square_side(keys, "num_patches")
    table = grid(keys, "embeddings.position_embedding.weight", height, width, said, mode="bilinear", antialias=True)
    return tower(keys, [], embedding=[table], coordinates=BLOCKS.replace("(row, column)", "(row, column, height, width)"))


@family("glm_image_vision")
def _(keys: Keys) -> PositionSpec:
    """The table of GLM-4V, read bilinearly, without its rotation."""
    height, width, said = _square(keys)
    table = grid(keys, "embeddings.position_embedding.weight", height, width, said, mode="bilinear")
    return tower(keys, [], embedding=[table], coordinates=BLOCKS.replace("(row, column)", "(row, column, height, width)"))


@family("minicpmv4_6_vision", "minicpmv4_7_vision", "minicpm_ocr_vision")
def _(keys: Keys) -> PositionSpec:
    """Patch i of n reads cell ⌊i·side/n⌋, the table of an image cut into other pieces.

    A merger amid the layers puts four tokens into one, which keep no positions of their own.
    """
    height, width, said = _square(keys)
    if height in ROUNDED:
        keys.find(
            "warning",
            "image_size",
            f"{height} cells to a side: theirs divides in fp32, and in images of some "
            "sizes (as many patches, for one) patches on a border read the cell before",
        )
    table = grid(keys, "embeddings.position_embedding.weight", height, width, said, mode="nearest")
    where = "(row, column, height, width) of the patch in its own image, row by row"
    return tower(keys, [], embedding=[table], coordinates=where)


@family("molmo2_vision")
def _(keys: Keys) -> PositionSpec:
    """One row of the table for every patch of the one size there is."""
    size, patch = pair(keys, "image_size") if keys.has("image_size") else (378, 378), keys.whole("patch_size")
    rows = keys.whole("num_position_embeddings", (size[0] // patch) * (size[1] // patch))
    said = keys.said_by("num_position_embeddings")
    table = Use(
        "encodings.learned.Learned",
        (("d_model", keys.whole("hidden_size")), ("max_positions", rows)),
        (("d_model", keys.said_by("hidden_size")), ("max_positions", said)),
        (Weight("table", "positional_embedding"),),
    )
    return tower(
        keys,
        [],
        embedding=[table],
        coordinates="the number of the patch, from 0, row by row",
        d_head=keys.whole("head_dim"),
    )


@family("aimv2_vision_model")
def _(keys: Keys) -> PositionSpec:
    """A learned table for images of one size, or (is_native) sinusoids of column and row for any."""
    if keys.flag("is_native", False):
        arguments = (("d_model", keys.whole("hidden_size")), ("layout", "sin_cos"), ("axes", 2), ("reads", (1, 0)))
        said = (
            ("d_model", keys.said_by("hidden_size")),
            ("layout", "constant of the code"),
            ("base", "constant of the code"),
        )
        added = Use("encodings.sinusoidal.Sinusoidal", arguments, said)
        keys.find("note", "is_native", "columns come first: [sin column | cos column | sin row | cos row]")
        return tower(keys, [], embedding=[added], coordinates=RASTER)
    height, width, said_by = _square(keys)
    table = grid(keys, "embeddings.position_embedding.weight", height, width, said_by)
    keys.find("note", "image_size", "images must have this size: the table is never interpolated")
    return tower(keys, [], embedding=[table], coordinates=RASTER)


@family("mllama_vision_model")
def _(keys: Keys) -> PositionSpec:
    """Vectors of the tile before the class token comes in, of patch and tile after it, of the tile again before the global
    layers; each let in by a gate."""
    ratios = keys.get("supported_aspect_ratios", [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]])
    if not isinstance(ratios, (list, tuple)):
        raise ConfigError(f"{keys.where('supported_aspect_ratios')}: expected a list of rows and columns, got {ratios!r}")
    n_ratios, n_tiles, d_model = len(ratios) + 1, keys.whole("max_num_tiles", 4), keys.whole("hidden_size")
    height, width, _ = _square(keys)

    def tiles(name: str, n_patches: int | None = None) -> Use:
        said = (
            ("d_model", keys.said_by("hidden_size")),
            ("n_tiles", keys.said_by("max_num_tiles")),
            ("n_ratios", f"{keys.said_by('supported_aspect_ratios')}, and 0 for none"),
        )
        whole = n_patches is not None
        weights = [
            Weight("tiles", f"{name}.{'tile_' if whole else ''}embedding.weight", reshape=True),
            Weight("gate", f"{name}.gate"),
        ]
        weights += [Weight("patches", f"{name}.embedding")] if whole else []
        arguments = (("d_model", d_model), ("n_ratios", n_ratios), ("n_tiles", n_tiles), ("n_patches", n_patches))
        return Use("encodings.families.gated_tiles.GatedTiles", arguments, said, tuple(weights))

    first = (tiles("pre_tile_positional_embedding"), tiles("gated_positional_embedding", height * width + 1))
    local, count = keys.whole("num_hidden_layers"), keys.whole("num_global_layers")
    last = (tiles("post_tile_positional_embedding"),)
    layers = [Layer(first if n == 0 else (), "local", causal=False) for n in range(local)]
    layers += [Layer(last if n == 0 else (), "global", causal=False) for n in range(count)]
    keys.find(
        "note",
        "max_num_tiles",
        "the first use of layer 0 comes before the class token is put in front, that of the "
        "first global layer before that layer",
    )
    where = "(number of the aspect ratio, from 1, tile, patch in the tile: 0 the class token, then row by row from 1)"
    return stack_of(keys, layers, length=None, coordinates=where)


def _square(keys: Keys) -> tuple[int, int, str]:
    """A table of (image_size // patch_size)² cells; these towers know square images only."""
    if pair(keys, "image_size")[0] != pair(keys, "image_size")[1]:
        raise ConfigError(f"{keys.where('image_size')}: the code knows square images only, got {keys.get('image_size')}")
    return side_of(keys)
