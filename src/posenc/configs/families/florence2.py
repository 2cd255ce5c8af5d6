"""Florence-2: an image encoder with a depthwise convolution before each part of each layer, and its projector.

The projector adds learned column and row vectors, concatenated, and a sinusoid of the frame, which is always frame 0."""

from __future__ import annotations

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.errors import ConfigError
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.patches import WITHIN
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import Words, clauses


@family("florence_vision")
def florence_vision(keys: Keys) -> PositionSpec:
    """Each block attends within windows, then across channels, where positions have no effect."""
    widths, depths = whole(keys, "embed_dim"), whole(keys, "depths")
    side = keys.whole("window_size")
    layers = []
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        for block in range(depth):
            for kind, window in (("spatial", side * side), ("channel", None)):
                path = f"blocks.{stage}.{block}.{kind}_block"
                uses = (
                    _neighbours(width, f"{path}.conv1", say("before attention")),
                    _neighbours(width, f"{path}.conv2", say("before the feed-forward part")),
                )
                layers.append(
                    Layer(uses, "window_attention" if kind == "spatial" else "channel_attention", window, causal=False)
                )
    keys.note(
        "window_size",
        say(
            "windows of {side} × {side} patches; border windows are padded, and padding is attended to. Only "
            "the convolutions depend on positions",
            side=side,
        ),
    )
    rows, frames = keys.whole("max_position_embeddings"), keys.whole("max_temporal_embeddings")
    keys.note(
        "max_position_embeddings",
        say(
            "{rows} rows and columns, {frames} frames: read by the projector of the outer model, not here",
            rows=rows,
            frames=frames,
        ),
    )
    return PositionSpec(keys.family, layers=tuple(layers), coordinates=WITHIN)


def _neighbours(width: int, conv: str, note: Words) -> Use:
    weights = (Weight("weight", f"{conv}.weight", reshape=True), Weight("constant", f"{conv}.bias"))
    said_by = (("d_model", "embed_dim"), ("kernel_size", "constant of the code"))
    return Use("encodings.conditional.Conditional", (("d_model", width), ("kernel_size", 3)), said_by, weights, note)


def whole(keys: Keys, name: str) -> tuple[int, ...]:
    """A whole number for each stage."""
    values = keys.numbers(name)
    if not all(isinstance(value, int) and value > 0 for value in values):
        raise ConfigError(f"{keys.where(name)}: expected whole numbers from 1, got {list(values)}")
    return tuple(values)


@family("florence2")
def florence2(keys: Keys) -> PositionSpec:
    """The projector's encodings are the uses of the only layer here; it has no attention."""
    vision = keys.section("vision_config")
    width, rows = whole(vision, "embed_dim")[-1], vision.whole("max_position_embeddings")
    half = width // 2
    table = (
        ("d_model", width),
        ("max_positions", (rows, rows)),
        ("axes", 3),
        ("reads", (1, 0)),
        ("combine", "concat"),
        ("widths", (width - half, half)),
    )
    said_by = (("d_model", vision.said_by("embed_dim")), ("max_positions", vision.said_by("max_position_embeddings")))
    place = Use(
        "encodings.bases.learned_axes.LearnedAxes",
        table,
        said_by,
        (
            Weight("axis_tables.0", "image_position_embed.column_embeddings.weight"),
            Weight("axis_tables.1", "image_position_embed.row_embeddings.weight"),
        ),
    )
    time = Use(
        "encodings.sinusoidal.Sinusoidal",
        (("d_model", width), ("axes", 3), ("reads", (2,))),
        (("d_model", vision.said_by("embed_dim")), ("base", "constant of the code")),
    )
    vision.whole("max_temporal_embeddings")
    keys.note("vision_config.max_temporal_embeddings", say("only frame 0 is read: every patch gets [0, 1, 0, 1, …]"))
    keys.note("vision_config", say("the mean of all patches precedes them; it is computed after positions are added"))
    layer = Layer((place, time), "projector", causal=False)
    return PositionSpec(
        keys.family,
        layers=(layer,),
        parts=parts(keys, "text_config", "vision_config"),
        coordinates=clauses(LIKE_TEXT, say("in the projector (row, column, frame), frame 0")),
    )
