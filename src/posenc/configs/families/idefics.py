"""IDEFICS: Llama's RoPE in the text model, a learned grid in the vision encoder."""

from __future__ import annotations

from posenc.configs.coordinates import OTHER_SIZES
from posenc.configs.errors import ConfigError
from posenc.configs.families.llama import same_kind
from posenc.configs.family import decoder, family, head_width, parts
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, grid, pair, tower
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec
from posenc.support.languages import clauses


@family("idefics_vision")
def idefics_vision(keys: Keys) -> PositionSpec:
    """A row for the class token and one for each patch, at one image size unless interpolation is requested."""
    high, wide = pair(keys, "image_size")
    patch, _ = pair(keys, "patch_size")
    if high != wide:
        raise ConfigError(
            f"{keys.where('image_size')}: expected a square, got {high} × {wide}; the family's code has no other"
        )
    origin = f"{keys.said_by('image_size')} / {keys.said_by('patch_size')}"
    table = grid(
        keys,
        "embeddings.position_embedding.weight",
        high // patch,
        high // patch,
        origin,
        d_model="hidden_size",
        mode="bicubic",
        prefix=1,
        surplus=0.1,
    )
    keys.note("image_size", say("other sizes only if the call sets interpolate_pos_encoding"))
    places = clauses(RASTER, OTHER_SIZES, say("the class token comes first"))
    return tower(keys, [], embedding=[table], coordinates=places)


@family("idefics")
def idefics(keys: Keys) -> PositionSpec:
    """Cross-attention layers to images have no positions."""
    names = ("vision_config", "perceiver_config") if keys.flag("use_resampler") else ("vision_config",)
    return decoder(
        keys,
        rope(keys, d_head=head_width(keys)),
        kinds=same_kind(keys),
        parts=parts(keys, *names),
        coordinates=say("0, 1, 2, … over unmasked tokens; padding is at 1"),
    )
