"""Vision towers whose queries and keys turn by the row and column of their patch."""

from __future__ import annotations

from posenc.dialects.errors import ConfigError
from posenc.dialects.family import family
from posenc.dialects.keys import Keys
from posenc.dialects.patches import BLOCKS, RASTER, SIZED, axial, even_head, grid, pair, side_of, square_side, tower
from posenc.dialects.spec import PositionSpec, Use

# --- rows then columns, the same frequencies for both, halves paired ----------------------------------------------------


@family("qwen2_vl_vision")
def _(keys: Keys) -> PositionSpec:
    """embed_dim is the width of the tower; hidden_size that of the text model it feeds."""
    return tower(keys, [axial(keys, even_head(keys, "embed_dim"))], width="embed_dim", coordinates=BLOCKS)


@family("ernie4_5_vl_moe_vision")
def _(keys: Keys) -> PositionSpec:
    return tower(keys, [axial(keys, even_head(keys))], coordinates=BLOCKS)


@family("qwen2_5_vl_vision", "qwen2_5_omni_vision_encoder")
def _(keys: Keys) -> PositionSpec:
    """All layers but those of fullatt_block_indexes see one window of window_size pixels; coordinates are the image's."""
    count, whole = keys.whole("num_hidden_layers"), keys.numbers("fullatt_block_indexes", (7, 15, 23, 31))
    side = keys.whole("window_size", 112)
    keys.find(
        "note",
        "window_size",
        f"layers but {list(whole)} attend within windows of {side} × {side} pixels; tokens "
        "stand in window order, with the coordinates they have in the image",
    )
    kinds = ["full_attention" if n in whole else "window_attention" for n in range(count)]
    return tower(keys, [axial(keys, even_head(keys))], kinds=kinds, coordinates=BLOCKS)


@family("video_llama_3_vision")
def _(keys: Keys) -> PositionSpec:
    """Blocks are as large as merge_sizes says, an input: 1 for images, 2 for videos."""
    said = BLOCKS.replace("spatial_merge_size × spatial_merge_size", "merge_sizes × merge_sizes, an input for each image")
    return tower(keys, [axial(keys, even_head(keys))], coordinates=said)


# --- the same, upon a learned grid ------------------------------------------------------------------------------------


@family(
    "qwen3_vl_vision",
    "qwen3_vl_moe_vision",
    "qwen3_omni_moe_vision_encoder",
    "qwen3_5_vision",
    "qwen3_5_moe_vision",
    "qwen4_exp_vision",
    "cohere_compass_vision",
)
def _(keys: Keys) -> PositionSpec:
    """The grid is read bilinearly, its corners at the corners of the image."""
    height, width, said = square_side(keys, "num_position_embeddings")
    table = grid(keys, "pos_embed.weight", height, width, said, mode="bilinear", align_corners=True)
    return tower(keys, [axial(keys, even_head(keys))], embedding=[table], coordinates=BLOCKS + SIZED)


@family("glm4v_vision", "glm4v_moe_vision")
def _(keys: Keys) -> PositionSpec:
    """The grid of image_size / patch_size is read bicubically."""
    height, width, said = _square(keys)
    table = grid(keys, "embeddings.position_embedding.weight", height, width, said, mode="bicubic")
    return tower(keys, [axial(keys, even_head(keys))], embedding=[table], coordinates=BLOCKS + SIZED)


@family("glm_ocr_vision")
def _(keys: Keys) -> PositionSpec:
    """As GLM-4V without a learned grid; queries and keys are normalised before they turn."""
    return tower(keys, [axial(keys, even_head(keys))], coordinates=BLOCKS)


@family("paddleocr_vl_vision")
def _(keys: Keys) -> PositionSpec:
    """The grid of image_size / patch_size is read bilinearly; patches row by row, blocks are made after the tower."""
    height, width, said = _square(keys)
    table = grid(keys, "embeddings.position_embedding.weight", height, width, said, mode="bilinear")
    where = RASTER + "; frames of a video all alike, and each a sequence of its own" + SIZED
    return tower(keys, [axial(keys, even_head(keys))], embedding=[table], coordinates=where)


@family("kimi_k25_vision")
def _(keys: Keys) -> PositionSpec:
    """Columns before rows, frequency by frequency; a bicubic grid; and sinusoids of the frame, none for a single image."""
    height, width = keys.whole("pos_emb_height"), keys.whole("pos_emb_width")
    if height != width:
        raise ConfigError(
            f"{keys.where('pos_emb_width')}: {width} beside pos_emb_height={height}; the code takes the grid "
            "for a square one"
        )
    d_model, frames = keys.whole("hidden_size"), keys.whole("pos_emb_time")
    said = f"{keys.said_by('pos_emb_height')}, {keys.said_by('pos_emb_width')}"
    table = grid(
        keys, "pos_emb.position_embeddings", height, width, said, reshape=True, mode="bicubic", axes=5, reads=(0, 1, 2, 3)
    )
    times = Use(
        "encodings.sinusoidal.Sinusoidal",
        (("d_model", d_model), ("layout", "sin_cos"), ("axes", 5), ("reads", (4,)), ("offset", -1), ("silent", "negative")),
        (("d_model", keys.said_by("hidden_size")), ("layout", "constant of the code"), ("base", "constant of the code")),
    )
    keys.find(
        "note",
        "pos_emb_time",
        f"a clip has up to {frames} frames, whose patches all see each other; frames are "
        "told apart by what is added before the first layer only",
    )
    maps = (("axial", (("alternating", True), ("order", (1, 0)))),)
    where = (
        RASTER + "; what is added reads (row, column, height, width, frame), frames from 1 and 0 in single images, "
        "rotation (row, column)"
    )
    return tower(keys, [axial(keys, even_head(keys), maps=maps)], embedding=[table, times], coordinates=where)


# --- other maps -------------------------------------------------------------------------------------------------------


@family("minimax_m3_vl_vision")
def _(keys: Keys) -> PositionSpec:
    """Frame, row and column, each a third of the head rounded down to whole pairs; what is left over keeps still."""
    d_head = even_head(keys, multiple=2)
    maps = (("axial", (("order", (0, 1, 2)),)),)
    where = BLOCKS.replace("(row, column)", "(frame, row, column)").partition("; frames")[0] + "; a clip is one sequence"
    return tower(keys, [axial(keys, d_head, width=2 * (d_head // 3 // 2), maps=maps)], coordinates=where)


@family("pixtral")
def _(keys: Keys) -> PositionSpec:
    """One spectrum over the whole head: rows read every second frequency from the first, columns from the second."""
    d_head = even_head(keys)
    maps = (("strided", (("order", (0, 1)),)),)
    return tower(keys, [axial(keys, d_head, width=d_head, maps=maps)], coordinates=RASTER)


def _square(keys: Keys) -> tuple[int, int, str]:
    """A table of (image_size // patch_size)² cells; these towers know square images only."""
    if pair(keys, "image_size")[0] != pair(keys, "image_size")[1]:
        raise ConfigError(f"{keys.where('image_size')}: the code knows square images only, got {keys.get('image_size')}")
    return side_of(keys)
