"""SeamlessM4T: a conformer for speech; sinusoids in the encoders and decoders of text and units."""

from __future__ import annotations

from posenc.configs.coordinates import NOT_PADDING
from posenc.configs.families.wav2vec2_conformer import FRAMES, layer_of, of_kind
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import Words

TOKENS = NOT_PADDING


@family("seamless_m4t")
def seamless_m4t(keys: Keys) -> PositionSpec:
    """The unit encoder adds no positions: its input is a decoder's output."""
    for name in ("num_conv_pos_embeddings", "num_conv_pos_embedding_groups"):
        keys.get(name, None)
    keys.note("num_conv_pos_embeddings", say("the class of this convolution exists, but no model uses it"))
    speech = _speech(keys, ("relative", "rotary"))
    units = _waves(keys, "t2u_pad_token_id")
    return _made(keys, speech, units, causal=True)


@family("seamless_m4t_v2")
def seamless_m4t_v2(keys: Keys) -> PositionSpec:
    """Frames see their own chunk and some chunks to its left. The unit decoder is bidirectional and counts padding."""
    size, left = keys.whole("speech_encoder_chunk_size", None), keys.number("speech_encoder_left_chunk_num", positive=False)
    chunks = say("{left:g} chunks", left=left) if left >= 0 else say("all")
    keys.note(
        "speech_encoder_chunk_size",
        say("a frame sees its own chunk of {size} frames and {chunks} to its left", size=size, chunks=chunks),
    )
    if size is not None:
        keys.warning(
            "speech_encoder_chunk_size",
            say(
                "the chunk mask is boolean: sdpa hides False, but eager attention adds 1 to the scores "
                "of True and hides nothing"
            ),
        )
    speech = _speech(keys, ("relative_key",))
    units = _waves(keys, "t2u_pad_token_id", scaled=True)
    keys.note(
        "t2u_pad_token_id",
        say(
            "characters get the same sinusoids, scaled by a learned number of their own, before they are repeated as units"
        ),
    )
    return _made(keys, speech, units, causal=False)


def _speech(keys: Keys, known: tuple[str, ...]) -> PositionSpec:
    """The conformer, then its adapter, whose layers have no positions."""
    use = of_kind(keys, "speech_encoder_attention_heads", known)
    layers = [layer_of(use)] * keys.whole("speech_encoder_layers")
    if keys.flag("add_adapter", False):
        layers += [Layer((), "adapter", causal=False)] * keys.whole("num_adapter_layers")
    spec = stack_of(keys, layers, heads="speech_encoder_attention_heads", length=None, coordinates=FRAMES)
    return spec.with_part("speech_encoder")


def _waves(keys: Keys, padding: str, *, scaled: bool = False) -> Use:
    """Sinusoids from the row after padding; padding gets zero."""
    start = keys.whole(padding, least=0) + 1
    arguments = (
        ("d_model", keys.whole("hidden_size")),
        ("layout", "sin_cos"),
        ("denominator", "d/2-1"),
        ("odd", "zero"),
        ("offset", start),
        *([] if scaled else [("silent", "padding")]),
    )
    said_by = (
        ("d_model", keys.said_by("hidden_size")),
        ("offset", keys.said_by(padding)),
        ("layout", "constant of the code"),
        ("denominator", "constant of the code"),
    )
    name = "ScaledSinusoidal" if scaled else "Sinusoidal"
    weights = (Weight("alpha", "pos_emb_alpha", reshape=True),) if scaled else ()
    return Use(f"encodings.sinusoidal.{name}", arguments, said_by, weights)


def _made(keys: Keys, speech: PositionSpec, units: Use, *, causal: bool) -> PositionSpec:
    """All five stacks; the unit decoder adds `units` and is causal if `causal`."""
    for name in ("max_position_embeddings", "t2u_max_position_embeddings"):
        keys.get(name, None)
    keys.note("max_position_embeddings", say("no limit: sinusoids are computed for any length"))
    words = _waves(keys, "pad_token_id")
    specs = [speech]
    counted = TOKENS if causal else say("0, 1, 2, … over all units")
    stacks: list[tuple[str, str, list[Use], bool, Words]] = [
        ("text_encoder", "encoder", [words], False, TOKENS),
        ("text_decoder", "decoder", [words], True, TOKENS),
        ("t2u_encoder", "t2u_encoder", [], False, say("none of its own")),
        ("t2u_decoder", "t2u_decoder", [units], causal, counted),
    ]
    for part, stem, embedding, hides, where in stacks:
        layers = [Layer(causal=hides)] * keys.whole(f"{stem}_layers")
        spec = stack_of(keys, layers, embedding=embedding, heads=f"{stem}_attention_heads", length=None, coordinates=where)
        specs.append(spec.with_part(part))
    return PositionSpec(keys.family, parts=tuple(specs), d_model=keys.whole("hidden_size"))
