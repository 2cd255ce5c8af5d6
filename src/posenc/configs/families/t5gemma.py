"""T5Gemma: Gemma as encoder and decoder. In T5Gemma 2, decoder queries attend to the keys of both in one softmax."""

from __future__ import annotations

from posenc.configs.families.gemma3 import bidirectional_within
from posenc.configs.family import decoder, family, head_width, parts, read_section
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import sliding_where
from posenc.configs.spec import PositionSpec


@family("t5_gemma_module")
def t5_gemma_module(keys: Keys) -> PositionSpec:
    """One stack as in Gemma 2. An encoder is bidirectional; its sliding layers see sliding_window tokens on each side."""
    spec = decoder(keys, rope(keys, d_head=head_width(keys)), kinds=sliding_where(keys, lambda n: n % 2 == 0))
    if keys.flag("is_decoder", False):
        return spec
    window = keys.whole("sliding_window", None)
    return bidirectional_within(spec, 2 * window + 1 if window else None)


@family("t5gemma")
def t5gemma(keys: Keys) -> PositionSpec:
    """Cross-attention has no positions."""
    stacks = []
    for name, is_decoder in (("encoder", False), ("decoder", True)):
        inner = keys.section(name)
        inner.data["is_decoder"] = is_decoder  # the class sets it, whatever the file says
        stacks.append(read_section(inner, name))
    return PositionSpec(keys.family, parts=tuple(stacks), coordinates=say("0, 1, 2, … in each stack separately"))


@family("t5gemma2_encoder")
def t5gemma2_encoder(keys: Keys) -> PositionSpec:
    return PositionSpec(
        keys.family,
        parts=parts(keys, "text_config", "vision_config"),
        coordinates=say("0, 1, 2, … along the sequence; image tokens count like text tokens"),
    )


@family("t5gemma2")
def t5gemma2(keys: Keys) -> PositionSpec:
    keys.note(
        "decoder",
        say(
            "rotated decoder queries meet unrotated encoder keys in one softmax: those scores depend "
            "on the decoder's position, not on a distance"
        ),
    )
    return PositionSpec(
        keys.family, parts=parts(keys, "encoder", "decoder"), coordinates=say("0, 1, 2, … in each stack separately")
    )
