"""CLVP: encoders that rotate queries, keys and values, and a decoder with a learned table."""

from __future__ import annotations

from posenc.configs.coordinates import NONE
from posenc.configs.errors import ConfigError
from posenc.configs.families.roformer import VALUES_ROTATE, rotary_sides
from posenc.configs.family import family, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import tower
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("clvp_encoder")
def clvp_encoder(keys: Keys) -> PositionSpec:
    """RoPE over the first max(projection_dim // (2·heads), 32) channels, half pairs, base 10 000."""
    d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    if not keys.flag("use_rotary_embedding"):
        keys.warning("use_rotary_embedding", say("false: there are no positions"))
        return tower(keys, [], coordinates=NONE)
    width = max(keys.whole("projection_dim") // (n_heads * 2), 32)
    if d_model % n_heads or width + width % 2 > d_model // n_heads:
        raise ConfigError(
            f"{keys.where('projection_dim')}: {width} channels would rotate, max(projection_dim // "
            f"(2·heads), 32), but a head has {d_model / n_heads:g}"
        )
    keys.note("use_rotary_embedding", VALUES_ROTATE)
    keys.note("projection_dim", say("frequencies stored in checkpoints (rotary_pos_emb.inv_freq) override these"))
    use = rotary_sides(d_model // n_heads, width, "half", True, {"rotary_dim": keys.said_by("projection_dim")})
    return tower(keys, [use])


@family("clvp_decoder")
def clvp_decoder(keys: Keys) -> PositionSpec:
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
def clvp(keys: Keys) -> PositionSpec:
    """Text and speech encoders, and a decoder whose text input has a table of its own, after one speech vector."""
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
    keys.warning(
        "decoder_config.max_text_tokens",
        say(
            "two ones (begin and end tokens) are added at the front of the mask: correct for padding "
            "on the right, one too many for padding on the left"
        ),
    )
    where = say("cumulative sum of the attention mask with two ones in front, minus 1; padding repeats a number")
    conditioning = PositionSpec(
        keys.family,
        part="conditioning",
        layers=(Layer((table,), "embedding"),),
        d_model=d_model,
        trained_length=rows,
        coordinates=where,
    )
    return PositionSpec(keys.family, parts=(*inside, conditioning))
