"""Vision towers whose rotation puts columns before rows. All but Step 3.7's count from 1; a class token is at (0, 0)."""

from __future__ import annotations

from posenc.dialects.errors import ConfigError
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.patches import Maps, axial, even_head, grid, side_of, tower
from posenc.dialects.schedule import FULL, schedule
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight

UNUSED = "max_position_embeddings"  # such towers have it, and only note it
COLUMNS_ROWS: Maps = (("axial", (("order", (1, 0)),)),)
FROM_ONE = "(row, column) of the patch, from 1, row by row"
WINDOWED = "window_attention"


@family("llama4_vision_model")
def _(keys: Keys) -> PositionSpec:
    """Neighbours are paired; a learned vector for each patch and, last, for the class token, at one size of image only."""
    high, wide, said = side_of(keys)
    if high != wide:
        raise ConfigError(f"{keys.where('image_size')}: the code knows square images only, got {keys.get('image_size')}")
    tokens = high * wide + 1
    table = Use(
        "encodings.learned.Learned",
        (("d_model", keys.whole("hidden_size")), ("max_positions", tokens)),
        (("d_model", keys.said_by("hidden_size")), ("max_positions", said)),
        (Weight("table", "positional_embedding_vlm"),),
    )
    where = (
        f"rotation reads {FROM_ONE}, the class token, which is the last one, at (0, 0); what is added counts tokens "
        "0, 1, 2, …"
    )
    use = axial(keys, even_head(keys), maps=COLUMNS_ROWS, layout="interleaved")
    return tower(keys, [use], embedding=[table], coordinates=where)


@family("step3p5_vision")
def _(keys: Keys) -> PositionSpec:
    """Halves are paired; the learned grid is read bilinearly."""
    keys.get(UNUSED, None)
    high, wide, said = side_of(keys)
    table = grid(keys, "position_embedding.weight", high, wide, said, mode="bilinear")
    where = "(row, column) of the patch, from 0, row by row; the learned grid reads (row, column, height, width)"
    use = axial(keys, even_head(keys), maps=COLUMNS_ROWS)
    return tower(keys, [use], embedding=[table], coordinates=where)


@family("muse_glimmer_vision", "muse_spark_vision")
def _(keys: Keys) -> PositionSpec:
    """Halves are paired. Three of four layers see one window of pos_emb_height × pos_emb_height patches.

    In Muse Spark patch n of H × W reads the learned grid as patch n of W × H: the same place in square images only.
    """
    count, side, wide = keys.whole("num_hidden_layers"), keys.whole("pos_emb_height"), keys.whole("pos_emb_width")
    if wide != side:
        raise ConfigError(
            f"{keys.where('pos_emb_width')}: {wide} beside pos_emb_height={side}; the code takes the grid for a square one"
        )
    keys.get(UNUSED, None)
    reads = "(row, column, height, width) from 0"
    if keys.family == "muse_spark_vision":
        reads = "for patch n of H × W, (n // H, n % H, W, H)"
        keys.find(
            "warning",
            "pos_emb_height",
            "patch n of an image of H × W patches reads the learned grid where patch n "
            "of W × H is: images that are not square are scrambled, as they were in training",
        )
    keys.find(
        "note",
        "layer_types",
        f"window_attention sees windows of {side} × {side} patches; tokens stand in window "
        "order, with the coordinates that they have in the image",
    )
    kinds = schedule(keys, lambda n: FULL if (n + 1) % 4 == 0 or n == count - 1 else WINDOWED, (FULL, WINDOWED))
    table = grid(
        keys, "position_embedding_table.weight", side, side, keys.said_by("pos_emb_height"), mode="bilinear", border="zero"
    )
    where = (
        f"rotation reads {FROM_ONE}; the learned grid reads {reads}; frames of a video all alike, and each a sequence "
        "of its own"
    )
    return tower(keys, [axial(keys, even_head(keys), maps=COLUMNS_ROWS)], embedding=[table], kinds=kinds, coordinates=where)


@family("inkling2_vision")
def _(keys: Keys) -> PositionSpec:
    """Neighbours are paired; the learned grid is read bilinearly; the class token has a learned vector of its own."""
    side = keys.whole("posemb_grid_size")
    table = grid(
        keys, "embeddings.position_embedding.weight", side, side, keys.said_by("posemb_grid_size"), mode="bilinear"
    )
    where = (
        "rotation reads (row, column) of the patch, from 1, in blocks of spatial_merge_size × spatial_merge_size, the "
        "class token, the first one of each image, at (0, 0); the learned grid reads (row, column, height, width) "
        "from 0 and leaves the class token, at (-1, -1), alone"
    )
    use = axial(keys, even_head(keys), maps=COLUMNS_ROWS, layout="interleaved")
    return tower(keys, [use], embedding=[table], coordinates=where)


@family("hunyuan_vl_vision")
def _(keys: Keys) -> PositionSpec:
    """A learned grid alone, no rotation; the table's first row is for a class token that there is not."""
    side = keys.whole("max_image_size") // keys.whole("patch_size")
    mode = keys.text("interpolate_mode", "bilinear", among=("bilinear", "bicubic", "nearest"))
    table = grid(
        keys, "position_embedding.weight", side, side, f"{keys.said_by('max_image_size')} / patch_size", mode=mode, prefix=1
    )
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(
        keys,
        layers,
        embedding=[table],
        length=None,
        d_head=keys.whole("head_dim", None),
        coordinates="(row, column, height, width) of the patch and its image, from 0, row by row",
    )


@family("inkling_vision")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(
        keys.family, coordinates="none: linear layers fold the pixels of each patch by themselves, in order"
    )


@family("inkling_audio")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, coordinates="none: each frame is the sum of the embeddings of its codes")


@family("muse_spark_audio")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, coordinates="none: causal convolutions over samples keep order")
