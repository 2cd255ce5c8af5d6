"""SpeechT5 and VITS: relative key vectors (Shaw) in the encoder; SpeechT5 adds other encodings by kind of input."""

from __future__ import annotations

from posenc.configs.coordinates import WITH_PADDING
from posenc.configs.families.marian import fairseq, sinusoid
from posenc.configs.families.wav2vec2 import convolution
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import Words

TEXT = WITH_PADDING


@family("speecht5")
def speecht5(keys: Keys) -> PositionSpec:
    """Four stacks; a model uses one encoder and one decoder. Both encoders have the same layers."""
    d_head = keys.whole("hidden_size") // keys.whole("encoder_attention_heads")
    limit = keys.whole("encoder_max_relative_position")
    vectors = Use(
        "encodings.shaw.Shaw",
        (("d_head", d_head), ("max_distance", limit - 1), ("values", False), ("right", limit)),
        (
            ("d_head", keys.said_by("hidden_size")),
            ("right", keys.said_by("encoder_max_relative_position")),
            ("max_distance", keys.said_by("encoder_max_relative_position")),
            ("values", "constant of the code"),
        ),
        (Weight("keys", "embed_positions.pe_k.weight", flip=True),),
    )
    padding = keys.whole("pad_token_id", least=0)
    if padding == 1:
        frames = [fairseq(keys, "hidden_size")]
    else:
        frames = [sinusoid(keys, "hidden_size", layout="sin_cos", denominator="d/2-1", offset=padding + 1, odd="zero")]
        frames = frames if padding else []
        keys.remark(
            "error" if padding == 0 else "warning",
            "pad_token_id",
            say(
                "{padding}: compared with 0 for frames and 1 for padding; padding is recognised only if it is 1",
                padding=padding,
            ),
        )
    keys.warning(
        "num_conv_pos_embeddings",
        say("padding is not zeroed before the convolution and affects the last frames; posenc takes padding as absent"),
    )
    for name in ("max_speech_positions", "max_text_positions"):
        keys.whole(name)
    keys.note(
        "max_text_positions",
        say("the tables of the text encoder and the speech decoder have these lengths; the other sinusoids grow"),
    )
    real = say("0, 1, 2, … over non-padding tokens or frames")
    specs = [
        _stack(keys, "speech_encoder", [convolution(keys), *frames], vectors, real),
        _stack(keys, "text_encoder", [_scaled(keys, "encoder")], vectors, TEXT),
        _stack(keys, "text_decoder", [fairseq(keys, "hidden_size")], None, real),
        _stack(keys, "speech_decoder", [_scaled(keys, "decoder")], None, say("0, 1, 2, … over groups of mel frames")),
    ]
    return PositionSpec(keys.family, parts=tuple(specs), d_model=keys.whole("hidden_size"))


def _scaled(keys: Keys, side: str) -> Use:
    """The paper's sinusoids times one learned number."""
    return Use(
        "encodings.sinusoidal.ScaledSinusoidal",
        (("d_model", keys.whole("hidden_size")),),
        (("d_model", keys.said_by("hidden_size")),),
        (Weight("alpha", f"{side}.prenet.encode_positions.alpha"),),
    )


def _stack(keys: Keys, part: str, embedding: list[Use], inside: Use | None, where: Words) -> PositionSpec:
    side = part.split("_")[1]
    layers = [Layer((inside,) if inside else (), causal=side == "decoder")] * keys.whole(f"{side}_layers")
    length = keys.whole(f"max_{part.split('_')[0]}_positions")
    return stack_of(
        keys, layers, embedding=embedding, heads=f"{side}_attention_heads", length=length, coordinates=where
    ).with_part(part)


@family("vits")
def vits(keys: Keys) -> PositionSpec:
    """Vectors for keys and values within window_size of the query, none beyond; flows and decoder are convolutions."""
    d_head = keys.whole("hidden_size") // keys.whole("num_attention_heads")
    uses = []
    if keys.get("window_size", None) is not None:
        stem = "layers.{layer}.attention.emb_rel_"
        uses = [
            Use(
                "encodings.shaw.Shaw",
                (("d_head", d_head), ("max_distance", keys.whole("window_size")), ("outside", "zero")),
                (
                    ("d_head", keys.said_by("hidden_size")),
                    ("max_distance", keys.said_by("window_size")),
                    ("outside", "constant of the code"),
                ),
                (Weight("keys", f"{stem}k", reshape=True), Weight("values", f"{stem}v", reshape=True)),
            )
        ]
    layers = [Layer(tuple(uses), causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, length=None, coordinates=say("0, 1, 2, … over characters or phonemes"))
