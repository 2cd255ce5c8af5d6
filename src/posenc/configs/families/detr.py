"""DETR and similar detectors: sinusoids of pixel positions are added to queries and keys in every layer.

Object queries get learned vectors, or sinusoids of their boxes. Values get nothing: `embed` gives the input of the
query and key projections."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import Words, clauses

PIXELS = say("(row, column) among non-padding cells, from 1, divided by the last one, times 2π: Positions.pixels")

CENTRED = say(
    "centre (row, column) among non-padding cells, divided by the last one, times 2π: Positions.pixels(centred=True)"
)

LEVEL = say("a learned vector for each feature map, level_embed, is added with the sinusoids")

LEVELS = say("each feature map separately, one after the other")

CELLS = say("(row, column) of the cell, from 0 to 49")

QUERIES = say("the index of the object query")

CONSTANT = "constant of the code"


def sine(
    keys: Keys, width: str, *, note: Words | None = None, origins: dict[str, str] | None = None, **options: Any
) -> Use:
    """Half of the channels for the row, half for the column; sines and cosines interleaved."""
    arguments = {"d_model": keys.whole(width), "axes": 2} | options
    who = {"d_model": keys.said_by(width), "base": CONSTANT} | dict.fromkeys(options, CONSTANT) | (origins or {})
    return Use("encodings.sinusoidal.Sinusoidal", tuple(arguments.items()), tuple(who.items()), note=note)


def learned(keys: Keys, width: str, weight: str, rows: str = "num_queries") -> Use:
    arguments = (("d_model", keys.whole(width)), ("max_positions", keys.whole(rows)))
    said_by = (("d_model", keys.said_by(width)), ("max_positions", keys.said_by(rows)))
    return Use("encodings.learned.Learned", arguments, said_by, (Weight("table", weight),))


def boxes(keys: Keys, width: str, axes: int, times: int = 1) -> Use:
    """Sinusoids of reference points: y, x, then width and height; a network maps them to what is added."""
    arguments = {"d_model": times * keys.whole(width), "axes": axes, "scale": 2 * pi, "reads": (1, 0, 2, 3)[:axes]}
    said_by = {"d_model": keys.said_by(width)} | dict.fromkeys(("axes", "scale", "reads", "base"), CONSTANT)
    return Use("encodings.sinusoidal.Sinusoidal", tuple(arguments.items()), tuple(said_by.items()))


def of_pixels(keys: Keys, weight: str, width: str = "d_model", **options: Any) -> tuple[Use, bool]:
    """Sinusoids, or (position_embedding_type "learned") tables of 50 rows and 50 columns, columns first.

    And True for sinusoids.
    """
    kind = keys.text("position_embedding_type", "sine", among=("sine", "learned"))
    if kind == "sine":
        return sine(keys, width, **options), True
    arguments = (("d_model", keys.whole(width)), ("max_positions", (50, 50)), ("reads", (1, 0)), ("combine", "concat"))
    said_by = (("d_model", keys.said_by(width)), *((name, CONSTANT) for name in ("max_positions", "reads", "combine")))
    weights = (
        Weight("axis_tables.0", f"{weight}.column_embeddings.weight"),
        Weight("axis_tables.1", f"{weight}.row_embeddings.weight"),
    )
    return Use("encodings.bases.learned_axes.LearnedAxes", arguments, said_by, weights), False


def stack(
    keys: Keys, part: str, uses: Sequence[tuple[str, Use | None]], count: str, where: Words, width: str = "d_model"
) -> PositionSpec:
    """`count` layers, each with the attentions in `uses`: (kind, what is added there)."""
    layers = tuple(Layer((use,) if use else (), kind, causal=False) for kind, use in uses) * keys.whole(count, least=0)
    return PositionSpec(keys.family, part=part, layers=layers, coordinates=where, d_model=keys.whole(width))


def backbone(keys: Keys, *others: str) -> tuple[PositionSpec, ...]:
    if not keys.has("backbone_config") and "backbone_config" not in keys.facts["parts"]:
        raise ConfigError(f"{keys.where('backbone_config')}: missing; it names the model that computes the features")
    return parts(keys, "backbone_config", *others)


def cross(where: Words) -> Words:
    return clauses(QUERIES, say("in queries_to_image, for its keys: {where}", where=where))


@family("detr", "table-transformer")
def detr(keys: Keys) -> PositionSpec:
    """A learned vector for each object query; vectors and sinusoids are added again in every layer."""
    use, sines = of_pixels(keys, "position_embedding")
    where = PIXELS if sines else CELLS
    query = learned(keys, "d_model", "query_position_embeddings.weight")
    encoder = stack(keys, "encoder", [("full_attention", use)], "encoder_layers", where)
    decoder = stack(keys, "decoder", [("queries", query), ("queries_to_image", use)], "decoder_layers", cross(where))
    return PositionSpec(keys.family, parts=(*backbone(keys), encoder, decoder), coordinates=where)


@family("maskformer")
def maskformer(keys: Keys) -> PositionSpec:
    """DETR's decoder on a convolutional pixel decoder."""
    inner = keys.section("decoder_config", "detr")
    query = learned(inner, "d_model", "queries_embedder.weight")
    kinds = [("queries", query), ("queries_to_image", sine(inner, "d_model"))]
    decoder = stack(inner, "decoder_config", kinds, "decoder_layers", cross(PIXELS))
    return PositionSpec(keys.family, parts=(*backbone(keys), decoder), coordinates=PIXELS)


