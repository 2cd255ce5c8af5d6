"""Speech and audio models put together from others, which add no positions of their own."""

from __future__ import annotations

from posenc.dialects.family import family, parts
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec

SOUND = "0, 1, 2, … over text and, where sound stands in it, its frames after the encoder"


@family("audioflamingo3", "glmasr", "moss_transcribe_diarize", "qwen2_audio", "voxtral")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "audio_config", "text_config"), coordinates=SOUND)


@family("fun_asr_nano")
def _(keys: Keys) -> PositionSpec:
    """Between encoder and language model two layers more, which attend without positions."""
    adaptor = Keys(keys.table("adaptor_config"), "", keys.where("adaptor_config"))
    count = adaptor.whole("num_hidden_layers", 2)
    between = PositionSpec(
        keys.family,
        part="adaptor_config",
        layers=(Layer((), "adaptor", causal=False),) * count,
        d_model=adaptor.whole("hidden_size", None),
        coordinates="none of its own: the encoder's",
    )
    audio, text = parts(keys, "audio_config", "text_config")
    return PositionSpec(keys.family, parts=(audio, between, text), coordinates=SOUND)


@family("granite_speech", "granite_speech_plus")
def _(keys: Keys) -> PositionSpec:
    """Learned queries, as many as window_size / downsample_rate, ask each window of frames: they have no other position."""
    window, rate = keys.whole("window_size", 15), keys.whole("downsample_rate", 5)
    keys.find("note", "window_size", f"{window // rate} learned queries stand for {window} frames of the encoder")
    return PositionSpec(
        keys.family, parts=parts(keys, "encoder_config", "projector_config", "text_config"), coordinates=SOUND
    )


@family("granite_speech5_ctc", "lasr_ctc", "parakeet_ctc")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "encoder_config"))


@family("parakeet_rnnt", "parakeet_tdt", "nemotron_asr_streaming", "nemotron3_5_asr")
def _(keys: Keys) -> PositionSpec:
    """Words are predicted by a recurrent network, which needs no positions."""
    return PositionSpec(keys.family, parts=parts(keys, "encoder_config"))


@family("fastspeech2_conformer_with_hifigan")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "model_config", "vocoder_config"))


@family("higgs_audio_v2_tokenizer", "xcodec")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "acoustic_model_config", "semantic_model_config"))


@family("nemotron3_5_transcribe_audio")
def _(keys: Keys) -> PositionSpec:
    """The sinusoids that are added to frames tell speakers, not positions."""
    return PositionSpec(keys.family, parts=parts(keys, "asr_config", "diarization_config"))


@family("nemo_speechlm")
def _(keys: Keys) -> PositionSpec:
    names = ["audio_config", "text_config"]
    if keys.data.get("word_timestamp_config", {}) is not None:
        names.append("word_timestamp_config")
    return PositionSpec(keys.family, parts=parts(keys, *names), coordinates=SOUND)


@family("nemotron_h_omni")
def _(keys: Keys) -> PositionSpec:
    names = ["text_config", "vision_config", *(["audio_config"] if keys.has("audio_config") else [])]
    return PositionSpec(keys.family, parts=parts(keys, *names), coordinates="0, 1, 2, … over text, patches and frames")


@family("ultravbert")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"))


@family("vibevoice")
def _(keys: Keys) -> PositionSpec:
    names = ("audio_config", "semantic_model_config", "text_config", "diffusion_head_config")
    return PositionSpec(keys.family, parts=parts(keys, *names), coordinates=SOUND)


@family("vibevoice_asr")
def _(keys: Keys) -> PositionSpec:
    names = ("acoustic_tokenizer_encoder_config", "semantic_tokenizer_encoder_config", "text_config")
    return PositionSpec(keys.family, parts=parts(keys, *names), coordinates=SOUND)


@family("vibevoice_diffusion")
def _(keys: Keys) -> PositionSpec:
    """Sinusoids of diffusion time, not of position: each token is refined by itself."""
    return PositionSpec(keys.family, coordinates="none: each token by itself; its sinusoids are of diffusion time")


@family("speech-encoder-decoder")
def _(keys: Keys) -> PositionSpec:
    """Any encoder of sound and any decoder of text."""
    return PositionSpec(keys.family, parts=parts(keys, "encoder", "decoder"))


@family("canary")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "encoder_config", "decoder_config"))


@family("musicgen", "musicgen_melody")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_encoder", "audio_encoder", "decoder"))


@family("clap")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "audio_config"))
