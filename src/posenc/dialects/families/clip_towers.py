"""The towers of CLIP and its kin: a learned vector for every patch and for the class token, and one for every word."""

from __future__ import annotations

from posenc.dialects.errors import ConfigError
from posenc.dialects.families.learned import table
from posenc.dialects.families.padded import COUNTED, padded_table
from posenc.dialects.families.vit import CLASS, ON_REQUEST, images, patch_table
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.patches import RASTER, pair, tower
from posenc.dialects.spec import Layer, PositionSpec, Use

PATCHES = "embeddings.position_embedding"


# --- images -----------------------------------------------------------------------------------------------------------


@family(
    "altclip_vision_model",
    "bridgetower_vision_model",
    "chinese_clip_vision_model",
    "clip_vision_model",
    "clipseg_vision_model",
    "git_vision_model",
    "kosmos_2_vision_model",
    "metaclip_2_vision_model",
    "owlv2_vision_model",
    "owlvit_vision_model",
)
def _(keys: Keys) -> PositionSpec:
    """A row for the class token, then one for each patch; bicubic for other sizes where a call asks for it."""
    keys.find("note", "image_size", ON_REQUEST)
    return images(keys, square(keys, f"{PATCHES}.weight"), CLASS)


@family("blip_vision_model", "blip_2_vision_model", "instructblip_vision_model", "instructblipvideo_vision_model")
def _(keys: Keys) -> PositionSpec:
    """CLIP's, stored as a parameter of its own."""
    keys.find("note", "image_size", ON_REQUEST)
    keys.find(
        "warning",
        "image_size",
        "smaller images are not refused: without that request their patches read the first "
        "rows of the table, as if they stood elsewhere",
    )
    return images(keys, square(keys, PATCHES), CLASS)


@family("flava_image_model")
def _(keys: Keys) -> PositionSpec:
    """ViT's."""
    keys.find("note", "image_size", ON_REQUEST)
    return images(keys, patch_table(keys, mode="bicubic"), CLASS)


@family("internvl_vision", "qianfan_ocr_vision")
def _(keys: Keys) -> PositionSpec:
    """ViT's, read at the size of every image; nothing at all where use_absolute_position_embeddings is false."""
    if not keys.flag("use_absolute_position_embeddings"):
        return tower(keys, [], coordinates="none: use_absolute_position_embeddings is false")
    return images(keys, patch_table(keys, mode="bicubic"), CLASS)


@family("janus_vision_model")
def _(keys: Keys) -> PositionSpec:
    """No class token."""
    keys.find("note", "image_size", ON_REQUEST)
    return images(keys, square(keys, f"{PATCHES}.weight", prefix=0))


@family("groupvit_vision_model")
def _(keys: Keys) -> PositionSpec:
    """No class token, one size of image. Groups, which join in every stage, have learned vectors and no order."""
    keys.find("note", "image_size", "images must have this size: no call can ask for the table to be interpolated")
    depths = keys.numbers("depths", (6, 3, 3))
    if not all(isinstance(depth, int) and depth > 0 for depth in depths):
        raise ConfigError(f"{keys.where('depths')}: expected whole numbers from 1, got {list(depths)}")
    if keys.whole("num_hidden_layers") != sum(depths):
        keys.find(
            "warning", "num_hidden_layers", f"{keys.whole('num_hidden_layers')}, but depths make {sum(depths)} layers"
        )
    where = f"{RASTER}; group tokens behind the patches have none"
    return stack_of(
        keys, [Layer(causal=False)] * sum(depths), embedding=[patch_table(keys, prefix=0)], length=None, coordinates=where
    )


@family("ovis2_vision")
def _(keys: Keys) -> PositionSpec:
    """No class token, and one size of image."""
    keys.find("note", "image_size", "images must have this size: the table is never interpolated")
    return tower(keys, [], embedding=[square(keys, f"{PATCHES}.weight", prefix=0, mode=None)], coordinates=RASTER)


@family("xclip_vision_model")
def _(keys: Keys) -> PositionSpec:
    """CLIP's for each frame by itself; a message token of each frame, which asks those of the others, has no position."""
    keys.find("note", "image_size", ON_REQUEST)
    keys.find("note", "num_frames", "frames exchange messages in every layer, with nothing that tells which came first")
    return images(keys, square(keys, f"{PATCHES}.weight"), f"{CLASS}; every frame a sequence of its own")


@family("tipsv2_vision_model")
def _(keys: Keys) -> PositionSpec:
    """DINOv2's with registers, but bilinear and antialiased."""
    use = patch_table(keys, mode="bilinear", antialias=True)
    return images(keys, use, f"{CLASS}, then the registers, at (-1, -1), which get nothing")


def square(keys: Keys, weight: str, *, prefix: int = 1, mode: str | None = "bicubic") -> Use:
    """The grid of a tower that knows square images and square patches only."""
    if pair(keys, "image_size")[0] != pair(keys, "image_size")[1]:
        raise ConfigError(f"{keys.where('image_size')}: the code knows square images only, got {keys.get('image_size')}")
    return patch_table(keys, weight, prefix=prefix, **({"mode": mode} if mode else {}))


# --- text -------------------------------------------------------------------------------------------------------------

WORDS = "embeddings.position_embedding.weight"


@family(
    "clip_text_model",
    "clipseg_text_model",
    "groupvit_text_model",
    "metaclip_2_text_model",
    "owlv2_text_model",
    "owlvit_text_model",
    "xclip_text_model",
)
def _(keys: Keys) -> PositionSpec:
    """A word sees those before it."""
    return words(keys, table(keys, WORDS), causal=True)


@family("align_text_model", "chinese_clip_text_model", "flava_text_model")
def _(keys: Keys) -> PositionSpec:
    """BERT's."""
    return words(keys, table(keys, "embeddings.position_embeddings.weight"))


@family("blip_text_model")
def _(keys: Keys) -> PositionSpec:
    """BERT's; one way or both as each call says, both by default: is_decoder is not what decides."""
    keys.find(
        "note",
        "is_decoder",
        "each call of the text model says which way it looks; as a tower both ways, as the one "
        "that writes captions and answers only back",
    )
    return words(keys, table(keys, "embeddings.position_embeddings.weight"))


@family("altclip_text_model", "bridgetower_text_model")
def _(keys: Keys) -> PositionSpec:
    """RoBERTa's."""
    use = padded_table(keys)
    causal = bool(keys.flag("is_decoder", False))
    return words(keys, use, causal=causal, length=int(dict(use.arguments)["max_positions"]), coordinates=COUNTED)


def words(keys: Keys, use: Use, causal: bool = False, **about: int | str) -> PositionSpec:
    return stack_of(keys, [Layer(causal=causal)] * keys.whole("num_hidden_layers"), embedding=[use], **about)  # type: ignore[arg-type]
