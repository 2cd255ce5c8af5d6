"""Speech and audio models put together: the classes hold what their configurations name."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import types
from collections.abc import Iterator

import torch

from families.harness import CONFIG_MAPPING, Proof, build, config_of, made_of, module_named, proof, spec_of

NO_POSITIONS = {"vibevoice_diffusion": "refines each token by itself; its sinusoids are of diffusion time"}

TWO = {"audio_config": "audio_tower", "text_config": "language_model"}
HELD: dict[str, tuple[str, dict[str, str]]] = {
    "audioflamingo3": ("a Whisper-like encoder and a rotary language model", TWO),
    "glmasr": ("a rotary encoder of frames and a rotary language model", TWO),
    "moss_transcribe_diarize": ("a Whisper-like encoder and a rotary language model", TWO),
    "qwen2_audio": ("a Whisper-like encoder and a rotary language model", TWO),
    "voxtral": ("a Whisper-like encoder and a rotary language model", TWO),
    "granite_speech": ("a conformer with relative vectors, a querying transformer and a rotary language model",
                       {"encoder_config": "encoder", "projector_config": "qformer", "text_config": "language_model"}),
    "granite_speech_plus": ("a conformer with relative vectors, a querying transformer and a rotary language model",
                            {"encoder_config": "encoder", "projector_config": "qformer",
                             "text_config": "language_model"}),
    "granite_speech5_ctc": ("a conformer with relative vectors", {"encoder_config": "encoder"}),
    "lasr_ctc": ("a rotary conformer", {"encoder_config": "encoder"}),
    "parakeet_ctc": ("a conformer with Transformer-XL's terms", {"encoder_config": "encoder"}),
    "parakeet_rnnt": ("a conformer with Transformer-XL's terms", {"encoder_config": "encoder"}),
    "parakeet_tdt": ("a conformer with Transformer-XL's terms", {"encoder_config": "encoder"}),
    "nemotron_asr_streaming": ("a conformer with Transformer-XL's terms, in chunks", {"encoder_config": "encoder"}),
    "nemotron3_5_asr": ("a conformer with Transformer-XL's terms, in chunks", {"encoder_config": "encoder"}),
    "fastspeech2_conformer_with_hifigan": ("conformers with Transformer-XL's terms, and convolutions",
                                           {"model_config": "model", "vocoder_config": "vocoder"}),
    "nemotron3_5_transcribe_audio": ("two rotary encoders of frames",
                                     {"asr_config": "asr_encoder", "diarization_config": "diarization_model"}),
    "nemo_speechlm": ("rotary encoders of frames, and a language model without positions",
                      {"audio_config": "audio_tower", "text_config": "language_model",
                       "word_timestamp_config": "word_timestamp_encoder"}),
    "nemotron_h_omni": ("a language model without positions, and a learned grid",
                        {"text_config": "language_model", "vision_config": "vision_model"}),
    "ultravbert": ("a text encoder and a learned grid", {"text_config": "text_model", "vision_config": "vision_model"}),
    "vibevoice_asr": ("convolutions, and a rotary language model",
                      {"acoustic_tokenizer_encoder_config": "acoustic_tokenizer_encoder",
                       "semantic_tokenizer_encoder_config": "semantic_tokenizer_encoder",
                       "text_config": "language_model"}),
    "canary": ("a conformer with Transformer-XL's terms, and a decoder with sinusoids",
               {"encoder_config": "encoder", "decoder_config": "decoder"}),
    "musicgen": ("T5 for text, convolutions for sound, a decoder with sinusoids",
                 {"text_encoder": "text_encoder", "audio_encoder": "audio_encoder", "decoder": "MusicgenForCausalLM"}),
    "musicgen_melody": ("T5 for text, convolutions for sound, a decoder with sinusoids",
                        {"text_encoder": "text_encoder", "audio_encoder": "audio_encoder",
                         "decoder": "MusicgenMelodyForCausalLM"}),
    "clap": ("a table that counts as RoBERTa's, and windows over a spectrogram",
             {"text_config": "text_model", "audio_config": "audio_model"}),
}  # fmt: skip
CLASSES = {"granite_speech": "GraniteSpeechForConditionalGeneration", "granite_speech5_ctc": "GraniteSpeech5ForCTC",
           "nemotron_h_omni": "NemotronH_Omni_Reasoning_V3", "musicgen": "MusicgenForConditionalGeneration",
           "musicgen_melody": "MusicgenMelodyForConditionalGeneration"}  # fmt: skip


@proof(*HELD)
def _(model_type: str) -> Proof:
    does, held = HELD[model_type]
    return made_of(model_type, does, held, model_class=CLASSES.get(model_type))


@proof("xcodec", "higgs_audio_v2_tokenizer")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "convolutions, and an encoder with a positional convolution")
    config = CONFIG_MAPPING[model_type]()
    spec = spec_of(config)
    assert [part.part for part in spec.parts] == ["acoustic_model_config", "semantic_model_config"]
    with torch.device("meta"), torchaudio_or_none():
        model = build(config, "XcodecModel" if model_type == "xcodec" else "HiggsAudioV2TokenizerModel", attention=None)
    result.equal("semantic_model_config", model.semantic_model.config.model_type, spec.parts[1].family)
    names = {type(part).__module__.split(".")[-2] for part in (model.acoustic_encoder, model.acoustic_decoder)}
    result.equal("acoustic_model_config", names, {spec.parts[0].family})
    return result


@contextlib.contextmanager
def torchaudio_or_none() -> Iterator[None]:
    """One file imports torchaudio to resample sound, which no comparison does; an empty module will do."""
    there = "torchaudio" in sys.modules or importlib.util.find_spec("torchaudio") is not None
    if not there:
        sys.modules["torchaudio"] = types.ModuleType("torchaudio")
    try:
        yield
    finally:
        if not there:
            del sys.modules["torchaudio"]


@proof("vibevoice")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "convolutions, and a rotary language model")
    config = CONFIG_MAPPING[model_type]()
    spec = spec_of(config, defaults=True)
    with torch.device("meta"):
        model = build(config, attention=None)
    held = {"audio_config": module_named(model, "audio_tower"), "text_config": module_named(model, "language_model"),
            "semantic_model_config": module_named(model, "semantic_tokenizer_encoder")}  # fmt: skip
    for part, module in held.items():
        result.equal(part, module.config.model_type, spec[part].family)
    assert not spec["diffusion_head_config"].layers
    assert not [
        name for name, _ in module_named(model, "diffusion_head").named_modules() if "attn" in name or "attention" in name
    ]
    assert {part.part for part in spec.parts} == {*held, "diffusion_head_config"}
    return result


@proof("fun_asr_nano")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "an encoder with sinusoids, two layers without positions, a rotary language model")
    config = CONFIG_MAPPING[model_type]()
    spec = spec_of(config, defaults=True)
    with torch.device("meta"):
        model = build(config, attention=None)
    for part, ending in (("audio_config", "audio_tower"), ("text_config", "language_model")):
        result.equal(part, module_named(model, ending).config.model_type, spec[part].family)
    adaptor = [m for m in model.modules() if type(m).__name__ == "FunAsrNanoEncoderLayer" and m.self_attn.fsmn is None]
    result.equal("layers between them", len(adaptor), len(spec["adaptor_config"].layers))
    assert not any(layer.uses for layer in spec["adaptor_config"].layers)
    return result


@proof("speech-encoder-decoder")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "any encoder of sound, any decoder of text")
    for encoder, decoder in (("wav2vec2", "bert"), ("hubert", "bart")):
        inner = {"encoder": config_of(encoder, num_hidden_layers=1).to_dict(),
                 "decoder": config_of(decoder, **({"num_hidden_layers": 1} if decoder == "bert" else
                                                  {"hidden_size": None, "num_hidden_layers": None,
                                                   "num_attention_heads": None})).to_dict()}  # fmt: skip
        config = CONFIG_MAPPING[model_type](**inner)
        spec = spec_of(config)
        with torch.device("meta"):
            model = build(config, "SpeechEncoderDecoderModel", attention=None)
        for part in ("encoder", "decoder"):
            result.equal(f"{part} is its own family", getattr(model, part).config.model_type, spec[part].family)
    return result
