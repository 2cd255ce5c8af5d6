"""Molmo 2: Llama's RoPE, scaled in some layers only; a learned table for patches."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.families.llama import all_full
from posenc.configs.families.qwen2_vl import with_section_type
from posenc.configs.family import decoder, family, head_width, parts
from posenc.configs.keys import Keys
from posenc.configs.patches import pair, tower
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Rotation, Use, Weight


@family("molmo2_vision")
def molmo2_vision(keys: Keys) -> PositionSpec:
    """One row of the table for each patch, at one image size."""
    size, patch = pair(keys, "image_size") if keys.has("image_size") else (378, 378), keys.whole("patch_size")
    rows = keys.whole("num_position_embeddings", (size[0] // patch) * (size[1] // patch))
    origin = keys.said_by("num_position_embeddings")
    table = Use(
        "encodings.learned.Learned",
        (("d_model", keys.whole("hidden_size")), ("max_positions", rows)),
        (("d_model", keys.said_by("hidden_size")), ("max_positions", origin)),
        (Weight("table", "positional_embedding"),),
    )
    return tower(
        keys,
        [],
        embedding=[table],
        coordinates=say("the index of the patch, from 0, row by row"),
        d_head=keys.whole("head_dim"),
    )


@family("molmo2_text")
def molmo2_text(keys: Keys) -> PositionSpec:
    """Scaled frequencies in rope_scaling_layers, all layers by default; unscaled frequencies of the same base elsewhere."""
    use = rope(keys, d_head=head_width(keys))
    spec = decoder(keys, use, kinds=all_full(keys))
    scaled = keys.numbers("rope_scaling_layers", None)
    if scaled is None or use is None or use.rotation is None:
        return spec
    rotation = use.rotation
    plain = Rotation(rotation.width, rotation.base)
    said_by = tuple(pair for pair in use.said_by if pair[0] in ("base", "rotary_dim"))
    arguments = tuple((name, plain if value is rotation else value) for name, value in use.arguments)
    unscaled = replace(use, arguments=arguments, said_by=(*said_by, ("frequencies", keys.said_by("rope_scaling_layers"))))
    layers = tuple(layer if n in scaled else replace(layer, uses=(unscaled,)) for n, layer in enumerate(spec.layers))
    return replace(spec, layers=layers)


@family("molmo2")
def molmo2(keys: Keys) -> PositionSpec:
    """Published files call the vision section vit_config."""
    old = keys.has("vit_config") and not keys.has("vision_config")
    named = with_section_type(keys, "vit_config", "molmo2_vision") if old else keys
    vision = "vit_config" if old else "vision_config"
    return PositionSpec(keys.family, parts=parts(named, "text_config", vision, "adapter_config"), coordinates=LIKE_TEXT)
