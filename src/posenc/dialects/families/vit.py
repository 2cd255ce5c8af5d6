"""A learned vector for every patch of an image, and for the tokens that stand before them: ViT and its kin."""

from __future__ import annotations

from typing import Any

from posenc.dialects.errors import ConfigError
from posenc.dialects.family import family
from posenc.dialects.keys import Keys
from posenc.dialects.patches import RASTER, grid, pair, side_of, tower
from posenc.dialects.spec import PositionSpec, Use, Weight

TABLE = "embeddings.position_embeddings"
SIZED = "; (row, column, height, width) for images of another size"
ON_REQUEST = "images of another size only where a call says interpolate_pos_encoding=True"


def patch_table(keys: Keys, weight: str = TABLE, *, prefix: int = 1, d_model: str = "hidden_size", **options: Any) -> Use:
    """The grid of the image that the model was made for, `prefix` rows for other tokens before it."""
    height, width, said = side_of(keys)
    if height != width and options.get("mode") is not None:
        keys.find(
            "warning",
            "image_size",
            f"{height} × {width} patches: the code reads the table as a square where an "
            "image has another size, and fails or mixes rows up",
        )
    more = ({"prefix": prefix} if prefix else {}) | options
    return grid(keys, weight, height, width, said, d_model=d_model, reshape=True, **more)


def images(keys: Keys, table: Use, before: str = "", **about: Any) -> PositionSpec:
    where = RASTER + SIZED + (f"; {before}" if before else "")
    return tower(keys, [], embedding=[table], coordinates=where, **about)


CLASS = "the class token stands first, at (-1, 0)"


@family("vit", "vit_msn")
def _(keys: Keys) -> PositionSpec:
    keys.find("note", "image_size", ON_REQUEST)
    return images(keys, patch_table(keys, mode="bicubic"), CLASS)


@family("deit")
def _(keys: Keys) -> PositionSpec:
    """A row each for class token and distillation token."""
    keys.find("note", "image_size", ON_REQUEST)
    return images(
        keys, patch_table(keys, prefix=2, mode="bicubic"), "class and distillation token first, at (-1, 0), (-1, 1)"
    )


@family("ijepa")
def _(keys: Keys) -> PositionSpec:
    """No class token."""
    keys.find("note", "image_size", ON_REQUEST)
    return images(keys, patch_table(keys, prefix=0, mode="bicubic"))


@family("dinov2")
def _(keys: Keys) -> PositionSpec:
    """Images of any size: the table is always read at theirs."""
    return images(keys, patch_table(keys, mode="bicubic"), CLASS)


@family("dinov2_with_registers")
def _(keys: Keys) -> PositionSpec:
    """Antialiased, unlike DINOv2; registers come in after the sum and get nothing."""
    table = patch_table(keys, mode="bicubic", antialias=True)
    return images(keys, table, f"{CLASS}, then the registers, at (-1, -1), which get nothing")


@family("pixio")
def _(keys: Keys) -> PositionSpec:
    """Eight class tokens, a row each."""
    count = keys.whole("n_cls_tokens", 8)
    return images(
        keys, patch_table(keys, prefix=count, mode="bicubic"), f"{count} class tokens first, at (-1, 0), (-1, 1), …"
    )


@family("vitpose_backbone")
def _(keys: Keys) -> PositionSpec:
    """Images of one size; the class token's row is added to every patch, and there is no class token."""
    keys.find(
        "note",
        "image_size",
        "images must have this size; the first row of the table, the class token's in other "
        "families, is added to every patch alike",
    )
    return tower(keys, [], embedding=[patch_table(keys)], coordinates=RASTER)


@family("vivit")
def _(keys: Keys) -> PositionSpec:
    """One row for each tubelet of the one size of video there is, frame by frame; the class token's is the first."""
    sizes, frames = keys.numbers("tubelet_size", (2, 16, 16), length=3), keys.whole("num_frames", 32)
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ConfigError(f"{keys.where('tubelet_size')}: expected whole numbers from 1, got {list(sizes)}")
    high, wide = pair(keys, "image_size")
    rows = (frames // sizes[0]) * (high // sizes[1]) * (wide // sizes[2]) + 1
    arguments = (("d_model", keys.whole("hidden_size")), ("max_positions", rows))
    said = (
        ("d_model", keys.said_by("hidden_size")),
        ("max_positions", f"{keys.said_by('num_frames')}, image_size, tubelet_size"),
    )
    keys.find(
        "warning",
        "image_size",
        "videos must have this size: interpolate_pos_encoding takes the tubelets of all "
        "frames for one square image, and fails",
    )
    table = Use("encodings.learned.Learned", arguments, said, (Weight("table", TABLE, reshape=True),))
    return tower(
        keys,
        [],
        embedding=[table],
        coordinates="0 for the class token, then tubelets from 1: frame by frame, each row by row",
    )
