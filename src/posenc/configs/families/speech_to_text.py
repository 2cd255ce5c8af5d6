"""Speech2Text: fairseq's sinusoids in encoder and decoder."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import NOT_PADDING
from posenc.configs.families.marian import fairseq, sinusoid
from posenc.configs.family import family, two_stacks
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec
from posenc.support.languages import Words, clauses

FRAMES = say("0, 1, 2, … over non-padding frames after the convolutions")


@family("speech_to_text")
def speech_to_text(keys: Keys) -> PositionSpec:
    """fairseq's sinusoids. Frames are counted by comparing the mask of zeros and ones with pad_token_id."""
    words, padding = fairseq(keys), keys.whole("pad_token_id", least=0)
    frames, where = words, FRAMES
    if padding != 1:
        frames = sinusoid(keys, layout="sin_cos", denominator="d/2-1", offset=padding + 1, odd="zero")
        where = say("0, 1, 2, … over frames after the convolutions, including padding")
        keys.remark(
            "error" if padding == 0 else "warning",
            "pad_token_id",
            clauses(
                say("{padding}: the encoder compares it with 0 for frames and 1 for padding", padding=padding),
                say("padding is recognised only if it is 1"),
                *[say("with 0 all real frames get row 0, which is zero")] * (padding == 0),
            ),
        )
    for name in ("max_source_positions", "max_target_positions"):
        keys.get(name, None)
        keys.note(name, say("no limit: sinusoids are computed for any length"))
    both = two_stacks(keys, None if padding == 0 else frames, words, length=None)
    return with_coordinates(both, where, NOT_PADDING)


def with_coordinates(both: PositionSpec, *where: Words) -> PositionSpec:
    specs = tuple(replace(part, coordinates=text) for part, text in zip(both.parts, where, strict=True))
    return replace(both, parts=specs)