@family("conditional_detr")
def conditional_detr(keys: Keys) -> PositionSpec:
    """Object queries attend by sinusoids of a reference point, which a network computes from their vectors."""
    use, sines = of_pixels(keys, "position_embedding")
    where = PIXELS if sines else CELLS
    query = learned(keys, "d_model", "query_position_embeddings.weight")
    encoder = stack(keys, "encoder", [("full_attention", use)], "encoder_layers", where)
    kinds = [("queries", query), ("queries_to_image", boxes(keys, "d_model", 2))]
    keys.note(
        "decoder_layers",
        say(
            "learned vectors and sinusoids have their own projections; from the second layer on the "
            "sinusoids are scaled by a network of the query. They are concatenated to the content, "
            "as for the image"
        ),
    )
    about = clauses(
        QUERIES,
        say("in queries_to_image, (x, y) of its reference point, from 0 to 1"),
        say("for the image {where}", where=where),
    )
    decoder = stack(keys, "decoder", kinds, "decoder_layers", about)
    return PositionSpec(keys.family, parts=(*backbone(keys), encoder, decoder), coordinates=where)


@family("dab-detr")
def dab_detr(keys: Keys) -> PositionSpec:
    """Two temperatures. Object queries are boxes, refined in each layer and encoded by sinusoids."""
    bases = (keys.number("temperature_height"), keys.number("temperature_width"))
    origins = {"base": f"{keys.said_by('temperature_height')}, {keys.said_by('temperature_width')}"}
    scale = keys.number("sine_position_embedding_scale", None)
    more = {"scale": scale / (2 * pi)} if scale is not None else {}
    image = sine(keys, "hidden_size", base=bases, origins=origins, **more)
    keys.note("encoder_layers", say("in every layer, a network of the content scales the sinusoids"))
    encoder = stack(keys, "encoder", [("full_attention", image)], "encoder_layers", PIXELS, "hidden_size")
    if keys.whole("query_dim") != 4:
        raise ConfigError(f"{keys.where('query_dim')}: expected 4, the only value that the class accepts")
    box = boxes(keys, "hidden_size", 4, times=2)
    keys.note(
        "decoder_layers",
        say(
            "a network of the sinusoids is added; in attention to the image, their first half, scaled "
            "by a network of the query and by the box size, is concatenated to the content"
        ),
    )
    kinds = [("queries", box), ("queries_to_image", box)]
    where = clauses(
        say("(x, y, width, height) of the query's box, from 0 to 1"), say("for the image {pixels}", pixels=PIXELS)
    )
    decoder = stack(keys, "decoder", kinds, "decoder_layers", where, "hidden_size")
    return PositionSpec(keys.family, parts=(*backbone(keys), encoder, decoder), coordinates=PIXELS)


@family("deformable_detr")
def deformable_detr(keys: Keys) -> PositionSpec:
    """Attention samples a few cells, chosen by a network of query and position; keys have no positions."""
    use, sines = of_pixels(keys, "position_embedding")
    where = clauses(CENTRED if sines else CELLS, LEVELS)
    keys.note("num_feature_levels", LEVEL)
    encoder = stack(keys, "encoder", [("deformable", use)], "encoder_layers", where)
    if keys.flag("two_stage", False):
        keys.note("two_stage", say("object queries come from a network of sinusoids of proposed boxes"))
        query, about = (boxes(keys, "d_model", 4, times=2), say("(x, y, width, height) of the proposed box, from 0 to 1"))
        plain = tuple(pair for pair in query.arguments if pair[0] != "reads")
        query = Use(query.encoding, plain, tuple(pair for pair in query.said_by if pair[0] != "reads"))
    else:
        arguments = (("d_model", 2 * keys.whole("d_model")), ("max_positions", keys.whole("num_queries")))
        said_by = (("d_model", f"2 · {keys.said_by('d_model')}"), ("max_positions", keys.said_by("num_queries")))
        weights = (Weight("table", "query_position_embeddings.weight"),)
        query = Use(
            "encodings.learned.Learned",
            arguments,
            said_by,
            weights,
            say("first half: added to queries; second half: content"),
        )
        about = QUERIES
    decoder = stack(keys, "decoder", [("queries", query), ("deformable", query)], "decoder_layers", about)
    return PositionSpec(keys.family, parts=(*backbone(keys), encoder, decoder), coordinates=where)


