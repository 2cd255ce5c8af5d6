"""BEiT and data2vec-vision: a learned bias for each head and 2-D difference within the image."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import OTHER_SIZES
from posenc.configs.families.swin import BIAS
from posenc.configs.families.vit import CLASS, patch_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, side_of, tower
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Use, Weight
from posenc.support.languages import clauses


@family("data2vec-vision")
def data2vec_vision(keys: Keys) -> PositionSpec:
    """BEiT's bias by 2-D difference, per layer, shared by all layers, or both; a position table if configured."""
    height, width, sides = side_of(keys)
    arguments = (("n_heads", keys.whole("num_attention_heads")), ("window", (height, width)), ("class_token", True))
    said_by = (("n_heads", keys.said_by("num_attention_heads")), ("window", sides), ("class_token", "constant of the code"))
    names = {
        "use_relative_position_bias": "encoder.layer.{layer}.attention.attention.relative_position_bias",
        "use_shared_relative_position_bias": "encoder.relative_position_bias",
    }
    uses = tuple(
        Use("encodings.bases.window_bias.WindowBias", arguments, said_by, (Weight("table", f"{name}.{BIAS}"),))
        for flag, name in names.items()
        if keys.flag(flag)
    )
    if uses:
        keys.note("image_size", say("for images of another size the bias is interpolated bilinearly: WindowBias.resized"))
        if height != width:
            keys.error(
                "image_size",
                say("{height} × {width} patches: the code swaps rows and columns of its table", height=height, width=width),
            )
    absolute = bool(keys.flag("use_absolute_position_embeddings"))
    table = [patch_table(keys, mode="bicubic")] if absolute else []
    spec = tower(keys, [], coordinates=RASTER)
    layers = tuple(replace(layer, uses=uses) for layer in spec.layers)
    return stack_of(
        keys, layers, embedding=table, length=None, coordinates=clauses(RASTER, *[OTHER_SIZES] * absolute, CLASS)
    )


@family("beit")
def beit(keys: Keys) -> PositionSpec:
    """One window, the whole image, with three extra entries for the class token; per layer, shared, or both."""
    height, width, sides = side_of(keys)
    heads, spec = keys.whole("num_attention_heads"), tower(keys, [], coordinates=RASTER)
    arguments = (("n_heads", heads), ("window", (height, width)), ("class_token", True))
    said_by = (("n_heads", keys.said_by("num_attention_heads")), ("window", sides), ("class_token", "constant of the code"))
    names = [
        name
        for flag, name in (
            ("use_relative_position_bias", "layers.{layer}.relative_position_bias"),
            ("use_shared_relative_position_bias", "shared_position_bias"),
        )
        if keys.flag(flag)
    ]
    uses = tuple(
        Use("encodings.bases.window_bias.WindowBias", arguments, said_by, (Weight("table", f"{name}.{BIAS}"),))
        for name in names
    )
    if uses:
        keys.note("image_size", say("for images of another size the bias is interpolated bilinearly: WindowBias.resized"))
        if height != width:
            keys.error(
                "image_size",
                say("{height} × {width} patches: the code swaps rows and columns of its table", height=height, width=width),
            )
    absolute = bool(keys.flag("use_absolute_position_embeddings"))
    table = [patch_table(keys, mode="bicubic")] if absolute else []
    layers = tuple(replace(layer, uses=uses) for layer in spec.layers)
    return stack_of(
        keys, layers, embedding=table, length=None, coordinates=clauses(RASTER, *[OTHER_SIZES] * absolute, CLASS)
    )
