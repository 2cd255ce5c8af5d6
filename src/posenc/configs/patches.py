"""Helpers for vision encoders: axial RoPE over row and column, and a learned vector for each cell of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

from posenc.configs.coordinates import SAME_FRAMES
from posenc.configs.errors import ConfigError
from posenc.configs.family import stack_of
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import Words, clauses

Maps = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
ROWS_COLUMNS: Maps = (("axial", (("order", (0, 1)),)),)

ROW_COLUMN = say("(row, column)")
WITH_SIZE = say("(row, column, height, width)")


def in_blocks(read: Words = ROW_COLUMN, size: str = "spatial_merge_size × spatial_merge_size") -> Words:
    """The coordinates `read` of patches that are ordered by blocks of `size`."""
    return say("{read} of the patch, from 0; patches are in blocks of {size}, each row by row", read=read, size=size)


BLOCKS = clauses(in_blocks(), SAME_FRAMES)
RASTER = say("(row, column) of the patch, from 0, row by row")
WITH_IMAGE = clauses(RASTER, say("with (height, width) of the image"))
WITHIN = say("(row, column) of the patch within its stage, from 0, row by row")
SIZED = say("the learned grid reads (row, column, height, width), rotation (row, column)")

MOST_NUMBERS = 2**40  # in one table


def even_head(keys: Keys, width: str = "hidden_size", heads: str = "num_attention_heads", multiple: int = 4) -> int:
    """Channels of a head. Raises ConfigError unless two axes can share them, each in halves."""
    d_model, n_heads = keys.whole(width), keys.whole(heads)
    if d_model % n_heads or (d_model // n_heads) % multiple:
        raise ConfigError(
            f"{keys.spelt(width)}: {d_model} for {keys.spelt(heads)}={n_heads}; expected heads of a multiple "
            f"of {multiple} channels"
        )
    return int(d_model // n_heads)


def axial(
    keys: Keys, d_head: int, *, width: int | None = None, maps: Maps = ROWS_COLUMNS, layout: str = "half", **options: Any
) -> Use:
    """RoPE of rope_type "axial", the only type that these encoders support.

    `width` channels for each axis, by default half. Published files never give a base: it is the class's, 10 000 for most.
    """
    settings = keys.table("rope_scaling") or keys.table("rope_parameters")
    silent = settings.get("rope_theta") is None and not keys.has("rope_theta")
    assumed = keys.facts["base"] if silent else None
    use = rope(
        keys,
        d_head=d_head,
        rotary_dim=d_head // 2 if width is None else width,
        layout=layout,
        maps=maps,
        base=assumed,
        **options,
    )
    if use is None or use.rotation is None or use.rotation.kind != "rotary":
        raise ConfigError(
            f"{keys.where('rope_parameters')}.rope_type: expected 'axial', the only type that this encoder supports"
        )
    if not silent:
        return use
    default = ("base", f"default of {keys.facts['class']}")
    return Use(use.encoding, use.arguments, tuple(default if pair[0] == "base" else pair for pair in use.said_by))


def grid(
    keys: Keys,
    weight: str,
    height: int,
    width: int,
    origin: str,
    *,
    d_model: str = "hidden_size",
    reshape: bool = False,
    transpose: bool = False,
    **options: Any,
) -> Use:
    """A LearnedGrid; `origin` names the keys of its size, `options` go to it."""
    arguments = {"d_model": keys.whole(d_model), "height": height, "width": width} | options
    if min(height, width) < 1 or height * width * arguments["d_model"] > MOST_NUMBERS:
        raise ConfigError(f"{origin}: {height} × {width} cells are too many or too few for a table")
    said_by = [("d_model", keys.said_by(d_model)), ("height", origin), ("width", origin)]
    said_by += [(name, "constant of the code") for name in options]
    return Use(
        "encodings.bases.learned_grid.LearnedGrid",
        tuple(arguments.items()),
        tuple(said_by),
        (Weight("table", weight, transpose, reshape),),
    )


def side_of(keys: Keys, image: str = "image_size", patch: str = "patch_size") -> tuple[int, int, str]:
    """Rows and columns of patches of an image of the configured size, and the keys that give them."""
    high, wide = pair(keys, image)
    patch_high, patch_wide = pair(keys, patch)
    return high // patch_high, wide // patch_wide, f"{keys.said_by(image)} / {keys.said_by(patch)}"


def square_side_of(keys: Keys, image: str = "image_size", patch: str = "patch_size") -> tuple[int, int, str]:
    """As `side_of`. Raises ConfigError unless the image is square."""
    if len(set(pair(keys, image))) > 1:
        raise ConfigError(f"{keys.where(image)}: the code supports square images only, got {keys.get(image)}")
    return side_of(keys, image, patch)


def square_side(keys: Keys, key: str) -> tuple[int, int, str]:
    """The side of a square table with this number of rows. Raises ConfigError if it is not square."""
    rows = keys.whole(key)
    if isqrt(rows) ** 2 != rows:
        raise ConfigError(f"{keys.where(key)}: {rows} rows are not a square grid, which the code requires")
    return isqrt(rows), isqrt(rows), keys.said_by(key)


def pair(keys: Keys, name: str) -> tuple[int, int]:
    """A size that is one number, or two: (height, width)."""
    value = keys.get(name)
    if isinstance(value, (list, tuple)):
        high, wide = keys.numbers(name, length=2)
        if not all(isinstance(size, int) and size > 0 for size in (high, wide)):
            raise ConfigError(f"{keys.where(name)}: expected whole numbers from 1, got {list(value)}")
        return high, wide
    return keys.whole(name), keys.whole(name)


def tower(
    keys: Keys,
    uses: Sequence[Use],
    *,
    embedding: Sequence[Use] = (),
    layers: str = "num_hidden_layers",
    kinds: Sequence[str] | None = None,
    length: int | None = None,
    **about: Any,
) -> PositionSpec:
    """A stack of layers with full attention among patches."""
    kinds = ["full_attention"] * keys.whole(layers) if kinds is None else kinds
    stack = [Layer(tuple(uses), kind, causal=False) for kind in kinds]
    return stack_of(keys, stack, embedding=embedding, length=length, **about)
