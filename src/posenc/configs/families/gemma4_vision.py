"""Gemma 4's vision encoders: learned x and y tables, and axial RoPE."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.patches import ROWS_COLUMNS, tower
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Rotation, Use, Weight

PLACES = say("(x, y) of the patch in its image, from 0, given with the pixels; padding is (-1, -1)")


@family("gemma4_vision")
def gemma4_vision(keys: Keys) -> PositionSpec:
    """Learned x and y tables, summed. The first half of each head rotates by x, the second by y, each with half pairs."""
    d_model, d_head = keys.whole("hidden_size"), keys.whole("head_dim")
    settings = keys.table("rope_parameters")
    if settings.get("rope_type", "axial") not in ("axial", "default") or d_head % 4:
        raise ConfigError(
            f"{keys.where('rope_parameters')}: expected axial rotation of heads of a multiple of 4, got "
            f"{settings.get('rope_type')!r} and head_dim={d_head}"
        )
    inner = Keys(settings, "", keys.where("rope_parameters"))
    base = inner.number("rope_theta", keys.number("rope_theta", keys.facts["base"]))
    origin = "rope_parameters.rope_theta" if inner.has("rope_theta") else f"default of {keys.facts['class']}"
    turn = Use(
        "configs.quirks.in_each_part",
        (("d_head", d_head), ("f", Rotation(d_head // 2, base, maps=ROWS_COLUMNS)), ("layout", "half")),
        (("base", origin), ("d_head", keys.said_by("head_dim")), ("layout", "constant of the code")),
        note=say("in two parts: pairs (c, c + d_head/4) within each half of the head"),
    )
    rows = keys.whole("position_embedding_size")
    table = _tables(d_model, rows, keys.said_by("position_embedding_size"), "position_embedding_table", 0)
    return tower(keys, [turn], embedding=[table], coordinates=PLACES)


@family("gemma4_unified_vision")
def gemma4_unified_vision(keys: Keys) -> PositionSpec:
    """No encoder: patches get an x row and a y row and go to the text model."""
    d_model, rows = keys.whole("mm_embed_dim"), keys.whole("mm_posemb_size")
    table = _tables(d_model, rows, keys.said_by("mm_posemb_size"), "pos_embedding", 1)
    return PositionSpec(
        keys.family, layers=(Layer((table,), "no_attention", causal=False),), d_model=d_model, coordinates=PLACES
    )


def _tables(d_model: int, rows: int, origin: str, key: str, axis: int) -> Use:
    """One table for x and one for y, stored as a single tensor along `axis`; padding gets zero."""
    arguments = {"d_model": d_model, "max_positions": (rows, rows), "silent": "padding"}
    weights = tuple(Weight(f"axis_tables.{n}", key, part=(axis, n)) for n in range(2))
    return Use("encodings.bases.learned_axes.LearnedAxes", tuple(arguments.items()), (("max_positions", origin),), weights)
