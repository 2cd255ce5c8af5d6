"""UDOP: T5 with boxes: tables of their corners, and a bias by text position, horizontal and vertical distance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.families.layoutlm import embedded, in_scores
from posenc.configs.families.t5 import BLOCK, bucketed, stack
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Use, Weight
from posenc.support.languages import Words

# What the code's classes assume: how distances are scaled, and where the last bucket begins.
ASSUMED = {"1d": (1, 128), "horizontal": (100, 100), "vertical": (100, 100)}

AXIS = {"1d": say("position"), "horizontal": say("middle x of the box"), "vertical": say("middle y of the box")}


@family("udop")
def udop(keys: Keys) -> PositionSpec:
    """Boxes are real numbers from 0 to 1. Text comes first, then patches without text.

    Boxes of text are merged with their patch.
    """
    rows = keys.whole("max_2d_position_embeddings", 1024)
    cells = "encoder.cell_2d_embedding."
    corners = Use(
        "encodings.bases.learned_axes.LearnedAxes",
        (("d_model", keys.whole("d_model")), ("max_positions", (rows, rows)), ("axes", 4), ("shares", (0, 1, 0, 1))),
        (
            ("d_model", keys.said_by("d_model")),
            ("max_positions", keys.said_by("max_2d_position_embeddings")),
            ("axes", "constant of the code"),
            ("shares", "constant of the code"),
        ),
        (
            Weight("axis_tables.0", f"{cells}x_position_embeddings.weight"),
            Weight("axis_tables.1", f"{cells}y_position_embeddings.weight"),
        ),
    )
    bias, axes = _bias(keys)
    keys.warning(
        "relative_attention_num_buckets",
        say(
            "for the decoder only: the encoder uses relative_bias_args, or its classes' 32 buckets "
            "and distances; its own T5 table is not read"
        ),
    )
    where = say("⌊{rows}·(x0, y0, x1, y1)⌋ of boxes clipped to 0 … 1", rows=rows - 1)
    encoder = replace(stack(keys, "encoder", bias), coordinates=in_scores(*axes))
    weight = BLOCK.format(side="decoder", layer=0, attention="SelfAttention")
    decoder = stack(keys, "decoder", bucketed(keys, weight, both_ways=False))
    return PositionSpec(keys.family, parts=(embedded(keys, "boxes", corners, where), encoder, decoder))


def _bias(keys: Keys) -> tuple[Use, list[Words]]:
    terms: Any = keys.get("relative_bias_args", [{"type": kind} for kind in ASSUMED])
    if (
        not isinstance(terms, (list, tuple))
        or not terms
        or any(not isinstance(bias, dict) or bias.get("type") not in ASSUMED for bias in terms)
    ):
        raise ConfigError(
            f"{keys.where('relative_bias_args')}: expected objects with a type of {', '.join(ASSUMED)}, got {terms!r}"[:200]
        )
    for bias in terms:
        if bias.get("prefix_bucket") or bias.get("bidirectional") is False:
            keys.error("relative_bias_args", say("prefix_bucket and one-directional buckets are not supported"))
    buckets = tuple(bias.get("relative_attention_num_buckets", 32) for bias in terms)
    scaling = tuple(bias.get("scaling_factor", ASSUMED[bias["type"]][0]) for bias in terms)
    furthest = tuple(bias.get("max_distance", ASSUMED[bias["type"]][1]) for bias in terms)
    arguments = (
        ("n_heads", keys.whole("num_heads")),
        ("n_buckets", buckets),
        ("max_distance", furthest),
        ("scaling", scaling),
        ("scale", 1.0),
    )
    said_by = (
        ("n_heads", keys.said_by("num_heads")),
        *((name, "relative_bias_args, or constants of the code") for name in ("n_buckets", "max_distance", "scaling")),
        ("scale", "constant of the code"),
    )
    weights = tuple(
        Weight(f"axis_tables.{n}", f"encoder.relative_bias.biases.{n}.relative_attention_bias.weight")
        for n in range(len(terms))
    )
    return Use("encodings.t5_axes.T5Axes", arguments, said_by, weights), [AXIS[bias["type"]] for bias in terms]
