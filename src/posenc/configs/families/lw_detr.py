"""LW-DETR and RF-DETR: a windowed vision encoder, and a decoder that adds sinusoids of each query's box."""

from __future__ import annotations

import math

from posenc.configs.coordinates import NONE, OTHER_SIZES
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, grid, side_of, tower
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use
from posenc.support.languages import clauses

QUERY_BOXES = say("(x, y, width, height) of each query's box, from 0 to 1; the channels are those of y, x, width, height")


@family("lw_detr_vit")
def lw_detr_vit(keys: Keys) -> PositionSpec:
    """The table has a row for a class token that does not exist; windows do not change the numbering."""
    kinds = _window_kinds(keys, keys.numbers("window_block_indices", ()))
    if not keys.flag("use_absolute_position_embeddings", True):
        keys.error("use_absolute_position_embeddings", say("false: transformers cannot build such a model"))
        return tower(keys, [], kinds=kinds, coordinates=NONE)
    height, width, origin = side_of(keys, "pretrain_image_size")
    table = grid(keys, "embeddings.position_embeddings", height, width, origin, reshape=True, prefix=1)
    return tower(keys, [], embedding=[table], kinds=kinds, coordinates=clauses(RASTER, OTHER_SIZES))


@family("rf_detr_dinov2")
def rf_detr_dinov2(keys: Keys) -> PositionSpec:
    """Bicubic with antialiasing; each window has its own class token, all with the same vector."""
    count = keys.whole("num_hidden_layers")
    kinds = _window_kinds(keys, keys.numbers("window_block_indexes", tuple(range(count))))
    if keys.whole("num_windows", 4) > 1:
        keys.warning("num_windows", say("the code swaps height and width when it cuts windows: images must be square"))
    height, width, origin = side_of(keys)
    table = grid(keys, "embeddings.position_embeddings", height, width, origin, reshape=True, prefix=1, antialias=True)
    where = clauses(RASTER, say("the class token at (-1, 0)"), OTHER_SIZES)
    return tower(keys, [], embedding=[table], kinds=kinds, coordinates=where)


@family("lw_detr", "rf_detr")
def lw_detr(keys: Keys) -> PositionSpec:
    """A network of the sinusoids of each query's box is added to queries in every decoder layer."""
    width = keys.whole("d_model")
    arguments = (("d_model", 2 * width), ("axes", 4), ("reads", (1, 0, 2, 3)), ("scale", 2 * math.pi))
    boxes = Use(
        "encodings.sinusoidal.Sinusoidal",
        arguments,
        (("d_model", keys.said_by("d_model")), ("base", "constant of the code")),
    )
    keys.note("decoder_n_points", say("attention to the image samples around the box: no positions are added there"))
    kinds = ["queries", "queries_to_image"] * keys.whole("decoder_layers")
    layers = tuple(Layer((boxes,) if kind == "queries" else (), kind, causal=False) for kind in kinds)
    return PositionSpec(
        keys.family, layers=layers, parts=parts(keys, "backbone_config"), d_model=width, coordinates=QUERY_BOXES
    )


def _window_kinds(keys: Keys, windows: tuple[float, ...]) -> list[str]:
    count = keys.whole("num_hidden_layers")
    return ["window_attention" if n in windows else "full_attention" for n in range(count)]
