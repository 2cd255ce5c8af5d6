"""Models made of any encoder and any decoder. Each part counts its own tokens."""

from __future__ import annotations

from posenc.configs.coordinates import EACH_PART
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec


@family("encoder-decoder")
def encoder_decoder(keys: Keys) -> PositionSpec:
    """Any encoder and any decoder; BERT for both if the file does not say."""
    return PositionSpec(keys.family, parts=parts(keys, encoder="bert", decoder="bert"), coordinates=EACH_PART)


@family("rag")
def rag(keys: Keys) -> PositionSpec:
    """The generator reads each document and the question as one text."""
    return PositionSpec(
        keys.family,
        parts=parts(keys, question_encoder="dpr", generator="bart"),
        coordinates=say("each part counts its own tokens; a document precedes the question"),
    )


@family("pp_formulanet")
def pp_formulanet(keys: Keys) -> PositionSpec:
    """The decoder attends to the image patches, which already have positions."""
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=EACH_PART)


@family("speech-encoder-decoder")
def speech_encoder_decoder(keys: Keys) -> PositionSpec:
    """Any speech encoder and any text decoder."""
    return PositionSpec(keys.family, parts=parts(keys, "encoder", "decoder"))


@family("nougat")
def nougat(keys: Keys) -> PositionSpec:
    """Its class gives sections without model_type the type 'donut_swin', which does not exist, and fails."""
    if not keys.has("encoder"):
        keys.error(
            "encoder",
            say(
                "missing: NougatConfig assumes the type 'donut_swin', which transformers does not have "
                "(it is 'donut-swin'), and fails"
            ),
        )
    return PositionSpec(keys.family, parts=parts(keys, encoder="donut-swin", decoder="mbart"), coordinates=EACH_PART)


@family("vision-encoder-decoder")
def vision_encoder_decoder(keys: Keys) -> PositionSpec:
    """The decoder attends to the encoder's patches, which already have positions."""
    return PositionSpec(keys.family, parts=parts(keys, "encoder", "decoder"), coordinates=EACH_PART)
