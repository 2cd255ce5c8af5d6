"""BLOOM and MPT: ALiBi, computed as slope · key position.

This equals slope · distance after the softmax: both differ by a constant for each query."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import WITH_PADDING
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use


def linear(keys: Keys, heads: str) -> Use:
    return Use("encodings.alibi.ALiBi", (("n_heads", keys.whole(heads)),), (("n_heads", keys.said_by(heads)),))


@family("bloom")
def bloom(keys: Keys) -> PositionSpec:
    """Positions count the tokens that the mask keeps. The class does not read seq_length, the trained length."""
    keys.warning(
        "n_head",
        say(
            "slope·position is rounded to the model's dtype before it is added: in bfloat16, neighbouring "
            "keys may have the same bias from position 257 on"
        ),
    )
    layers = [Layer((linear(keys, "n_head"),))] * keys.whole("n_layer")
    where = say("0, 1, 2, … over unmasked tokens: Positions.from_mask(attention_mask)")
    return stack_of(keys, layers, heads="n_head", length="seq_length", coordinates=where)


@family("mpt")
def mpt(keys: Keys) -> PositionSpec:
    """Always ALiBi with the paper's slopes, whatever the configuration says."""
    settings = keys.table("attn_config")
    if settings.get("alibi") is False:
        keys.error("attn_config.alibi", say("not read: the code adds ALiBi to every model"))
    if settings.get("alibi_bias_max", 8) != 8:
        keys.error(
            "attn_config.alibi_bias_max",
            say("{alibi_bias_max} is not read: the slopes are those of 8", alibi_bias_max=settings["alibi_bias_max"]),
        )
    keys.note("learned_pos_emb", say("not read: there is no position table"))
    keys.flag("learned_pos_emb", True)
    length = keys.whole("max_seq_len")
    keys.note("max_seq_len", say("more than {length} keys fail: the bias has this length", length=length))
    layers = [Layer((linear(keys, "n_heads"),))] * keys.whole("n_layers")
    spec = stack_of(keys, layers, width="d_model", heads="n_heads", length="max_seq_len")
    if settings.get("softmax_scale") is not None:
        keys.note(
            "attn_config.softmax_scale",
            say("q·k is multiplied by {softmax_scale}, not by 1/√d_head", softmax_scale=settings["softmax_scale"]),
        )
    return replace(spec, coordinates=WITH_PADDING)
