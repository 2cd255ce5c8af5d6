"""Towers that turn by row and column, patches in blocks: EXAONE 4.5 in windows, LFM 3 between convolutions."""

from __future__ import annotations

from dataclasses import replace

from posenc.dialects.family import family
from posenc.dialects.keys import Keys
from posenc.dialects.patches import BLOCKS, axial, even_head, tower
from posenc.dialects.spec import Layer, PositionSpec


@family("exaone4_5_vision")
def _(keys: Keys) -> PositionSpec:
    """All layers but those of fullatt_block_indexes see one window of window_size pixels; coordinates are the image's."""
    count, whole = keys.whole("depth"), keys.numbers("fullatt_block_indexes", (7, 15, 23, 31))
    side = keys.whole("window_size")
    keys.find(
        "note",
        "window_size",
        f"layers but {list(whole)} attend within windows of {side} × {side} pixels; tokens "
        "stand in window order, with the coordinates they have in the image",
    )
    kinds = ["full_attention" if n in whole else "window_attention" for n in range(count)]
    return tower(keys, [axial(keys, even_head(keys, heads="num_heads"))], kinds=kinds, coordinates=BLOCKS)


@family("lfm3_vl_vision")
def _(keys: Keys) -> PositionSpec:
    """layer_types says which layers attend; the others are convolutions over the neighbours in the image."""
    count = keys.whole("num_hidden_layers")
    assumed = tuple("conv" if n < 2 or n % 2 else "full_attention" for n in range(count))
    kinds = keys.names("layer_types", assumed, length=count)
    spec = tower(keys, [axial(keys, even_head(keys))], kinds=kinds, coordinates=BLOCKS)
    size = keys.whole("conv_kernel_size")
    keys.find("note", "conv_kernel_size", f"layers of kind conv mix {size} × {size} neighbours, and have no positions")
    layers = tuple(Layer((), "conv", causal=False) if layer.kind == "conv" else layer for layer in spec.layers)
    return replace(spec, layers=layers)
