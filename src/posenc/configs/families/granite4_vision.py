"""Granite 4 Vision: projectors whose queries attend to windows of patches, with a learned table for each window."""

from __future__ import annotations

import re

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.errors import ConfigError
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import clauses


@family("granite4_vision")
def granite4_vision(keys: Keys) -> PositionSpec:
    """The layers here are projectors: queries attend to the patches of their window. There is one for every pair of
    deepstack_layer_map, then four for the corners of blocks."""
    rate = keys.text("downsample_rate")
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", rate)
    if not match:
        raise ConfigError(
            f"{keys.where('downsample_rate')}: expected sides of queries and window such as '4/8', got {rate!r}"
        )
    side, pairs = int(match[2]), keys.get("deepstack_layer_map")
    if not isinstance(pairs, (list, tuple)):
        raise ConfigError(
            f"{keys.where('deepstack_layer_map')}: expected a list of [tower layer, text layer], got {pairs!r}"
        )
    vision = keys.section("vision_config")
    width = vision.whole("hidden_size")
    names = [f"layerwise_projectors.{n}" for n in range(len(pairs))] + [f"spatial_projectors.{n}" for n in range(4)]
    layers = []
    for name in names:
        use = Use(
            "encodings.bases.learned_grid.LearnedGrid",
            (("d_model", width), ("height", side), ("width", side)),
            (("d_model", vision.said_by("hidden_size")), ("height", "downsample_rate"), ("width", "downsample_rate")),
            (Weight("table", f"{name}.image_positions", reshape=True),),
        )
        layers.append(Layer((use,), "projector", side * side, causal=False))
    keys.note(
        "downsample_rate",
        say("windows of {side} × {side} patches, counted from 0 in each; the queries have no positions", side=side),
    )
    inside = parts(keys, "text_config", "vision_config", "qformer_config")
    return PositionSpec(
        keys.family,
        layers=tuple(layers),
        parts=inside,
        coordinates=clauses(LIKE_TEXT, say("in projectors (row, column) of the patch in its window")),
    )
