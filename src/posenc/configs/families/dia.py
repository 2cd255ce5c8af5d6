"""Dia: RoPE in the self-attention of encoder and decoder, none in cross-attention."""

from __future__ import annotations

from posenc.configs.family import decoder, family, head_width, parts
from posenc.configs.keys import Keys
from posenc.configs.patches import tower
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec


@family("dia_encoder")
def dia_encoder(keys: Keys) -> PositionSpec:
    use = rope(keys, d_head=head_width(keys))
    keys.note("head_dim", say("q·k is not scaled by 1/√head_dim"))
    return tower(keys, [use] if use else [], length=keys.whole("max_position_embeddings"), d_head=head_width(keys))


@family("dia_decoder")
def dia_decoder(keys: Keys) -> PositionSpec:
    """RoPE in self-attention, none in cross-attention."""
    keys.note("head_dim", say("q·k is not scaled by 1/√head_dim"))
    return decoder(keys, rope(keys, d_head=head_width(keys)))


@family("dia")
def dia(keys: Keys) -> PositionSpec:
    keys.note(
        "delay_pattern",
        say(
            "channel n of the decoder's input is delayed by the n-th number of tokens: one position "
            "holds frames of different times"
        ),
    )
    return PositionSpec(keys.family, parts=parts(keys, "encoder_config", "decoder_config"))
