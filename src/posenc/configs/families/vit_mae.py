"""ViTMAE and Hiera: learned or fixed tables of patches, with a second table in the pretraining decoder."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import OTHER_SIZES
from posenc.configs.families.vit import CLASS, ON_REQUEST, image_tower, patch_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, grid, side_of
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec
from posenc.support.languages import clauses


@family("vit_mae")
def vit_mae(keys: Keys) -> PositionSpec:
    """Tables initialised as sinusoids of column and row, not trained, stored in the checkpoint.

    For images of another size the decoder's table is read as one row of patches.
    """
    keys.note("image_size", ON_REQUEST)
    keys.note(
        "hidden_size",
        say(
            "tables are initialised as [sin column | cos column | sin row | cos row], base 10 000, zeros for the "
            "class token"
        ),
    )
    keys.warning(
        "decoder_hidden_size",
        say("for images of another size the decoder's table is interpolated as one long row: patches get wrong positions"),
    )
    height, width, origin = side_of(keys)
    row = grid(
        keys,
        "decoder.decoder_pos_embed",
        1,
        height * width,
        origin,
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
        coordinates=clauses(
            say("(0, index of the patch) row by row"), say("(0, index, 1, count) for images of another size"), CLASS
        ),
    )
    spec = image_tower(keys, patch_table(keys, "embeddings.position_embeddings", mode="bicubic"), CLASS)
    return replace(spec, parts=(decoder.with_part("decoder"),))


@family("hiera")
def hiera(keys: Keys) -> PositionSpec:
    """One table for the finest grid; later stages pool. The pretraining decoder has one for the coarsest."""
    (high, wide), strides = keys.wholes("image_size", length=2), keys.wholes("patch_stride", length=2)
    rows, columns, origin = high // strides[0], wide // strides[1], f"{keys.said_by('image_size')} / patch_stride"
    depths = keys.wholes("depths")
    keys.note("image_size", ON_REQUEST)
    table = grid(
        keys, "embeddings.position_embeddings", rows, columns, origin, d_model="embed_dim", reshape=True, mode="bicubic"
    )
    layers = [Layer((), f"stage {n}", causal=False) for n, depth in enumerate(depths) for _ in range(depth)]
    keys.note(
        "masked_unit_size",
        say(
            "after the sum, patches are sorted by mask unit; with masked_unit_attention, attention "
            "stays within units. No layer reads positions"
        ),
    )
    spec = stack_of(
        keys,
        layers,
        embedding=[table],
        coordinates=clauses(RASTER, OTHER_SIZES),
        width="embed_dim",
        heads="no one number",
        length=None,
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
        f"{origin} / query_stride",
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
        coordinates=say("(row, column) of the cell of the coarsest stage, from 0, row by row"),
    )
    return replace(spec, parts=(of_decoder.with_part("decoder"),))
