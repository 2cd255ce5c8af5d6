"""data2vec's encoders of sound and of images; its text model is RoBERTa's."""

from __future__ import annotations

from dataclasses import replace

from posenc.dialects.errors import ConfigError
from posenc.dialects.families.vit import CLASS, SIZED, patch_table
from posenc.dialects.families.windows import BIAS
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.patches import RASTER, side_of, tower
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight


@family("data2vec-audio")
def _(keys: Keys) -> PositionSpec:
    """num_conv_pos_embeddings convolutions, a layer norm without parameters after each; attention has no positions."""
    if keys.text("feat_extract_activation", "gelu") != "gelu":
        raise ConfigError(
            f"{keys.where('feat_extract_activation')}: {keys.get('feat_extract_activation')!r} follows the "
            "convolutions; only 'gelu' is known"
        )
    if keys.whole("num_conv_pos_embeddings") > 2**10:
        raise ConfigError(
            f"{keys.where('num_conv_pos_embeddings')}: expected how many convolutions, 5 as a rule, got "
            f"{keys.get('num_conv_pos_embeddings')}"
        )
    sizes = {
        "d_model": "hidden_size",
        "kernel_size": "conv_pos_kernel_size",
        "groups": "num_conv_pos_embedding_groups",
        "layers": "num_conv_pos_embeddings",
    }
    arguments = {ours: keys.whole(theirs) for ours, theirs in sizes.items()} | {"normed": True, "weight_norm": False}
    said = {ours: keys.said_by(theirs) for ours, theirs in sizes.items()}
    said |= dict.fromkeys(("normed", "weight_norm"), "constant of the code")
    weights = tuple(
        Weight(f"layers.{n}.{kind}", f"pos_conv_embed.layers.{n}.conv.{kind}")
        for n in range(keys.whole("num_conv_pos_embeddings"))
        for kind in ("weight", "bias")
    )
    keys.find(
        "warning",
        "num_conv_pos_embeddings",
        "padding is zeroed before the first convolution only: what the others "
        "make of it reaches the last frames of a sound; posenc takes padding as absent",
    )
    use = Use("encodings.convolutional.Convolutional", tuple(arguments.items()), tuple(said.items()), weights)
    return stack_of(
        keys,
        [Layer(causal=False)] * keys.whole("num_hidden_layers"),
        embedding=[use],
        length=None,
        coordinates="none: neighbours within the convolutions' reach",
    )


@family("data2vec-vision")
def _(keys: Keys) -> PositionSpec:
    """BEiT's numbers for differences within the image, for each layer, one for all, or both; a table where asked for."""
    height, width, said = side_of(keys)
    arguments = (("n_heads", keys.whole("num_attention_heads")), ("window", (height, width)), ("class_token", True))
    said_by = (("n_heads", keys.said_by("num_attention_heads")), ("window", said), ("class_token", "constant of the code"))
    names = {
        "use_relative_position_bias": "encoder.layer.{layer}.attention.attention.relative_position_bias",
        "use_shared_relative_position_bias": "encoder.relative_position_bias",
    }
    uses = tuple(
        Use("encodings.window_bias.WindowBias", arguments, said_by, (Weight("table", f"{name}.{BIAS}"),))
        for flag, name in names.items()
        if keys.flag(flag)
    )
    if uses:
        keys.find("note", "image_size", "for images of another size differences are read bilinearly: WindowBias.resized")
        if height != width:
            keys.find("error", "image_size", f"{height} × {width} patches: the code takes rows of its table for columns")
    absolute = bool(keys.flag("use_absolute_position_embeddings"))
    table = [patch_table(keys, mode="bicubic")] if absolute else []
    spec = tower(keys, [], coordinates=RASTER)
    layers = tuple(replace(layer, uses=uses) for layer in spec.layers)
    return stack_of(keys, layers, embedding=table, length=None, coordinates=f"{RASTER}{SIZED if absolute else ''}; {CLASS}")
