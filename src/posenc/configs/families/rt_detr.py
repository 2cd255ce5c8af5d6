"""RT-DETR, OmDet-Turbo and DEIMv2: sinusoids within single feature maps, queries from boxes."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.families.detr import backbone, sine, stack
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use

GRID = say("(row, column) of the cell, from 0")

COLUMNS = say("(i // height, i % height) for token i of a map: Positions.grid(width, height)")


@family("rt_detr", "rt_detr_v2", "d_fine", "pp_doclayout_v3", "pp_doclayout_v4", "omdet-turbo")
def rt_detr(keys: Keys) -> PositionSpec:
    """Sinusoids of row and column for the coarsest maps; object queries are boxes through a network."""
    return PositionSpec(keys.family, parts=hybrid_encoder(keys), coordinates=say("each part's own"))


def hybrid_encoder(keys: Keys) -> tuple[PositionSpec, ...]:
    """The specs of backbone, encoder (attention within single feature maps) and decoder."""
    omdet = keys.family == "omdet-turbo"
    base = keys.number("positional_encoding_temperature")
    origins = {"base": keys.said_by("positional_encoding_temperature")}
    use: Use | None = sine(keys, "encoder_hidden_dim", origins=origins, layout="sin_cos", base=base)
    if keys.get("eval_size", None) is not None:
        keys.warning("eval_size", say("if it is set, the code adds positions in training only"))
        use = None
    maps = keys.get("encoder_projection_indices" if omdet else "encode_proj_layers", [2])
    if not isinstance(maps, (list, tuple)):
        raise ConfigError(f"{keys.where('encode_proj_layers')}: expected a list of maps, got {maps!r}")
    kinds = [("full_attention", use)] * len(maps)
    if omdet:
        keys.warning(
            "encoder_projection_indices",
            say(
                "tokens are in row order, but the code counts cells in column order: for maps that are "
                "not square, positions are wrong"
            ),
        )
    encoder = stack(keys, "encoder", kinds, "encoder_layers", COLUMNS if omdet else GRID, "encoder_hidden_dim")
    count = "decoder_num_layers" if omdet else "decoder_layers"
    keys.note(count, say("a network of the query's box (four numbers) is added to queries in every layer"))
    where = say("none: a network of the query's box; deformable attention samples a few cells around it")
    names = ("text_config",) if omdet else ()
    decoder = stack(keys, "decoder", [("queries", None), ("deformable", None)], count, where, "d_model")
    return (*backbone(keys, *names), encoder, decoder)


@family("deimv2")
def deimv2(keys: Keys) -> PositionSpec:
    """Sinusoids of row and column for the encoder's attention over one map.

    The decoder adds a network of the queries' boxes.
    """
    width, base = keys.whole("encoder_hidden_dim", 256), keys.number("positional_encoding_temperature", 10000.0)
    said_by = (("d_model", keys.said_by("encoder_hidden_dim")), ("base", keys.said_by("positional_encoding_temperature")))
    arguments = (("d_model", width), ("base", base), ("layout", "sin_cos"), ("axes", 2))
    use = Use("encodings.sinusoidal.Sinusoidal", arguments, said_by)
    if keys.get("eval_size", None) is not None:
        keys.error("eval_size", say("if it is set, the code adds no positions outside training"))
    hybrid = keys.text("encoder_type", "hybrid") == "hybrid"
    maps = len(keys.numbers("encode_proj_layers", (2,))) if hybrid else 0
    added = () if keys.get("eval_size", None) is not None else (use,)
    layers = [Layer(added, "map", causal=False)] * (maps * keys.whole("encoder_layers", 1))
    count, last = keys.whole("decoder_layers", 6), keys.whole("eval_idx", -1, least=-(2**14))
    deep = count + (count - (last if last >= 0 else count + last) - 1)
    layers += [Layer((), kind, causal=False) for kind in ("queries", "queries_to_image") * deep]
    keys.note("decoder_layers", say("a network of each query's box is added to queries, without sinusoids"))
    return PositionSpec(
        keys.family,
        layers=tuple(layers),
        parts=parts(keys, "backbone_config"),
        d_model=width,
        coordinates=say("(row, column) of one map, from 0, row by row"),
    )
