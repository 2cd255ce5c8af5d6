"""PP-DocLayout V2: RT-DETR's detector, then a model that orders the boxes."""

from __future__ import annotations

from posenc.configs.families.detr import CONSTANT
from posenc.configs.families.roberta import TOKENS, padded_table
from posenc.configs.families.rt_detr import hybrid_encoder
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

# What the class of the section assumes, which has no model type of its own.
ASSUMED = {
    "hidden_size": 512,
    "num_hidden_layers": 6,
    "max_position_embeddings": 514,
    "pad_token_id": 1,
    "max_2d_position_embeddings": 1024,
    "coordinate_size": 171,
    "shape_size": 170,
    "has_relative_attention_bias": False,
    "has_spatial_attention_bias": True,
}


@family("pp_doclayout_v2")
def pp_doclayout_v2(keys: Keys) -> PositionSpec:
    """RT-DETR's detector, then a model of reading order over the detected boxes."""
    order = keys.section("reading_order_config", "pp_doclayout_v2_reading_order")
    order.facts = {"class": "PPDocLayoutV2ReadingOrderConfig", "names": {}, "defaults": ASSUMED, "parts": {}, "base": None}
    return PositionSpec(
        keys.family, parts=(*hybrid_encoder(keys), reading_order(order)), coordinates=say("each part's own")
    )


def reading_order(keys: Keys) -> PositionSpec:
    """RoBERTa's table, and concatenated tables of corners and sizes through a projection (LayoutLM)."""
    corner, size, rows = (keys.whole(name) for name in ("coordinate_size", "shape_size", "max_2d_position_embeddings"))
    weights = tuple(
        Weight(f"axis_tables.{n}", f"embeddings.{axis}_position_embeddings.weight") for n, axis in enumerate("xyhw")
    )
    arguments = (
        ("d_model", 4 * corner + 2 * size),
        ("max_positions", (rows,) * 4),
        ("axes", 6),
        ("combine", "concat"),
        ("shares", (0, 1, 0, 1, 2, 3)),
        ("widths", (corner,) * 4 + (size,) * 2),
    )
    said_by = (
        ("d_model", f"4 · {keys.said_by('coordinate_size')} + 2 · {keys.said_by('shape_size')}"),
        ("max_positions", keys.said_by("max_2d_position_embeddings")),
        ("axes", CONSTANT),
        ("combine", CONSTANT),
        ("shares", CONSTANT),
        ("widths", "coordinate_size, shape_size"),
    )
    tables = Use(
        "encodings.bases.learned_axes.LearnedAxes",
        arguments,
        said_by,
        weights,
        say("goes through spatial_proj before it is added"),
    )
    corners = say("(x0, y0, x1, y1, height, width) of the box, from 0 to 1000: with_sizes(boxes)")
    boxes_of = PositionSpec(
        keys.family, part="boxes", layers=(Layer((tables,), "boxes", causal=False),), coordinates=corners
    )
    count = keys.whole("num_hidden_layers")
    if keys.flag("has_relative_attention_bias", False):
        keys.error("has_relative_attention_bias", say("the code gives these layers no positions, and fails"))
    if keys.flag("has_spatial_attention_bias", True):
        keys.warning(
            "has_spatial_attention_bias",
            say("scores get a network of sinusoids of the distances and sizes of two boxes; posenc has no encoding for it"),
        )
    table = padded_table(keys)
    layers = tuple(Layer((table,) if n == 0 else (), causal=False) for n in range(count))
    remarks = tuple(keys.remarks)
    return PositionSpec(
        keys.family,
        part="reading_order_config",
        layers=layers,
        parts=(boxes_of,),
        remarks=remarks,
        coordinates=TOKENS,
        d_model=keys.whole("hidden_size"),
    )
