"""YOLOS and EoMT: ViT's table with detection tokens, or without rows for special tokens."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import OTHER_SIZES
from posenc.configs.families.vit import patch_table
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, grid, side_of, tower
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Use, Weight
from posenc.support.languages import clauses


@family("yolos")
def yolos(keys: Keys) -> PositionSpec:
    """Detection tokens come last and have rows; a further table is added after every layer except the last."""
    count, first = keys.whole("num_detection_tokens", 100), patch_table(keys, prefix=1)
    arguments = (*first.arguments[:3], ("prefix", count + 1), ("mode", "bicubic"))
    origins = tuple(pair for pair in first.said_by if pair[0] != "prefix")
    origins += (
        ("prefix", f"{keys.said_by('num_detection_tokens')}, and the class token"),
        ("mode", "constant of the code"),
    )

    def table(weight: str, part: tuple[int, int] | None = None) -> Use:
        return Use(first.encoding, arguments, origins, (Weight("table", weight, reshape=True, part=part, last=count),))

    where = clauses(
        RASTER, OTHER_SIZES, say("the class token first, at (-1, {count}), detection token k last, at (-1, k)", count=count)
    )
    spec = tower(keys, [], embedding=[table("embeddings.position_embeddings")], coordinates=where)
    if not keys.flag("use_mid_position_embeddings"):
        return spec
    keys.note("use_mid_position_embeddings", say("the tables of layers 1, 2, … are added to the input of these layers"))
    middle = "interpolation.mid_position_embeddings"
    return replace(
        spec,
        layers=tuple(
            replace(layer, uses=(table(middle, (0, n - 1)),)) if n else layer for n, layer in enumerate(spec.layers)
        ),
    )


@family("eomt", "videomt")
def eomt(keys: Keys) -> PositionSpec:
    """DINOv2's encoder without rows for class token and registers; queries that join later have none either."""
    height, width, origin = side_of(keys)
    keys.note("image_size", say("images must have this size: the table is never interpolated"))
    table = grid(keys, "embeddings.position_embeddings.weight", height, width, origin)
    keys.note("num_blocks", say("queries join before the last num_blocks layers, without positions"))
    where = clauses(RASTER, say("class token and registers come first, at (-1, -1), without positions"))
    return tower(keys, [], embedding=[table], coordinates=where)
