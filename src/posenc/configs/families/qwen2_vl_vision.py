"""The vision encoders of Qwen2-VL, Qwen3-VL, Pixtral and similar: axial RoPE over the row and column of a patch."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import SAME_FRAMES
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.patches import (
    BLOCKS,
    RASTER,
    SIZED,
    axial,
    even_head,
    grid,
    in_blocks,
    square_side,
    square_side_of,
    tower,
)
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Weight
from posenc.support.languages import clauses


@family("exaone4_5_vision")
def exaone4_5_vision(keys: Keys) -> PositionSpec:
    """All layers except fullatt_block_indexes attend within windows of window_size pixels.

    Coordinates are those of the image.
    """
    count, whole = keys.whole("depth"), keys.numbers("fullatt_block_indexes", (7, 15, 23, 31))
    side = keys.whole("window_size")
    keys.note(
        "window_size",
        say(
            "all layers except {layers} attend within windows of {side} × {side} pixels; tokens are in "
            "window order, with their coordinates in the image",
            layers=list(whole),
            side=side,
        ),
    )
    kinds = ["full_attention" if n in whole else "window_attention" for n in range(count)]
    return tower(keys, [axial(keys, even_head(keys, heads="num_heads"))], kinds=kinds, coordinates=BLOCKS)


@family("lfm3_vl_vision")
def lfm3_vl_vision(keys: Keys) -> PositionSpec:
    """layer_types says which layers are attention; the others are convolutions over neighbouring patches."""
    count = keys.whole("num_hidden_layers")
    assumed = tuple("conv" if n < 2 or n % 2 else "full_attention" for n in range(count))
    kinds = keys.names("layer_types", assumed, length=count)
    spec = tower(keys, [axial(keys, even_head(keys))], kinds=kinds, coordinates=BLOCKS)
    size = keys.whole("conv_kernel_size")
    keys.note(
        "conv_kernel_size", say("conv layers mix {size} × {size} neighbouring patches and have no positions", size=size)
    )
    layers = tuple(Layer((), "conv", causal=False) if layer.kind == "conv" else layer for layer in spec.layers)
    return replace(spec, layers=layers)


@family("mlcd", "mlcd_vision_model")
def mlcd(keys: Keys) -> PositionSpec:
    use = axial(keys, even_head(keys))
    arguments, said_by = (*use.arguments, ("prefix", 1)), (*use.said_by, ("prefix", "constant of the code"))
    use = replace(
        use,
        encoding="encodings.of_families.prefix_rope.PrefixRoPE",
        arguments=arguments,
        said_by=said_by,
        weights=(Weight("angles", "class_pos_emb"),),
    )
    keys.note("rope_parameters", say("the class token is rotated by learned angles"))
    return tower(keys, [use], coordinates=say("(row, column) of the patch, from 0, row by row; the class token at (-1, 0)"))


@family("qwen2_vl_vision")
def qwen2_vl_vision(keys: Keys) -> PositionSpec:
    """embed_dim is the width of this encoder; hidden_size that of the text model."""
    return tower(keys, [axial(keys, even_head(keys, "embed_dim"))], width="embed_dim", coordinates=BLOCKS)


@family("ernie4_5_vl_moe_vision")
def ernie4_5_vl_moe_vision(keys: Keys) -> PositionSpec:
    return tower(keys, [axial(keys, even_head(keys))], coordinates=BLOCKS)


@family("qwen2_5_vl_vision", "qwen2_5_omni_vision_encoder")
def qwen2_5_vl_vision(keys: Keys) -> PositionSpec:
    """All layers except fullatt_block_indexes attend within windows of window_size pixels.

    Coordinates are those of the image.
    """
    count, whole = keys.whole("num_hidden_layers"), keys.numbers("fullatt_block_indexes", (7, 15, 23, 31))
    side = keys.whole("window_size", 112)
    keys.note(
        "window_size",
        say(
            "all layers except {layers} attend within windows of {side} × {side} pixels; tokens are in "
            "window order, with their coordinates in the image",
            layers=list(whole),
            side=side,
        ),
    )
    kinds = ["full_attention" if n in whole else "window_attention" for n in range(count)]
    return tower(keys, [axial(keys, even_head(keys))], kinds=kinds, coordinates=BLOCKS)


@family("video_llama_3_vision")
def video_llama_3_vision(keys: Keys) -> PositionSpec:
    """The size of blocks is an input, merge_sizes: 1 for images, 2 for videos."""
    where = clauses(in_blocks(size="merge_sizes × merge_sizes"), say("merge_sizes is an input for each image"), SAME_FRAMES)
    return tower(keys, [axial(keys, even_head(keys))], coordinates=where)


@family(
    "qwen3_vl_vision",
    "qwen3_vl_moe_vision",
    "qwen3_omni_moe_vision_encoder",
    "qwen3_5_vision",
    "qwen3_5_moe_vision",
    "qwen4_exp_vision",
    "cohere_compass_vision",
)
def qwen3_vl_vision(keys: Keys) -> PositionSpec:
    """The grid is interpolated bilinearly with aligned corners."""
    height, width, origin = square_side(keys, "num_position_embeddings")
    table = grid(keys, "pos_embed.weight", height, width, origin, mode="bilinear", align_corners=True)
    return tower(keys, [axial(keys, even_head(keys))], embedding=[table], coordinates=clauses(BLOCKS, SIZED))


@family("glm4v_vision", "glm4v_moe_vision")
def glm4v_vision(keys: Keys) -> PositionSpec:
    """The grid of image_size / patch_size is interpolated bicubically."""
    height, width, origin = square_side_of(keys)
    table = grid(keys, "embeddings.position_embedding.weight", height, width, origin, mode="bicubic")
    return tower(keys, [axial(keys, even_head(keys))], embedding=[table], coordinates=clauses(BLOCKS, SIZED))


@family("glm_ocr_vision")
def glm_ocr_vision(keys: Keys) -> PositionSpec:
    """As GLM-4V without a learned grid; queries and keys are normalised before the rotation."""
    return tower(keys, [axial(keys, even_head(keys))], coordinates=BLOCKS)


@family("paddleocr_vl_vision")
def paddleocr_vl_vision(keys: Keys) -> PositionSpec:
    """The grid of image_size / patch_size is interpolated bilinearly; patches are in raster order."""
    height, width, origin = square_side_of(keys)
    table = grid(keys, "embeddings.position_embedding.weight", height, width, origin, mode="bilinear")
    where = clauses(RASTER, SAME_FRAMES, SIZED)
    return tower(keys, [axial(keys, even_head(keys))], embedding=[table], coordinates=where)


@family("pixtral")
def pixtral(keys: Keys) -> PositionSpec:
    """One spectrum over the whole head: rows use frequencies 0, 2, 4, …, columns 1, 3, 5, …."""
    d_head = even_head(keys)
    maps = (("strided", (("order", (0, 1)),)),)
    return tower(keys, [axial(keys, d_head, width=d_head, maps=maps)], coordinates=RASTER)
