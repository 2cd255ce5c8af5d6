"""Values turn like keys, and outputs are not turned back: they show where a token stands, not only how far away it is."""

from __future__ import annotations

from posenc.dialects.errors import ConfigError
from posenc.dialects.family import family, parts, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.patches import even_head, tower
from posenc.dialects.spec import Layer, PositionSpec, Rotation, Use, Weight

SHOWS = "values turn as well, and outputs are not turned back: absolute positions reach the output"


def _turning(
    d_head: int, rotary_dim: int, layout: str, values: bool, said: dict[str, str], weights: tuple[Weight, ...] = ()
) -> Use:
    sides = ("query", "key", "value") if values else ("query", "key")
    arguments = {"d_head": d_head, "layout": layout, "frequencies": Rotation(rotary_dim, 10000.0), "sides": sides}
    said_by = {"base": "constant of the code", "layout": "constant of the code"} | said
    return Use("encodings.rope.RoPE", tuple(arguments.items()), tuple(said_by.items()), weights)


@family("roformer")
def _(keys: Keys) -> PositionSpec:
    """Neighbours paired, base 10 000, from a table that is exact to one rounding; values too where rotary_value says so."""
    d_head = even_head(keys, multiple=2)
    values = keys.flag("rotary_value", False)
    if values:
        keys.find("note", "rotary_value", SHOWS)
    keys.find("note", "max_position_embeddings", "a table of this many rows is read; positions beyond it fail")
    use = _turning(d_head, d_head, "interleaved", bool(values), {"sides": keys.said_by("rotary_value")})
    causal = bool(keys.flag("is_decoder", False))
    layers = [Layer((use,), causal=causal)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, coordinates="0, 1, 2, … along the sequence, padding counted; no position_ids are taken")


@family("clvp_encoder")
def _(keys: Keys) -> PositionSpec:
    """The first max(projection_dim // (2·heads), 32) channels, halves paired, base 10 000."""
    d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    if not keys.flag("use_rotary_embedding"):
        keys.find("warning", "use_rotary_embedding", "false: nothing tells order")
        return tower(keys, [], coordinates="none")
    width = max(keys.whole("projection_dim") // (n_heads * 2), 32)
    if d_model % n_heads or width + width % 2 > d_model // n_heads:
        raise ConfigError(
            f"{keys.where('projection_dim')}: {width} channels would turn, max(projection_dim // (2·heads), "
            f"32), and a head has {d_model / n_heads:g}"
        )
    keys.find("note", "use_rotary_embedding", SHOWS)
    keys.find("note", "projection_dim", "checkpoints hold frequencies (rotary_pos_emb.inv_freq), which win over these")
    use = _turning(d_model // n_heads, width, "half", True, {"rotary_dim": keys.said_by("projection_dim")})
    return tower(keys, [use])


@family("clvp_decoder")
def _(keys: Keys) -> PositionSpec:
    """A learned table."""
    rows, d_model = keys.whole("max_position_embeddings"), keys.whole("hidden_size")
    said_by = (("max_positions", keys.said_by("max_position_embeddings")), ("d_model", keys.said_by("hidden_size")))
    table = Use(
        "encodings.learned.Learned",
        (("d_model", d_model), ("max_positions", rows)),
        said_by,
        (Weight("table", "position_embeds_layer.weight"),),
    )
    return stack_of(keys, [Layer()] * keys.whole("num_hidden_layers"), embedding=[table])


@family("clvp")
def _(keys: Keys) -> PositionSpec:
    """Text and speech encoders and a decoder, which is given text with a table of its own behind one vector of speech."""
    inside = parts(keys, "text_config", "speech_config", "decoder_config")
    within = keys.section("decoder_config")
    rows, d_model = within.whole("max_text_tokens"), within.whole("hidden_size")
    said_by = (("max_positions", within.said_by("max_text_tokens")), ("d_model", within.said_by("hidden_size")))
    table = Use(
        "encodings.learned.Learned",
        (("d_model", d_model), ("max_positions", rows)),
        said_by,
        (Weight("table", "text_position_embedding.weight"),),
    )
    keys.find(
        "warning",
        "decoder_config.max_text_tokens",
        "the mask gets its two ones for begin and end at its front: "
        "right for padding behind the text, and one too many in front of it",
    )
    where = "two ones put before the attention mask, summed from the left, less 1; padding repeats a number"
    given = PositionSpec(
        keys.family,
        part="conditioning",
        layers=(Layer((table,), "embedding"),),
        d_model=d_model,
        trained_length=rows,
        coordinates=where,
    )
    return PositionSpec(keys.family, parts=(*inside, given))