@family("grounding-dino", "mm-grounding-dino")
def grounding_dino(keys: Keys) -> PositionSpec:
    """Text beside the image; text positions count within each phrase, as sinusoids of 2π times the position."""
    base, key = keys.number("positional_embedding_temperature"), "positional_embedding_temperature"
    use, sines = of_pixels(keys, "position_embedding", base=base, origins={"base": keys.said_by(key)})
    where = clauses(PIXELS if sines else CELLS, LEVELS)
    keys.note("num_feature_levels", LEVEL)
    keys.warning(
        "max_text_len",
        say("text positions are whole numbers times 2π: the fastest sine is 0 and the fastest cosine 1 for all of them"),
    )
    text = Use(
        "encodings.sinusoidal.Sinusoidal",
        (("d_model", keys.whole("d_model")), ("scale", 2 * pi)),
        (("d_model", keys.said_by("d_model")), ("base", CONSTANT), ("scale", CONSTANT)),
    )
    kinds = [("image_and_text", None), ("text", text), ("deformable", use)]
    encoder = stack(
        keys,
        "encoder",
        kinds,
        "encoder_layers",
        clauses(where, say("text is counted from 0 in each phrase between . and ?")),
    )
    box = boxes(keys, "d_model", 4, times=2)
    kinds = [("queries", box), ("queries_to_text", box), ("deformable", box)]
    about = say("(x, y, width, height) of the query's box, from 0 to 1, through a network")
    decoder = stack(keys, "decoder", kinds, "decoder_layers", about)
    return PositionSpec(keys.family, parts=(*backbone(keys, "text_config"), encoder, decoder), coordinates=where)


@family("mask2former", "oneformer")
def mask2former(keys: Keys) -> PositionSpec:
    """A deformable pixel decoder; object queries attend to its feature maps in turn, within their masks."""
    first = keys.family == "mask2former"
    keys.note("encoder_layers", say("in the pixel decoder {level}", level=LEVEL))
    features = "feature_size" if first else "conv_dim"
    pixel = stack(
        keys, "pixel_decoder", [("deformable", sine(keys, features))], "encoder_layers", clauses(PIXELS, LEVELS), features
    )
    image, query = sine(keys, "hidden_dim"), learned(keys, "hidden_dim", "queries_embedder.weight")
    layers = keys.whole("decoder_layers") - 1
    keys.note("decoder_layers", say("the code builds {layers} layers, one fewer", layers=layers))
    kinds = [("queries_to_image", image), ("queries", query)]
    layers_of_decoder = tuple(Layer((use,), kind, causal=False) for kind, use in kinds) * layers
    decoder = PositionSpec(
        keys.family, part="decoder", layers=layers_of_decoder, coordinates=cross(PIXELS), d_model=keys.whole("hidden_dim")
    )
    if first:
        return PositionSpec(keys.family, parts=(*backbone(keys), pixel, decoder), coordinates=PIXELS)
    keys.note(
        "query_dec_layers",
        say(
            "further layers make the object queries; they read sinusoids of the finest map and the "
            "query vectors, except the last"
        ),
    )
    rows = (
        ("d_model", keys.whole("text_encoder_width", 256)),
        ("max_positions", keys.whole("text_encoder_context_length")),
    )
    said_by = (
        ("d_model", keys.said_by("text_encoder_width")),
        ("max_positions", keys.said_by("text_encoder_context_length")),
    )
    weights = (Weight("table", "text_encoder.positional_embedding"),)
    table = Use("encodings.learned.Learned", rows, said_by, weights)
    count = keys.whole("text_encoder_num_layers")
    causal = tuple(Layer((table,) if n == 0 else (), causal=True) for n in range(count))
    text = PositionSpec(keys.family, part="text_encoder", layers=causal, d_model=rows[0][1], trained_length=rows[1][1])
    return PositionSpec(keys.family, parts=(*backbone(keys), pixel, decoder, text), coordinates=PIXELS)
