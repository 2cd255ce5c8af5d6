"""ViT and similar: a learned vector for each patch of an image and for each special token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posenc.configs.coordinates import OTHER_SIZES
from posenc.configs.errors import ConfigError
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, grid, pair, side_of, tower
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Use, Weight
from posenc.support.languages import Words, clauses


@family("radio")
def radio(keys: Keys) -> PositionSpec:
    """The grid is interpolated to a square with the side of the longer side; the image uses its upper left part."""
    side = keys.whole("max_img_size", 2048) // keys.whole("patch_size")
    origin = f"{keys.said_by('max_img_size')} / {keys.said_by('patch_size')}"
    table = grid(keys, "embeddings.position_embedding", side, side, origin, mode="bilinear", reshape=True)
    return tower(
        keys,
        [],
        embedding=[table],
        coordinates=clauses(
            RASTER,
            say("with (longer side, longer side) of the image"),
            say("class and register tokens come first, at (-1, -1), without positions"),
        ),
    )


@family("dpt")
def dpt(keys: Keys) -> PositionSpec:
    """ViT interpolated bilinearly; or a backbone alone; or (is_hybrid) ViT on the features of a backbone."""
    hybrid = bool(keys.flag("is_hybrid"))
    if keys.has("backbone_config") and not hybrid:
        keys.note("backbone_config", say("depth and segmentation models are this backbone, without a ViT of their own"))
        return PositionSpec(keys.family, parts=parts(keys, "backbone_config"))
    spec = image_tower(keys, patch_table(keys, mode="bilinear"), CLASS)
    return replace(spec, parts=parts(keys, backbone_config="bit")) if hybrid else spec


@family("audio-spectrogram-transformer")
def audio_spectrogram_transformer(keys: Keys) -> PositionSpec:
    """Rows are frequencies, columns times; class and distillation token come first."""
    size = keys.whole("patch_size")
    high = (keys.whole("num_mel_bins", 128) - size) // keys.whole("frequency_stride") + 1
    wide = (keys.whole("max_length") - size) // keys.whole("time_stride") + 1
    table = grid(
        keys,
        "embeddings.position_embeddings",
        high,
        wide,
        "num_mel_bins, max_length, patch_size and strides",
        reshape=True,
        prefix=2,
    )
    keys.note("max_length", say("inputs must have this length: the table is never interpolated"))
    return tower(
        keys,
        [],
        embedding=[table],
        coordinates=say("(frequency row, time column) of the patch, row by row; class and distillation token first"),
    )


TABLE = "embeddings.position_embeddings"

ON_REQUEST = say("images of another size only if the call sets interpolate_pos_encoding=True")


def patch_table(keys: Keys, weight: str = TABLE, *, prefix: int = 1, d_model: str = "hidden_size", **options: Any) -> Use:
    """The grid for the image size of the configuration, with `prefix` rows for special tokens before it."""
    height, width, origin = side_of(keys)
    if height != width and options.get("mode") is not None:
        keys.warning(
            "image_size",
            say(
                "{height} × {width} patches: for other image sizes the code reads the table as a square, and "
                "fails or mixes up rows",
                height=height,
                width=width,
            ),
        )
    more = ({"prefix": prefix} if prefix else {}) | options
    return grid(keys, weight, height, width, origin, d_model=d_model, reshape=True, **more)


def image_tower(keys: Keys, table: Use, before: Words | None = None, **about: Any) -> PositionSpec:
    where = clauses(RASTER, OTHER_SIZES, *([before] if before else []))
    return tower(keys, [], embedding=[table], coordinates=where, **about)


CLASS = say("the class token comes first, at (-1, 0)")
REGISTERS = clauses(CLASS, say("the registers follow, at (-1, -1), without positions"))


@family("vit", "vit_msn")
def vit(keys: Keys) -> PositionSpec:
    keys.note("image_size", ON_REQUEST)
    return image_tower(keys, patch_table(keys, mode="bicubic"), CLASS)


@family("deit")
def deit(keys: Keys) -> PositionSpec:
    """A row each for class token and distillation token."""
    keys.note("image_size", ON_REQUEST)
    return image_tower(
        keys, patch_table(keys, prefix=2, mode="bicubic"), say("class and distillation token first, at (-1, 0) and (-1, 1)")
    )


@family("ijepa")
def ijepa(keys: Keys) -> PositionSpec:
    """No class token."""
    keys.note("image_size", ON_REQUEST)
    return image_tower(keys, patch_table(keys, prefix=0, mode="bicubic"))


@family("dinov2")
def dinov2(keys: Keys) -> PositionSpec:
    """The table is always interpolated to the size of the image."""
    return image_tower(keys, patch_table(keys, mode="bicubic"), CLASS)


@family("dinov2_with_registers")
def dinov2_with_registers(keys: Keys) -> PositionSpec:
    """Antialiased, unlike DINOv2; registers are inserted after the sum and have no positions."""
    table = patch_table(keys, mode="bicubic", antialias=True)
    return image_tower(keys, table, REGISTERS)


@family("pixio")
def pixio(keys: Keys) -> PositionSpec:
    """Eight class tokens, a row each."""
    count = keys.whole("n_cls_tokens", 8)
    return image_tower(
        keys,
        patch_table(keys, prefix=count, mode="bicubic"),
        say("{count} class tokens first, at (-1, 0), (-1, 1), …", count=count),
    )


@family("vitpose_backbone")
def vitpose_backbone(keys: Keys) -> PositionSpec:
    """One image size; the class token's row is added to every patch, and there is no class token."""
    keys.note(
        "image_size",
        say(
            "images must have this size; the first row of the table, the class token's in other families, "
            "is added to every patch"
        ),
    )
    return tower(keys, [], embedding=[patch_table(keys)], coordinates=RASTER)


@family("vivit")
def vivit(keys: Keys) -> PositionSpec:
    """One row for each tubelet, frame by frame, at one video size; the first row is the class token's."""
    sizes, frames = keys.numbers("tubelet_size", (2, 16, 16), length=3), keys.whole("num_frames", 32)
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ConfigError(f"{keys.where('tubelet_size')}: expected whole numbers from 1, got {list(sizes)}")
    high, wide = pair(keys, "image_size")
    rows = (frames // sizes[0]) * (high // sizes[1]) * (wide // sizes[2]) + 1
    arguments = (("d_model", keys.whole("hidden_size")), ("max_positions", rows))
    said_by = (
        ("d_model", keys.said_by("hidden_size")),
        ("max_positions", f"{keys.said_by('num_frames')}, image_size, tubelet_size"),
    )
    keys.warning(
        "image_size",
        say(
            "videos must have this size: interpolate_pos_encoding treats the tubelets of all frames "
            "as one square image, and fails"
        ),
    )
    table = Use("encodings.learned.Learned", arguments, said_by, (Weight("table", TABLE, reshape=True),))
    return tower(
        keys,
        [],
        embedding=[table],
        coordinates=say("0 for the class token, then tubelets from 1: frame by frame, each row by row"),
    )


@family("mgp-str")
def mgp_str(keys: Keys) -> PositionSpec:
    """Lines of text at one image size; a class token first."""
    if keys.flag("distilled", False):
        keys.error("distilled", say("the code makes a row for a second token that it never adds, and fails"))
    height, width, origin = side_of(keys)
    keys.note("image_size", say("images must have this size: the table is never interpolated"))
    use = grid(keys, "pos_embed", height, width, origin, prefix=1, reshape=True)
    return tower(keys, [], embedding=[use], coordinates=clauses(RASTER, CLASS))
