"""RT-DETR, OmDet-Turbo and DEIMv2: sinusoids within single feature maps, queries from boxes."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.families.detr import backbone, sine, stack
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.spec import Layer, PositionSpec, Use
from posenc.support.languages import Words

GRID = Words("(row, column) of the cell, from 0", "单元格的（行, 列），从 0 起")

COLUMNS = Words(
    "(i // height, i % height) for token i of a map: Positions.grid(width, height)",
    "图的词元 i 为 (i // height, i % height)：Positions.grid(width, height)",
)


@family("rt_detr", "rt_detr_v2", "d_fine", "pp_doclayout_v3", "pp_doclayout_v4", "omdet-turbo")
def rt_detr(keys: Keys) -> PositionSpec:
    """Sinusoids of row and column for the coarsest maps; object queries are boxes through a network."""
    return PositionSpec(keys.family, parts=hybrid_encoder(keys), coordinates=Words("each part's own", "各部分自己的"))


def hybrid_encoder(keys: Keys) -> tuple[PositionSpec, ...]:
    """The specs of backbone, encoder (attention within single feature maps) and decoder."""
    omdet = keys.family == "omdet-turbo"
    base = keys.number("positional_encoding_temperature")
    said = {"base": keys.said_by("positional_encoding_temperature")}
    use: Use | None = sine(keys, "encoder_hidden_dim", said=said, layout="sin_cos", base=base)
    if keys.get("eval_size", None) is not None:
        keys.warning(
            "eval_size", "if it is set, the code adds positions in training only", "若设了它，代码只在训练时加位置"
        )
        use = None
    maps = keys.get("encoder_projection_indices" if omdet else "encode_proj_layers", [2])
    if not isinstance(maps, (list, tuple)):
        raise ConfigError(f"{keys.where('encode_proj_layers')}: expected a list of maps, got {maps!r}")
    kinds = [("full_attention", use)] * len(maps)
    if omdet:
        keys.warning(
            "encoder_projection_indices",
            "tokens are in row order, but the code counts cells in column order: for maps that are "
            "not square, positions are wrong",
            "词元按行排列，而代码按列数单元格：对非正方形的图，位置是错的",
        )
    encoder = stack(keys, "encoder", kinds, "encoder_layers", COLUMNS if omdet else GRID, "encoder_hidden_dim")
    count = "decoder_num_layers" if omdet else "decoder_layers"
    keys.note(
        count,
        "a network of the query's box (four numbers) is added to queries in every layer",
        "每一层把由查询的框（四个数）得到的网络加到查询上",
    )
    where = Words(
        "none: a network of the query's box; deformable attention samples a few cells around it",
        "无：由查询的框得到的网络；可变形注意力在其周围取几个单元格",
    )
    names = ("text_config",) if omdet else ()
    decoder = stack(keys, "decoder", [("queries", None), ("deformable", None)], count, where, "d_model")
    return (*backbone(keys, *names), encoder, decoder)


@family("deimv2")
def deimv2(keys: Keys) -> PositionSpec:
    """Sinusoids of row and column for the encoder's attention over one map.

    The decoder adds a network of the queries' boxes.
    """
    width, base = keys.whole("encoder_hidden_dim", 256), keys.number("positional_encoding_temperature", 10000.0)
    said = (("d_model", keys.said_by("encoder_hidden_dim")), ("base", keys.said_by("positional_encoding_temperature")))
    arguments = (("d_model", width), ("base", base), ("layout", "sin_cos"), ("axes", 2))
    use = Use("encodings.sinusoidal.Sinusoidal", arguments, said)
    if keys.get("eval_size", None) is not None:
        keys.error(
            "eval_size", "if it is set, the code adds no positions outside training", "若设了它，代码在训练之外不加位置"
        )
    hybrid = keys.text("encoder_type", "hybrid") == "hybrid"
    maps = len(keys.numbers("encode_proj_layers", (2,))) if hybrid else 0
    added = () if keys.get("eval_size", None) is not None else (use,)
    layers = [Layer(added, "map", causal=False)] * (maps * keys.whole("encoder_layers", 1))
    count, last = keys.whole("decoder_layers", 6), keys.whole("eval_idx", -1, least=-(2**14))
    deep = count + (count - (last if last >= 0 else count + last) - 1)
    layers += [Layer((), kind, causal=False) for kind in ("queries", "queries_to_image") * deep]
    keys.note(
        "decoder_layers",
        "a network of each query's box is added to queries, without sinusoids",
        "由每个查询的框得到的网络加到查询上，没有正余弦",
    )
    return PositionSpec(
        keys.family,
        layers=tuple(layers),
        parts=parts(keys, "backbone_config"),
        d_model=width,
        coordinates=Words("(row, column) of one map, from 0, row by row", "一张图的（行, 列），从 0 起，逐行"),
    )
