"""Learned grids of patches with something besides: detection tokens, tables of a second stack, tokens without rows."""

from __future__ import annotations

from dataclasses import replace

from posenc.dialects.families.vit import CLASS, ON_REQUEST, SIZED, images, patch_table
from posenc.dialects.family import family, parts, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.patches import RASTER, grid, side_of, tower
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight


@family("yolos")
def _(keys: Keys) -> PositionSpec:
    """Detection tokens stand last and have rows; a table of its own comes in after every layer but the last."""
    count, first = keys.whole("num_detection_tokens", 100), patch_table(keys, prefix=1)
    arguments = (*first.arguments[:3], ("prefix", count + 1), ("mode", "bicubic"))
    said = tuple(pair for pair in first.said_by if pair[0] != "prefix")
    said += (("prefix", f"{keys.said_by('num_detection_tokens')}, and the class token"), ("mode", "constant of the code"))

    def table(weight: str, part: tuple[int, int] | None = None) -> Use:
        return Use(first.encoding, arguments, said, (Weight("table", weight, reshape=True, part=part, last=count),))

    where = f"{RASTER}{SIZED}; the class token first, at (-1, {count}), detection token k last, at (-1, k)"
    spec = tower(keys, [], embedding=[table("embeddings.position_embeddings")], coordinates=where)
    if not keys.flag("use_mid_position_embeddings"):
        return spec
    keys.find("note", "use_mid_position_embeddings", "the tables of layers 1, 2, … are added to what enters these layers")
    middle = "interpolation.mid_position_embeddings"
    return replace(
        spec,
        layers=tuple(
            replace(layer, uses=(table(middle, (0, n - 1)),)) if n else layer for n, layer in enumerate(spec.layers)
        ),
    )


@family("eomt", "videomt")
def _(keys: Keys) -> PositionSpec:
    """DINOv2's tower whose class token and registers have no rows; queries that join in later have none either."""
    height, width, said = side_of(keys)
    keys.find("note", "image_size", "images must have this size: the table is never interpolated")
    table = grid(keys, "embeddings.position_embeddings.weight", height, width, said)
    keys.find("note", "num_blocks", "queries join before the last num_blocks layers, without positions")
    where = f"{RASTER}; class token and registers stand first, at (-1, -1), and get nothing"
    return tower(keys, [], embedding=[table], coordinates=where)


@family("dpt")
def _(keys: Keys) -> PositionSpec:
    """ViT read bilinearly, without a call asking; or only a backbone; or (is_hybrid) ViT upon the features of one."""
    hybrid = bool(keys.flag("is_hybrid"))
    if keys.has("backbone_config") and not hybrid:
        keys.find(
            "note", "backbone_config", "depth and segmentation models are this backbone, and have no ViT of their own"
        )
        return PositionSpec(keys.family, parts=parts(keys, "backbone_config"))
    spec = images(keys, patch_table(keys, mode="bilinear"), CLASS)
    return replace(spec, parts=parts(keys, backbone_config="bit")) if hybrid else spec


@family("vit_mae")
def _(keys: Keys) -> PositionSpec:
    """Tables that start as sinusoids of column and row, are not trained, and stand in the checkpoint.

    The decoder reads its own, where images have another size, as one long row of patches.
    """
    keys.find("note", "image_size", ON_REQUEST)
    keys.find(
        "note",
        "hidden_size",
        "tables start as [sin column | cos column | sin row | cos row], base 10 000, zeros for the class token",
    )
    keys.find(
        "warning",
        "decoder_hidden_size",
        "for images of another size the decoder's table is read as one long row, "
        "not as an image: patches get vectors of other places",
    )
    height, width, said = side_of(keys)
    row = grid(
        keys,
        "decoder.decoder_pos_embed",
        1,
        height * width,
        said,
        d_model="decoder_hidden_size",
        reshape=True,
        prefix=1,
        mode="bicubic",
    )
    layers = [Layer(causal=False)] * keys.whole("decoder_num_hidden_layers")
    decoder = stack_of(
        keys,
        layers,
        embedding=[row],
        width="decoder_hidden_size",
        heads="decoder_num_attention_heads",
        length=None,
        coordinates=f"(0, number of the patch) row by row; (0, number, 1, how many) for images of another size; {CLASS}",
    )
    spec = images(keys, patch_table(keys, "embeddings.position_embeddings", mode="bicubic"), CLASS)
    return replace(spec, parts=(decoder.with_part("decoder"),))


@family("hiera")
def _(keys: Keys) -> PositionSpec:
    """One table for the finest grid; stages pool it away. The decoder of pretraining has one for the coarsest."""
    (high, wide), strides = keys.wholes("image_size", length=2), keys.wholes("patch_stride", length=2)
    rows, columns, said = high // strides[0], wide // strides[1], f"{keys.said_by('image_size')} / patch_stride"
    depths = keys.wholes("depths")
    keys.find("note", "image_size", ON_REQUEST)
    table = grid(
        keys, "embeddings.position_embeddings", rows, columns, said, d_model="embed_dim", reshape=True, mode="bicubic"
    )
    layers = [Layer((), f"stage {n}", causal=False) for n, depth in enumerate(depths) for _ in range(depth)]
    keys.find(
        "note",
        "masked_unit_size",
        "after the sum patches are put in the order of units, which attention stays in "
        "where masked_unit_attention says; no layer looks at positions",
    )
    spec = stack_of(
        keys, layers, embedding=[table], coordinates=RASTER + SIZED, width="embed_dim", heads="no one number", length=None
    )
    if keys.whole("decoder_hidden_size", None) is None:
        return spec
    pooled = keys.wholes("query_stride", (2, 2), length=2), keys.whole("num_query_pool", 3, least=0)
    coarse = [side // stride ** pooled[1] for side, stride in zip((rows, columns), pooled[0], strict=True)]
    last = grid(
        keys,
        "decoder.decoder_position_embeddings",
        coarse[0],
        coarse[1],
        f"{said} / query_stride",
        d_model="decoder_hidden_size",
        reshape=True,
    )
    of_decoder = stack_of(
        keys,
        [Layer(causal=False)] * keys.whole("decoder_depth"),
        embedding=[last],
        width="decoder_hidden_size",
        heads="no one number",
        length=None,
        coordinates=RASTER.replace("patch", "place of the coarsest stage"),
    )
    return replace(spec, parts=(of_decoder.with_part("decoder"),))
